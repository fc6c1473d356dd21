"""Tesseract's own guess at script and direction (``--psm 0``), and quick readings of a part of a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytesseract
import structlog
from PIL import Image

from models.errors import EngineUnavailable
from models.text import Line
from pipeline.engines.tesseract_tsv import lines_from_tsv
from pipeline.ports import ScriptSight

log = structlog.get_logger()

T = TypeVar("T")

SIGHT_TIMEOUT_S = 20.0
GLANCE_TIMEOUT_S = 20.0
"""Either takes a second, seldom three."""


class TesseractScripts:
    """A page of which Tesseract can say nothing (too few letters, no answer in time) is no failure: it keeps its
    first reading."""

    def __init__(self) -> None:
        os.environ["OMP_THREAD_LIMIT"] = "1"

    def sight(self, image: Image.Image, *, dpi: float) -> ScriptSight | None:
        def ask(file: str) -> ScriptSight:
            found = pytesseract.image_to_osd(
                file,
                config=f"--dpi {round(dpi)}",
                timeout=SIGHT_TIMEOUT_S,
                output_type=pytesseract.Output.DICT,
            )
            return ScriptSight(
                script=found["script"],
                confidence=found["script_conf"],
                turn_deg=found["rotate"] % 360,
                turn_confidence=found["orientation_conf"],
            )

        return _answer(ask, image)

    def glance(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        def ask(file: str) -> tuple[Line, ...]:
            tsv: str = pytesseract.image_to_data(
                file,
                lang="+".join(languages),
                config=f"--oem 1 --psm 11 -c tessedit_do_invert=0 --dpi {round(dpi)}",
                timeout=GLANCE_TIMEOUT_S,
                output_type=pytesseract.Output.STRING,
            )
            return lines_from_tsv(tsv)

        return _answer(ask, image) or ()


def _answer(ask: Callable[[str], T], image: Image.Image) -> T | None:
    grey = image if image.mode == "L" else image.convert("L")
    with TemporaryDirectory(prefix="doctriage-") as folder:
        file = Path(folder, "page.pgm")
        grey.save(file, format="PPM")
        try:
            return ask(str(file))
        except pytesseract.TesseractNotFoundError as error:
            raise EngineUnavailable("tesseract is not installed; apt-get install tesseract-ocr") from error
        except (pytesseract.TesseractError, RuntimeError, UnicodeDecodeError) as error:
            log.info("script_not_seen", reason=str(error)[-300:])
            return None
