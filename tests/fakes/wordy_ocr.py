"""An OCR engine that costs nothing and reads twenty words, so that there is something to judge a VLM's answer by.

It stands apart because every worker process imports it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from models.geometry import Box
from models.text import Line, Word
from pipeline.page_pipeline import Engines
from pipeline.read import Readers
from pipeline.settings import Settings
from tests.fakes.engines import NoPdf, NoRegions, NoSkew, NoTurn

DOUBTFUL_FROM_PX = 700
"""Pages at least so wide are read without confidence, so that triage escalates them."""

WORDS = (
    *("harbour", "ledger", "copper", "winter", "garden", "engine", "bridge", "silver", "market", "orchard"),
    *("lantern", "quarry", "ferry", "chapel", "meadow", "saddle", "tunnel", "barley", "anchor", "kettle"),
)


def words_on(width_px: int) -> tuple[str, ...]:
    """Twenty words and the page's own, in an order of its own."""
    turn = width_px % len(WORDS)
    return (*WORDS[turn:], *WORDS[:turn], f"width{width_px}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordyOcr:
    """Reads what ``words_on`` says. Each reading is a line in ``folder/calls``: the width."""

    folder: Path
    read_s: float = 0.0
    name: str = "tesseract"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        with (self.folder / "calls").open("a", encoding="ascii") as calls:
            calls.write(f"{image.width}\n")
        time.sleep(self.read_s)
        words = words_on(image.width)
        confidence = 0.2 if image.width >= DOUBTFUL_FROM_PX else 0.99
        return tuple(
            _line(words[start : start + 7], 10 + 45 * row, confidence)
            for row, start in enumerate(range(0, len(words), 7))
        )


def _line(texts: Sequence[str], top_px: int, confidence: float) -> Line:
    boxes = [Box(10 + 65 * place, top_px, 70 + 65 * place, top_px + 30) for place in range(len(texts))]
    words = tuple(
        Word(text=text, box=box, confidence=confidence) for text, box in zip(texts, boxes, strict=True)
    )
    whole = Box(10, top_px, boxes[-1].right, top_px + 30)
    return Line(text=" ".join(texts), box=whole, confidence=confidence, words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordyEngines:
    ocr: WordyOcr

    def __call__(self, settings: Settings) -> Engines:
        readers = Readers(ocr=self.ocr, orientation=NoTurn(), skew=NoSkew())
        return Engines(pdf=NoPdf(), readers=readers, layout=NoRegions(), versions={"ocr": self.ocr.version})
