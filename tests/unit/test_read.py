"""Which reader reads a page, which way up, and when nothing is read at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from PIL import Image

from models.geometry import Box
from models.page import ReadBy
from models.text import Line, Word
from pipeline.ports import PageRaster
from pipeline.read import Readers, read_page
from pipeline.settings import ReadSettings
from tests.fakes.engines import NoSkew, NoTurn
from tests.fakes.papers import paper, printed, shown_through

SIZE = (827, 1169)


@dataclass
class OcrByShape:
    """Reads "words on the page" with a confidence that may depend on which way up the page comes."""

    confidence_of: Callable[[Image.Image], float]
    seen: list[Image.Image] = field(default_factory=list)
    name: str = "tesseract"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        self.seen.append(image)
        confidence = self.confidence_of(image)
        box = Box(100, 100, 300, 130)
        words = tuple(Word(text=word, box=box, confidence=confidence) for word in ("words", "here"))
        return (Line(text="words here", box=box, confidence=confidence, words=words),) if confidence else ()


@dataclass
class Turn:
    turn_deg: int
    confidence: float

    def quarter_turn(self, image: Image.Image) -> tuple[int, float]:
        return self.turn_deg, self.confidence


@dataclass
class Skew:
    deg: float

    def skew_deg(self, image: Image.Image) -> float:
        return self.deg


def page(image: Image.Image | None = None) -> PageRaster:
    image = printed(paper(100), 100, (1, 2), "A line of plain words") if image is None else image
    return PageRaster(page_number=1, image=image, dpi=100)


def readers(ocr: OcrByShape, turn: Turn | None = None, skew: Skew | None = None) -> Readers:
    return Readers(ocr=ocr, orientation=turn or NoTurn(), skew=skew or NoSkew())


def test_a_blank_page_is_never_shown_to_an_engine() -> None:
    ocr = OcrByShape(lambda image: 0.99)
    reading, upright = read_page(page(paper(100)), None, readers=readers(ocr), settings=ReadSettings())
    assert (reading.read_by, reading.lines, ocr.seen) == (ReadBy.NOTHING, (), [])
    assert upright.rotation_deg == 0


@pytest.mark.parametrize(
    ("confidence", "read_by"), [(0.0, ReadBy.NOTHING), (0.3, ReadBy.NOTHING), (0.9, ReadBy.TESSERACT)]
)
def test_a_doubtful_page_is_blank_unless_words_are_legible(confidence: float, read_by: ReadBy) -> None:
    raster = PageRaster(page_number=1, image=shown_through(100, contrast=45, blur_px=2), dpi=100)
    reading, _ = read_page(
        raster, None, readers=readers(OcrByShape(lambda image: confidence)), settings=ReadSettings()
    )
    assert reading.read_by is read_by


def test_a_plain_page_that_no_engine_can_read_is_not_blank() -> None:
    reading, _ = read_page(
        page(), None, readers=readers(OcrByShape(lambda image: 0.0)), settings=ReadSettings()
    )
    assert (reading.read_by, reading.lines) == (ReadBy.TESSERACT, ())


@pytest.mark.parametrize("turn_deg", [90, 180, 270])
def test_a_turned_page_that_reads_well_is_read_once(turn_deg: int) -> None:
    ocr = OcrByShape(lambda image: 0.95)
    _, upright = read_page(page(), None, readers=readers(ocr, Turn(turn_deg, 0.92)), settings=ReadSettings())
    assert upright.rotation_deg == turn_deg
    assert len(ocr.seen) == 1
    assert (upright.delivered_width_px, upright.delivered_height_px) == SIZE


@pytest.mark.parametrize(
    ("turn_deg", "orientation", "turned", "delivered", "expected_deg"),
    [
        (
            180,
            0.92,
            0.40,
            0.45,
            0,
        ),  # neither is legible: Hebrew, say, which the network takes for upside down
        (180, 0.92, 0.45, 0.40, 0),
        (180, 0.92, 0.70, 0.35, 180),
        (90, 0.92, 0.40, 0.42, 90),  # handwriting on its side
        (90, 0.92, 0.40, 0.80, 0),
        (90, 0.60, 0.40, 0.42, 0),
        (270, 0.60, 0.70, 0.30, 270),
        (90, 0.40, 0.99, 0.10, 0),  # the network doesn't know
    ],
)
def test_a_doubtful_turn_must_prove_itself(
    turn_deg: int, orientation: float, turned: float, delivered: float, expected_deg: int
) -> None:
    raster = page()

    def confidence_of(image: Image.Image) -> float:
        return delivered if image is raster.image else turned

    _, upright = read_page(
        raster,
        None,
        readers=readers(OcrByShape(confidence_of), Turn(turn_deg, orientation)),
        settings=ReadSettings(),
    )
    assert upright.rotation_deg == expected_deg


@pytest.mark.parametrize(
    ("measured", "straightened"),
    [(0.3, 0.0), (-0.9, 0.0), (2.5, 2.5), (-2.5, -2.5), (1.36789, 1.37), (14.0, 0.0)],
)
def test_only_a_skew_that_matters_is_straightened(measured: float, straightened: float) -> None:
    reading, upright = read_page(
        page(),
        None,
        readers=readers(OcrByShape(lambda image: 0.9), skew=Skew(measured)),
        settings=ReadSettings(),
    )
    assert upright.skew_deg == straightened
    assert {s.name: s.measured for s in reading.signals}["skew_deg"] == straightened
