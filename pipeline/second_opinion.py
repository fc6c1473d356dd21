"""A second engine reads what the first was unsure of, before anything is sent to the model.

On such pages the second (PaddleOCR) is right far more often, where both see the same text and where the first sees
next to none. Pages that go to the model anyway are read twice as well: their text is what stays when there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from models.errors import EngineError, EngineUnavailable
from models.page import PageReading, PageScore, ReadBy, RegionKind, Signal
from models.text import Line
from pipeline.letter_shapes import is_square
from pipeline.ports import OcrEngine
from pipeline.reading_order import ordered_blocks
from pipeline.signals.confidence import mean_confidence
from pipeline.signals.names import SignalName
from pipeline.upright import UprightPage

log = structlog.get_logger()

TOKEN: Final = re.compile(r"\w\w+")
"""Lone letters and digits are too often specks."""

FIRST_ENGINE_SIGNALS: Final = frozenset(
    {
        SignalName.CONFIDENCE_P05,
        SignalName.CONFIDENCE_P10,
        SignalName.CONFIDENCE_MEDIAN,
        SignalName.UNSURE_CHARACTER_SHARE,
        SignalName.UNSETTLED_CHARACTER_SHARE,
        SignalName.STROKE_IRREGULARITY,
        SignalName.HANDWRITING_LIKENESS,
        SignalName.HANDWRITING_PROBABILITY,
        SignalName.HANDWRITING_INK,
        SignalName.TABLE_RULED_CELLS,
        SignalName.TABLE_ALIGNED_ROWS,
        SignalName.TABLE_LAYOUT_CONFIDENCE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionRules:
    """When a second engine is asked, and when it is followed.

    Measured on 90 real pages: from ``unsure_share`` up the second reading had more of the words on all but one, by 0.05
    to 0.2; below, either may win. Two readings of one text agree by 0.7 and more, of Fraktur by 0.45. Where they
    agree by less than ``least_agreement`` the second had more on every page that the first read with a mean
    confidence below ``hopeless_confidence`` (handwriting 0.1 to 0.6 of the words against 0 to 0.1). It knows
    ideographs and kana, also set in columns: it is followed where ``least_ideographs`` of its letters are such, with
    ``ideograph_confidence`` (pages of them 0.75 and 0.98; Korean taken for them 0.13 and 0.89). It is never followed
    with less than ``least_letters`` of the first reading's letters: scripts that it cannot read give few or none. Nor
    is it asked about less than ``least_text`` letters, such as a page's number, which the first reads one by one.
    """

    unsure_share: float = 0.14
    least_text: int = 12
    least_agreement: float = 0.4
    hopeless_confidence: float = 0.6
    least_letters: float = 0.7
    least_ideographs: float = 0.5
    ideograph_confidence: float = 0.95


RULES: Final = OpinionRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """``reading`` is the better of the two. ``agreement`` of their words and ``settled``, the share of what the first
    was unsure of that is certain now, are from 0 to 1."""

    reading: PageReading
    agreement: float
    settled: float


def is_wanted(reading: PageReading, score: PageScore, *, rules: OpinionRules = RULES) -> bool:
    """Whether a page with some text was read without certainty, in a script that can be read."""
    measured: Mapping[str, float | None] = {signal.name: signal.measured for signal in score.signals}
    unsure = measured.get(SignalName.UNSURE_CHARACTER_SHARE)
    if unsure is None or unsure < rules.unsure_share or measured.get(SignalName.SCRIPT_UNREAD):
        return False
    return _letters(reading.lines) >= rules.least_text


def second_opinion(
    upright: UprightPage, first: PageReading, engine: OcrEngine, *, rules: OpinionRules = RULES
) -> SecondOpinion | None:
    """None where the second engine fails, which is no reason to lose a page that was read."""
    raster = upright.raster
    try:
        lines = engine.read(raster.image, dpi=raster.dpi, languages=())
    except (EngineError, EngineUnavailable) as error:
        log.warning("second_opinion_failed", engine=engine.name, reason=str(error))
        return None
    agreement = word_agreement(first.lines, lines)
    if not _is_followed(lines, first.lines, agreement, rules):
        return SecondOpinion(reading=first, agreement=agreement, settled=agreement)
    blocks = ordered_blocks(lines, raster.image.width, raster.image.height)
    return SecondOpinion(
        reading=replace(first, read_by=ReadBy(engine.name), blocks=blocks),
        agreement=agreement,
        settled=mean_confidence(lines) if _is_sure_of_ideographs(lines, rules) else agreement,
    )


def _is_followed(lines: Sequence[Line], first: Sequence[Line], agreement: float, rules: OpinionRules) -> bool:
    if _letters(lines) < rules.least_letters * _letters(first):
        return False
    if agreement >= rules.least_agreement or mean_confidence(first) < rules.hopeless_confidence:
        return True
    return _is_sure_of_ideographs(lines, rules)


def _is_sure_of_ideographs(lines: Sequence[Line], rules: OpinionRules) -> bool:
    ideographs = sum(is_square(character) for line in lines for character in line.text)
    return (
        ideographs > 0
        and ideographs >= rules.least_ideographs * _letters(lines)
        and mean_confidence(lines) >= rules.ideograph_confidence
    )


def _letters(lines: Sequence[Line]) -> int:
    return sum(character.isalnum() for line in lines for character in line.text)


def word_agreement(one: Iterable[Line], other: Iterable[Line]) -> float:
    """Dice coefficient of the words of both, without case, order or punctuation: 1 for equal readings, 0 where nothing
    is shared or either is empty."""
    first, second = _words(one), _words(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 0.0


def with_opinion(score: PageScore, opinion: SecondOpinion) -> PageScore:
    """``score`` with how far the two readings agree, and without the doubt that the second has settled."""
    agreed = Signal(name=SignalName.ENGINE_AGREEMENT, measured=round(opinion.agreement, 4))
    return replace(score, signals=(*(_settled(signal, opinion.settled) for signal in score.signals), agreed))


def _settled(signal: Signal, settled: float) -> Signal:
    if signal.name != SignalName.UNSETTLED_CHARACTER_SHARE or signal.measured is None:
        return signal
    return replace(signal, measured=round(signal.measured * (1 - settled), 4))


def joined_score(first: PageScore, second: PageScore) -> PageScore:
    """The score of a page whose second reading was followed: what no word covers, and the cells of tables, by the
    second; how sure the reading was and what was written by hand by the first, since the second engine is nearly
    always sure, and so are tables, since its boxes of words are guesses within a piece of a line. A stamp's words
    count when either has read them."""
    kept = {signal.name: signal for signal in first.signals if signal.name in FIRST_ENGINE_SIGNALS}
    stamp_words = [
        signal
        for score in (first, second)
        for signal in score.signals
        if signal.name == SignalName.STAMP_WORDS
    ]
    kept |= {signal.name: signal for signal in sorted(stamp_words, key=lambda found: found.measured or 0.0)}
    written = tuple(region for region in first.regions if region.kind is RegionKind.HANDWRITING)
    others = tuple(region for region in second.regions if region.kind is not RegionKind.HANDWRITING)
    return replace(
        second,
        signals=tuple(kept.get(signal.name, signal) for signal in second.signals),
        regions=(*written, *others),
    )


def _words(lines: Iterable[Line]) -> Counter[str]:
    return Counter(token for line in lines for token in TOKEN.findall(line.text.casefold()))
