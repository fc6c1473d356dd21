"""PaddleOCR model folders made from weights that a wheel ships, so that nothing is ever downloaded.

The ``rapidocr`` wheel (Apache-2.0) carries PP-OCRv6 small as ONNX; a folder that PaddleX takes is the network plus an
``inference.yml``. Its values are those of the published models; the characters come from the network's own metadata.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from models.errors import EngineUnavailable

DETECTION_MODEL = "PP-OCRv6_small_det"
RECOGNITION_MODEL = "PP-OCRv6_small_rec"
WEIGHTS_IN_WHEEL = {
    DETECTION_MODEL: "PP-OCRv6_det_small.onnx",
    RECOGNITION_MODEL: "PP-OCRv6_rec_small.onnx",
}
WHEEL = "rapidocr"
INSTALL_COMMAND = "pip install --no-deps -r requirements/nodeps.txt"

_DETECTION_STEPS = {
    "PreProcess": {
        "transform_ops": [
            {"DetResizeForTest": None},
            {
                "NormalizeImage": {
                    "mean": [0.485, 0.456, 0.406],
                    "std": [0.229, 0.224, 0.225],
                    "scale": "1./255.",
                    "order": "hwc",
                }
            },
            {"ToCHWImage": None},
        ]
    },
    "PostProcess": {
        "name": "DBPostProcess",
        "thresh": 0.3,
        "box_thresh": 0.6,
        "unclip_ratio": 1.5,
        "max_candidates": 1000,
    },
}


def shipped_version() -> str:
    """The version of the wheel that the weights come from. Raises ``EngineUnavailable`` without it."""
    try:
        return importlib.metadata.version(WHEEL)
    except importlib.metadata.PackageNotFoundError as error:
        raise EngineUnavailable(
            f"{WHEEL} (its wheel holds the weights) is missing; {INSTALL_COMMAND}"
        ) from error


def prepared_model_dir(model_name: str, weights_dir: Path) -> Path:
    """The folder of a shipped model under ``weights_dir``, made whole on first use, whoever else asks too."""
    target = weights_dir / f"{model_name}-{WHEEL}-{shipped_version()}"
    if target.is_dir():
        return target
    weights_dir.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{model_name}-", dir=weights_dir))
    try:
        network = draft / "inference.onnx"
        shutil.copyfile(_shipped_file(model_name), network)
        with (draft / "inference.yml").open("w", encoding="utf-8") as stream:
            yaml.safe_dump(_config(model_name, network), stream, allow_unicode=True)
        try:
            os.rename(draft, target)  # noqa: PTH104 - must fail when another process was first
        except OSError:
            if not target.is_dir():
                raise
    except OSError as error:
        raise EngineUnavailable(f"{weights_dir}: weights cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _shipped_file(model_name: str) -> Path:
    spec = importlib.util.find_spec(WHEEL)
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent / "models"
    if folder is None or not (folder / WEIGHTS_IN_WHEEL[model_name]).is_file():
        raise EngineUnavailable(f"{WHEEL} came without {WEIGHTS_IN_WHEEL[model_name]}; {INSTALL_COMMAND}")
    return folder / WEIGHTS_IN_WHEEL[model_name]


def _config(model_name: str, network: Path) -> Mapping[str, Any]:
    if model_name == DETECTION_MODEL:
        return {"Global": {"model_name": model_name}, **_DETECTION_STEPS}
    return {
        "Global": {"model_name": model_name},
        "PreProcess": {"transform_ops": [{"RecResizeImg": {"image_shape": [3, 48, 320]}}]},
        "PostProcess": {"name": "CTCLabelDecode", "character_dict": _characters(network)},
    }


def _characters(network: Path) -> list[str]:
    """What the recogniser can write, one entry a class, without the blank and the space."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(network), providers=["CPUExecutionProvider"])
    characters: str = session.get_modelmeta().custom_metadata_map["character"]
    return characters.split("\n")
