"""The words of one page, by the cheapest reader that is good enough: nothing for a blank page, the PDF's own
text layer when it is sound, else OCR of the page turned upright and straight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from models.errors import PageNotRendered
from models.page import PageReading, ReadBy, Signal
from models.text import Line
from pipeline.blank import judge_blank
from pipeline.ports import (
    LanguageIdentifier,
    OcrEngine,
    OrientationDetector,
    PageRaster,
    SkewDetector,
    TextLayer,
)
from pipeline.reading_order import ordered_blocks
from pipeline.settings import ReadSettings
from pipeline.signals.names import SignalName
from pipeline.text_layer import TextLayerVerdict, judge_text_layer
from pipeline.upright import UprightPage, as_delivered, turned


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLatin:
    """Pages that were read as English and turn out to be in another language of Latin script are read again with
    ``languages``, a model of them all, and the surer reading stays. The identifier's answers on 170 real pages were
    right whenever it gave ``min_probability``; garbled and short texts stay far below it."""

    identifier: LanguageIdentifier
    languages: tuple[str, ...]
    min_probability: float = 0.9

    def is_foreign(self, lines: Iterable[Line]) -> bool:
        language, probability = self.identifier.identify(" ".join(line.text for line in lines))
        return language != "en" and probability >= self.min_probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """What reads a page on the CPU."""

    ocr: OcrEngine
    orientation: OrientationDetector
    skew: SkewDetector
    other_latin: OtherLatin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """When a page is turned before OCR.

    A turn needs ``min_orientation_confidence``. When the turned page then reads with a mean confidence below
    ``doubtful_confidence``, it is read as delivered too. Turned by a half, it must read better by
    ``half_turn_advantage``: the network takes upright Hebrew, which no reader of Latin can judge, for Latin
    upside down. Turned by a quarter with ``sure_orientation_confidence``, only a reading so much worse
    speaks against it (handwriting reads badly either way). Lines are straightened from ``min_skew_deg`` up
    to ``max_skew_deg`` (more is a slanted picture, not a scan): at 2 degrees Tesseract loses a tenth of a page,
    below 1 resampling costs small print more than straight lines gain.
    """

    min_orientation_confidence: float = 0.5
    sure_orientation_confidence: float = 0.8
    doubtful_confidence: float = 0.75
    half_turn_advantage: float = 0.1
    min_skew_deg: float = 1.0
    max_skew_deg: float = 12.0


RULES: Final = TurnRules()
LEGIBLE_CONFIDENCE: Final = 0.75
"""Least mean confidence of a reading that proves a doubtful page not to be blank."""
DAMAGED_SCAN: Final = (
    "the scanned image of this page is damaged and nothing of it can be seen; export the PDF anew, or scan the page "
    "again, and submit that"
)


def read_page(
    raster: PageRaster, layer: TextLayer | None, *, readers: Readers, settings: ReadSettings
) -> tuple[PageReading, UprightPage]:
    """The reading, and the upright page that its boxes are in. Raises ``EngineError`` or
    ``EngineUnavailable``, and ``PageNotRendered`` for a damaged scan that shows nothing."""
    reading, page = _read(raster, layer, readers, settings)
    if not raster.is_damaged:
        return reading, page
    if reading.read_by is ReadBy.NOTHING:
        raise PageNotRendered(DAMAGED_SCAN)
    damage = Signal(name=SignalName.PAGE_IMAGE_DAMAGED, measured=1.0)
    return replace(reading, signals=(*reading.signals, damage)), page


def _read(
    raster: PageRaster, layer: TextLayer | None, readers: Readers, settings: ReadSettings
) -> tuple[PageReading, UprightPage]:
    verdict = None if layer is None else judge_text_layer(layer, raster)
    signals = () if verdict is None else verdict.signals
    if verdict is not None and verdict.is_sound:
        return _of_layer(verdict, raster)
    blank = judge_blank(raster)
    nothing = PageReading(read_by=ReadBy.NOTHING, blocks=(), signals=(*signals, *blank.signals))
    if blank.is_blank:
        return nothing, as_delivered(raster)
    lines, page, turn_signals = _read_upright(raster, readers, settings)
    if blank.is_doubtful and mean_confidence(lines) < LEGIBLE_CONFIDENCE:
        return nothing, as_delivered(raster)
    reading = PageReading(
        read_by=ReadBy(readers.ocr.name),
        blocks=ordered_blocks(lines, page.raster.image.width, page.raster.image.height),
        signals=(*signals, *blank.signals, *turn_signals),
    )
    return reading, page


def _of_layer(verdict: TextLayerVerdict, raster: PageRaster) -> tuple[PageReading, UprightPage]:
    page = turned(raster, rotation_deg=verdict.rotation_deg, skew_deg=0.0)
    blocks = ordered_blocks(verdict.lines, page.raster.image.width, page.raster.image.height)
    return PageReading(read_by=ReadBy.TEXT_LAYER, blocks=blocks, signals=verdict.signals), page


def _read_upright(
    raster: PageRaster, readers: Readers, settings: ReadSettings
) -> tuple[tuple[Line, ...], UprightPage, tuple[Signal, ...]]:
    rotation_deg, confidence = readers.orientation.quarter_turn(raster.image)
    if confidence < RULES.min_orientation_confidence:
        rotation_deg = 0
    lines, page = _read_turned(raster, rotation_deg, readers, settings)
    if rotation_deg and mean_confidence(lines) < RULES.doubtful_confidence:
        other_lines, other_page = _read_turned(raster, 0, readers, settings)
        advantage = mean_confidence(lines) - mean_confidence(other_lines)
        if advantage < _needed_advantage(rotation_deg, confidence):
            lines, page = other_lines, other_page
    lines = _in_its_language(lines, page, readers)
    signals = (
        Signal(name="rotation_deg", measured=page.rotation_deg),
        Signal(name="orientation_confidence", measured=round(confidence, 4)),
        Signal(name="skew_deg", measured=round(page.skew_deg, 2)),
    )
    return lines, page, signals


def _in_its_language(lines: tuple[Line, ...], page: UprightPage, readers: Readers) -> tuple[Line, ...]:
    other = readers.other_latin
    if other is None or not other.is_foreign(lines):
        return lines
    again = readers.ocr.read(page.raster.image, dpi=page.raster.dpi, languages=other.languages)
    return max(lines, again, key=mean_confidence)


def _needed_advantage(rotation_deg: int, orientation_confidence: float) -> float:
    """How much surer than the page as delivered a doubtful turned page must read."""
    is_sure_quarter = rotation_deg != 180 and orientation_confidence >= RULES.sure_orientation_confidence
    return -RULES.half_turn_advantage if is_sure_quarter else RULES.half_turn_advantage


def _read_turned(
    raster: PageRaster, rotation_deg: int, readers: Readers, settings: ReadSettings
) -> tuple[tuple[Line, ...], UprightPage]:
    page = turned(raster, rotation_deg=rotation_deg, skew_deg=0.0)
    skew_deg = readers.skew.skew_deg(page.raster.image)
    if RULES.min_skew_deg <= abs(skew_deg) <= RULES.max_skew_deg:
        page = turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg)
    lines = readers.ocr.read(page.raster.image, dpi=page.raster.dpi, languages=settings.first_languages)
    return lines, page


def mean_confidence(lines: Iterable[Line]) -> float:
    """Mean word confidence weighted by characters, 0 to 1; 0 where nothing was read."""
    words = [word for line in lines for word in line.words if word.confidence is not None]
    characters = sum(len(word.text) for word in words)
    if not characters:
        return 0.0
    return sum(len(word.text) * (word.confidence or 0.0) for word in words) / characters
