"""Score: every signal of one page, measured on one small picture and the words."""

from __future__ import annotations

from collections.abc import Sequence

from models.page import PageReading, PageScore, ReadBy, Region, RegionKind, Signal
from pipeline.legibility import text_height_px
from pipeline.ports import LayoutDetector
from pipeline.signals.confidence import ConfidenceSummary, summarise_confidence
from pipeline.signals.coverage import Coverage, UncoveredArea, measure_coverage
from pipeline.signals.figures import OneLook, find_figures, outside_figures
from pipeline.signals.handwriting import (
    NO_HANDWRITING,
    Handwriting,
    find_handwriting,
    handwriting_likeness,
)
from pipeline.signals.names import SignalName
from pipeline.signals.picture import PictureQuality, measure_picture
from pipeline.signals.plausibility import odd_word_share
from pipeline.signals.rules import Rules, find_rules
from pipeline.signals.stamp_words import count_stamp_words
from pipeline.signals.stamps import Stamp, find_stamps
from pipeline.signals.tables import TableEvidence, find_tables
from pipeline.signals.view import PageView, view_page
from pipeline.upright import UprightPage

MOST_UNCOVERED_REGIONS = 40
"""A page of handwriting has hundreds of strokes without a word; the largest groups are evidence enough."""

MOST_HANDWRITING_REGIONS = 40

MOST_UNSURE_SHARE = 0.4
"""Beyond this the page is escalated for its text, and the layout network's opinion would change nothing."""

DOUBTFUL_HANDWRITING = 0.35
"""From here on handwriting counts, and the layout network is asked whether it is a drawing."""

HIDDEN_LAYER_FIT = "text_layer_hidden_fit"
"""Measured where the words of the text layer are not drawn but lie under a picture."""

LEAST_STAMP_STRENGTH = 0.6
"""Weaker shapes are measured but not shown as regions."""


def score_page(upright: UprightPage, reading: PageReading, *, layout: LayoutDetector) -> PageScore:
    """All boxes are in the upright page. Costs about 0.1 s, and 0.2 s more where the layout network is
    asked.

    A blank page, which no reader was asked to read, has no signals but those of the reading and that it is
    blank.
    """
    if reading.read_by is ReadBy.NOTHING:
        return PageScore(signals=(*reading.signals, Signal(name=SignalName.BLANK, measured=1.0)), regions=())
    words = tuple(word for line in reading.lines for word in line.words)
    view = view_page(upright.raster.image, words)
    rules = find_rules(view)
    coverage = measure_coverage(view, rules)
    confidence = summarise_confidence(words)
    is_readable = confidence is None or confidence.unsure_share < MOST_UNSURE_SHARE
    look = OneLook(layout)
    tables = find_tables(view, rules, look, may_ask_network=is_readable)
    stamps = find_stamps(view, rules)
    handwriting = NO_HANDWRITING
    if _may_be_written_on(reading):
        handwriting = _handwriting(view, rules, stamps, look if is_readable else None)
    signals = (
        *_text_signals(confidence, odd_word_share(words)),
        *_ink_signals(coverage, confidence),
        *_handwriting_signals(handwriting),
        *_table_signals(tables),
        Signal(name=SignalName.STAMP_STRENGTH, measured=_rounded(stamps[0].strength if stamps else 0.0)),
        Signal(name=SignalName.STAMP_WORDS, measured=float(count_stamp_words(reading.lines))),
        *_picture_signals(measure_picture(view)),
        Signal(name=SignalName.TEXT_HEIGHT_PX, measured=_rounded(text_height_px(reading.lines))),
    )
    return PageScore(
        signals=(*reading.signals, *signals),
        regions=(
            *tables.regions,
            *_stamp_regions(stamps, view),
            *_handwriting_regions(handwriting, view),
            *_uncovered_regions(coverage.areas, view),
        ),
        tables=tables.tables,
    )


def _handwriting(
    view: PageView, rules: Rules, stamps: Sequence[Stamp], layout: LayoutDetector | None
) -> Handwriting:
    """Without what lies in a figure, where ``layout`` may be asked."""
    found = find_handwriting(view, rules, stamps)
    if layout is None or found.probability < DOUBTFUL_HANDWRITING:
        return found
    return outside_figures(found, find_figures(view, layout), view)


def _may_be_written_on(reading: PageReading) -> bool:
    """A page that was drawn from its text layer was never on paper; one with a hidden layer is a scan."""
    return reading.read_by is not ReadBy.TEXT_LAYER or any(
        signal.name == HIDDEN_LAYER_FIT and signal.measured is not None for signal in reading.signals
    )


def _text_signals(confidence: ConfidenceSummary | None, odd_words: float | None) -> tuple[Signal, ...]:
    p05, p10, median, unsure = (
        (confidence.p05, confidence.p10, confidence.median, confidence.unsure_share)
        if confidence is not None
        else (None, None, None, None)
    )
    return (
        Signal(name=SignalName.CONFIDENCE_P05, measured=_rounded(p05)),
        Signal(name=SignalName.CONFIDENCE_P10, measured=_rounded(p10)),
        Signal(name=SignalName.CONFIDENCE_MEDIAN, measured=_rounded(median)),
        Signal(name=SignalName.UNSURE_CHARACTER_SHARE, measured=_rounded(unsure)),
        Signal(name=SignalName.UNSETTLED_CHARACTER_SHARE, measured=_rounded(unsure)),
        Signal(name=SignalName.ODD_WORD_SHARE, measured=_rounded(odd_words)),
    )


def _ink_signals(coverage: Coverage, confidence: ConfidenceSummary | None) -> tuple[Signal, ...]:
    likeness = handwriting_likeness(coverage, confidence)
    return (
        Signal(name=SignalName.UNCOVERED_INK_SHARE, measured=_rounded(coverage.uncovered_share)),
        Signal(name=SignalName.UNCOVERED_LINE_SHARE, measured=_rounded(coverage.uncovered_line_share)),
        Signal(name=SignalName.STROKE_IRREGULARITY, measured=_rounded(coverage.irregularity)),
        Signal(name=SignalName.HANDWRITING_LIKENESS, measured=_rounded(likeness)),
    )


def _handwriting_signals(handwriting: Handwriting) -> tuple[Signal, ...]:
    return (
        Signal(name=SignalName.HANDWRITING_PROBABILITY, measured=_rounded(handwriting.probability)),
        Signal(name=SignalName.HANDWRITING_INK, measured=_rounded(handwriting.ink)),
    )


def _table_signals(tables: TableEvidence) -> tuple[Signal, ...]:
    return (
        Signal(name=SignalName.TABLE_RULED_CELLS, measured=float(tables.ruled_cells)),
        Signal(name=SignalName.TABLE_ALIGNED_ROWS, measured=float(tables.aligned_rows)),
        Signal(name=SignalName.TABLE_LAYOUT_CONFIDENCE, measured=_rounded(tables.network_confidence)),
    )


def _picture_signals(picture: PictureQuality) -> tuple[Signal, ...]:
    return (
        Signal(name=SignalName.INK_SHARE, measured=_rounded(picture.ink_share)),
        Signal(name=SignalName.PICTURE_CONTRAST, measured=_rounded(picture.contrast)),
        Signal(name=SignalName.PICTURE_SHARPNESS, measured=_rounded(picture.sharpness)),
        Signal(name=SignalName.PICTURE_NOISE, measured=_rounded(picture.noise)),
    )


def _stamp_regions(stamps: Sequence[Stamp], view: PageView) -> tuple[Region, ...]:
    return tuple(
        Region(
            kind=RegionKind.STAMP,
            box=view.page_box(stamp.left_px, stamp.top_px, stamp.right_px, stamp.bottom_px),
            confidence=round(stamp.strength, 4),
        )
        for stamp in stamps
        if stamp.strength >= LEAST_STAMP_STRENGTH
    )


def _handwriting_regions(handwriting: Handwriting, view: PageView) -> tuple[Region, ...]:
    return tuple(
        Region(
            kind=RegionKind.HANDWRITING,
            box=view.page_box(area.left_px, area.top_px, area.right_px, area.bottom_px),
            confidence=round(area.probability, 4),
        )
        for area in handwriting.areas[:MOST_HANDWRITING_REGIONS]
    )


def _uncovered_regions(areas: Sequence[UncoveredArea], view: PageView) -> tuple[Region, ...]:
    largest = sorted(areas, key=lambda area: -area.strokes)[:MOST_UNCOVERED_REGIONS]
    return tuple(
        Region(
            kind=RegionKind.UNCOVERED_INK,
            box=view.page_box(area.left_px, area.top_px, area.right_px, area.bottom_px),
        )
        for area in largest
    )


def _rounded(measured: float | None) -> float | None:
    return None if measured is None else round(measured, 4)
