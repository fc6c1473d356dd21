"""PaddleOCR on onnxruntime: the only importer of paddleocr in the product. Paddle itself is never imported."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from models.errors import EngineError, EngineUnavailable
from models.geometry import Box
from models.text import Line, Word
from pipeline.engines.ocr_text import clean_text, without_rubbish
from pipeline.engines.paddle_weights import WEIGHTS_IN_WHEEL, prepared_model_dir, shipped_version
from pipeline.reading_order import lines_from_words
from pipeline.rows import line_of
from pipeline.settings import PaddleSettings
from pipeline.tiles import TileRules, joined_lines, tiles_of

DETECTOR_SIDE_PX = 960
"""The detector sees the page with its longer side at most so long; more found nothing more at 200 dpi."""

TILES = TileRules(
    max_side_px=6_000, max_aspect=2.5, min_strip_px=1_600, tile_aspect=2.0, min_tile_px=1_200, overlap_px=160
)
"""A strip is cut, as the detector would shrink it until nothing is legible."""

LEAST_SIDE_PX = 8

NARROW_SIGNS: Final = str.maketrans("，；：（）！？。", ",;:()!?.")
"""The network knows Chinese and writes its signs in other languages too."""


class PaddleOcrEngine:
    """PP-OCR reads pieces of lines (an item and its price are two); a piece's confidence stands for each of its
    words. The networks read Latin, Chinese and Japanese at once, so ``languages`` choose nothing.

    ``weights_dir`` is where shipped weights are laid out. Raises ``EngineUnavailable`` when a wheel or a model folder
    is missing. Loading takes 2 to 4 s and 1 GB.
    """

    def __init__(self, settings: PaddleSettings, *, weights_dir: Path) -> None:
        self._settings = settings
        detection_dir = _model_dir(settings.detection_model_name, settings.detection_model_dir, weights_dir)
        recognition_dir = _model_dir(
            settings.recognition_model_name, settings.recognition_model_dir, weights_dir
        )
        with _quiet():
            self._network = _load(settings, detection_dir, recognition_dir)

    @property
    def name(self) -> str:
        return "paddleocr"

    @property
    def version(self) -> str:
        settings = self._settings
        names = (settings.detection_model_name, settings.recognition_model_name)
        folders = (settings.detection_model_dir, settings.recognition_model_dir)
        weights = shipped_version() if folders == (None, None) else "+".join(map(_folder_version, folders))
        return f"{'+'.join(names)} {weights} side {DETECTOR_SIDE_PX}"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        if min(image.size) < LEAST_SIDE_PX:
            return ()
        colour = image if image.mode == "RGB" else image.convert("RGB")
        parts = [(tile, self._read_tile(tile.crop(colour))) for tile in tiles_of(colour, TILES)]
        pieces = without_rubbish(joined_lines(parts))
        return lines_from_words([word for piece in pieces for word in piece.words])

    def _read_tile(self, colour: Image.Image) -> tuple[Line, ...]:
        pixels = np.ascontiguousarray(np.asarray(colour)[:, :, ::-1])
        try:
            with _quiet():
                page = self._network.predict(pixels, return_word_box=True)[0]
        except (RuntimeError, ValueError, IndexError) as error:
            raise EngineError(f"paddleocr: {error}") from error
        return tuple(_lines(page))


def _load(settings: PaddleSettings, detection_dir: Path | None, recognition_dir: Path | None) -> Any:
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    try:
        from paddleocr import PaddleOCR
    except ImportError as error:
        raise EngineUnavailable(f"paddleocr cannot be loaded ({error}); pip install paddleocr") from error
    try:
        return PaddleOCR(
            text_detection_model_name=settings.detection_model_name,
            text_detection_model_dir=None if detection_dir is None else str(detection_dir),
            text_recognition_model_name=settings.recognition_model_name,
            text_recognition_model_dir=None if recognition_dir is None else str(recognition_dir),
            engine="onnxruntime",
            engine_config={"intra_op_num_threads": 1, "inter_op_num_threads": 1},
            use_doc_orientation_classify=False,
            use_doc_unwarping=False,
            use_textline_orientation=False,
            device="cpu",
            text_det_limit_side_len=DETECTOR_SIDE_PX,
            text_det_limit_type="max",
        )
    except Exception as error:  # PaddleX raises no narrower one where no model host answers
        raise EngineUnavailable(
            f"paddleocr: {settings.detection_model_name} or {settings.recognition_model_name} cannot be loaded "
            f"({error}); name a model that PaddleOCR knows, and its folder where it cannot be downloaded"
        ) from error


def _model_dir(name: str, own_dir: Path | None, weights_dir: Path) -> Path | None:
    """The user's own folder, else the one made of shipped weights; None leaves it to PaddleX, which downloads."""
    if own_dir is not None:
        if not (own_dir / "inference.yml").is_file():
            raise EngineUnavailable(
                f"{own_dir}: no inference.yml there; name the folder of an exported PaddleOCR model"
            )
        return own_dir
    return prepared_model_dir(name, weights_dir) if name in WEIGHTS_IN_WHEEL else None


def _folder_version(folder: Path | None) -> str:
    """Changes when the files in a user's own folder do."""
    if folder is None:
        return "default"
    return ",".join(
        f"{file.name}:{file.stat().st_size}" for file in sorted(folder.iterdir()) if file.is_file()
    )


def _lines(page: Mapping[str, Any]) -> Iterator[Line]:
    """Lines of one answer; an entry of ``text_word`` that is white space parts two words."""
    for score, texts, boxes in zip(
        page["rec_scores"], page["text_word"], page["text_word_boxes"], strict=True
    ):
        words = list(_words(texts, boxes, min(max(float(score), 0.0), 1.0)))
        if words:
            yield line_of(words)


def _words(texts: Sequence[str], boxes: Any, confidence: float) -> Iterator[Word]:
    """The network cuts a line into runs of letters, of digits and single signs; a word is what no space parts, and
    what no sign parts after which the network has lost the space ("age,gender")."""
    text = ""
    parts: list[Any] = []
    has_ideographs = any(unicodedata.category(character) == "Lo" for piece in texts for character in piece)
    for piece, box in [*zip(texts, boxes, strict=True), (" ", None)]:
        cleaned = clean_text(piece if has_ideographs else piece.translate(NARROW_SIGNS))
        if parts and (not piece.strip() or _lost_a_space(text, cleaned)):
            yield Word(text=text, box=_around(parts), confidence=confidence)
            text, parts = "", []
        if cleaned:
            text += cleaned
            parts.append(box)


def _lost_a_space(text: str, following: str) -> bool:
    """Prose has a space between a sign that ends a clause and a letter; numbers, times and addresses have none."""
    before, sign = text[:-1], text[-1]
    if not (before and following[:1].isalpha() and before[-1] not in "/:.@"):
        return False
    if sign in ",;:":
        return True
    return sign == "." and following[0].isupper() and before[-2:].islower() and before[-2:].isalpha()


def _around(boxes: Sequence[Any]) -> Box:
    corners = np.asarray(boxes, dtype=float)
    left, top = corners[:, :2].min(axis=0)
    right, bottom = corners[:, 2:].max(axis=0)
    return Box(float(left), float(top), float(right), float(bottom))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PaddleX announces every model in colour, and its dependencies warn on import."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
