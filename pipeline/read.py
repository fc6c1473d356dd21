"""The words of one page, by the cheapest reader that is good enough: nothing for a blank page, the PDF's own
text layer when it is sound, else OCR of the page turned upright and straight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from models.errors import PageNotRendered
from models.page import PageReading, ReadBy, Signal
from models.text import Line
from pipeline.blank import judge_blank
from pipeline.language_choice import ForeignScript, LanguageChoice
from pipeline.outputs import SKEW_DECIMALS
from pipeline.ports import (
    OcrEngine,
    OrientationDetector,
    PageRaster,
    SkewDetector,
    TextLayer,
)
from pipeline.reading_order import ordered_blocks
from pipeline.settings import ReadSettings
from pipeline.signals.confidence import mean_confidence
from pipeline.signals.names import SignalName
from pipeline.text_layer import TextLayerVerdict, judge_text_layer
from pipeline.upright import UprightPage, as_delivered, turned


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """What reads a page on the CPU. ``second`` is asked about pages that ``ocr`` was unsure of."""

    ocr: OcrEngine
    orientation: OrientationDetector
    skew: SkewDetector
    language_choice: LanguageChoice | None = None
    second: OcrEngine | None = None


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
    first = settings.first_languages
    lines, page = _read_turned(raster, rotation_deg, readers, first)
    if rotation_deg and mean_confidence(lines) < RULES.doubtful_confidence:
        other_lines, other_page = _read_turned(raster, 0, readers, first)
        advantage = mean_confidence(lines) - mean_confidence(other_lines)
        if advantage < _needed_advantage(rotation_deg, confidence):
            lines, page = other_lines, other_page
    lines, page, is_unread = _in_its_language(lines, page, raster, readers)
    signals = (
        *((Signal(name=SignalName.SCRIPT_UNREAD, measured=1.0),) if is_unread else ()),
        Signal(name="rotation_deg", measured=page.rotation_deg),
        Signal(name="orientation_confidence", measured=round(confidence, 4)),
        Signal(name="skew_deg", measured=round(page.skew_deg, 2)),
    )
    return lines, page, signals


def _in_its_language(
    lines: tuple[Line, ...], page: UprightPage, raster: PageRaster, readers: Readers
) -> tuple[tuple[Line, ...], UprightPage, bool]:
    """The surest reading and its page, and whether the page's script has no installed language."""
    choice = readers.language_choice
    if choice is None:
        return lines, page, False
    found = choice.foreign_script(lines, page.raster)
    if found is not None and found.script is None:
        return lines, page, True
    if found is not None:
        again, again_page = _read_in(found, page, raster, readers)
        if choice.is_better(again, lines, found):
            return again, again_page, False
    if choice.is_other_latin(lines):
        again = readers.ocr.read(page.raster.image, dpi=page.raster.dpi, languages=choice.latin)
        lines = max(lines, again, key=mean_confidence)
    return lines, page, False


def _read_in(
    found: ForeignScript, page: UprightPage, raster: PageRaster, readers: Readers
) -> tuple[tuple[Line, ...], UprightPage]:
    if found.turn_deg:
        rotation_deg = (page.rotation_deg + found.turn_deg) % 360
        return _read_turned(raster, rotation_deg, readers, found.languages)
    return readers.ocr.read(page.raster.image, dpi=page.raster.dpi, languages=found.languages), page


def _needed_advantage(rotation_deg: int, orientation_confidence: float) -> float:
    """How much surer than the page as delivered a doubtful turned page must read."""
    is_sure_quarter = rotation_deg != 180 and orientation_confidence >= RULES.sure_orientation_confidence
    return -RULES.half_turn_advantage if is_sure_quarter else RULES.half_turn_advantage


def _read_turned(
    raster: PageRaster, rotation_deg: int, readers: Readers, languages: tuple[str, ...]
) -> tuple[tuple[Line, ...], UprightPage]:
    page = turned(raster, rotation_deg=rotation_deg, skew_deg=0.0)
    skew_deg = round(readers.skew.skew_deg(page.raster.image), SKEW_DECIMALS)
    if RULES.min_skew_deg <= abs(skew_deg) <= RULES.max_skew_deg:
        page = turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg)
    lines = readers.ocr.read(page.raster.image, dpi=page.raster.dpi, languages=languages)
    return lines, page
