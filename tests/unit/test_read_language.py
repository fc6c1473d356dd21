"""Pages that turn out not to be English are read again, and the surer reading stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from PIL import Image

from models.errors import SettingsError
from models.geometry import Box
from models.text import Line, Word
from pipeline.engines.language import LangidIdentifier
from pipeline.ports import PageRaster
from pipeline.read import OtherLatin, Readers, read_page
from pipeline.settings import ReadSettings, load_settings
from tests.fakes.engines import NoSkew, NoTurn
from tests.fakes.pages import page_image

GERMAN = "Die Gemeinde hat beschlossen, den alten Weg am Flussufer im kommenden Jahr zu erneuern und zu beleuchten."
ENGLISH = (
    "The council has decided to renew the old path along the river next year and to put up lamps beside it."
)


@dataclass
class OcrOfLanguages:
    """Reads the same text whatever the language, with a confidence for each."""

    text: str
    confidences: dict[str, float]
    asked: list[tuple[str, ...]] = field(default_factory=list)
    name: str = "tesseract"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        self.asked.append(tuple(languages))
        confidence = self.confidences[languages[0]]
        box = Box(10, 60, 400, 90)
        words = tuple(Word(text=word, box=box, confidence=confidence) for word in self.text.split())
        return (Line(text=self.text, box=box, confidence=confidence, words=words),)


def read(ocr: OcrOfLanguages, settings: ReadSettings) -> float:
    other = OtherLatin(identifier=LangidIdentifier(), languages=("Latin",))
    readers = Readers(ocr=ocr, orientation=NoTurn(), skew=NoSkew(), other_latin=other)
    raster = PageRaster(page_number=1, image=page_image("a page with some words"), dpi=100)
    reading, _ = read_page(raster, None, readers=readers, settings=settings)
    confidence = reading.lines[0].confidence
    assert confidence is not None
    return confidence


@pytest.mark.parametrize(("latin", "kept"), [(0.95, 0.95), (0.6, 0.8)])
def test_german_is_read_again_and_the_surer_reading_stays(latin: float, kept: float) -> None:
    ocr = OcrOfLanguages(GERMAN, {"eng": 0.8, "Latin": latin})
    assert read(ocr, ReadSettings()) == pytest.approx(kept)
    assert ocr.asked == [("eng",), ("Latin",)]


@pytest.mark.parametrize("text", [ENGLISH, "x4 Gj9 //tr8 0,6"])
def test_english_and_garbage_are_read_once(text: str) -> None:
    ocr = OcrOfLanguages(text, {"eng": 0.8})
    assert read(ocr, ReadSettings()) == pytest.approx(0.8)
    assert ocr.asked == [("eng",)]


def test_auto_stands_alone() -> None:
    with pytest.raises(SettingsError, match="auto stands alone"):
        load_settings({"read": {"languages": "auto+deu"}})
