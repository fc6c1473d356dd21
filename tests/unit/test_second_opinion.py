"""When a second engine is asked, and when its reading replaces the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from PIL import Image

from models.errors import EngineError
from models.geometry import Box
from models.page import PageReading, PageScore, ReadBy, Region, RegionKind, Signal
from models.text import Line, Word
from pipeline.ports import PageRaster
from pipeline.reading_order import ordered_blocks
from pipeline.rows import line_of
from pipeline.second_opinion import (
    SecondOpinion,
    is_wanted,
    joined_score,
    second_opinion,
    with_opinion,
    word_agreement,
)
from pipeline.signals.names import SignalName
from pipeline.upright import UprightPage, as_delivered

RECEIPT = "TAX INVOICE SUPER GLUE 5.20 PAPER 8.90 TOTAL 14.10 CASH CHANGE THANK YOU"
GARBLED = "TAX 1NVOICE SUPER GLUE 5.20 PAPFR 8.90 TOTAL 14.10 CASH CHANGF THANK YOU"
BOX = Box(10, 10, 40, 20)


def lines(text: str, confidence: float = 0.9) -> tuple[Line, ...]:
    return tuple(
        line_of([Word(text=word, box=Box(10, 20 * row, 60, 20 * row + 12), confidence=confidence)])
        for row, word in enumerate(text.split())
    )


@dataclass
class Second:
    answer: tuple[Line, ...] | EngineError
    name: str = "paddleocr"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        if isinstance(self.answer, EngineError):
            raise self.answer
        return self.answer


def upright() -> UprightPage:
    return as_delivered(PageRaster(page_number=1, image=Image.new("L", (400, 600), "white"), dpi=100))


def reading(text: str, confidence: float = 0.8) -> PageReading:
    return PageReading(read_by=ReadBy.TESSERACT, blocks=ordered_blocks(lines(text, confidence), 400, 600))


def opinion(first: str, second: tuple[Line, ...], confidence: float = 0.8) -> SecondOpinion:
    found = second_opinion(upright(), reading(first, confidence), Second(second))
    assert found is not None
    return found


def score(**measured: float | None) -> PageScore:
    return PageScore(
        signals=tuple(Signal(name=name, measured=value) for name, value in measured.items()), regions=()
    )


@pytest.mark.parametrize(
    ("measured", "wanted"),
    [
        ({"unsure_character_share": 0.05}, False),
        ({"unsure_character_share": 0.3}, True),
        ({"unsure_character_share": None}, False),
        ({}, False),
        ({"unsure_character_share": 0.9, "script_unread": 1.0}, False),
    ],
)
def test_only_unsure_readings_of_a_known_script_are_read_twice(
    measured: dict[str, float | None], wanted: bool
) -> None:
    assert is_wanted(reading(RECEIPT), score(**measured)) is wanted
    assert not is_wanted(reading("- 214 -"), score(**measured))


def test_where_both_see_the_same_text_the_second_reading_is_taken() -> None:
    found = opinion(GARBLED, lines(RECEIPT))

    assert found.agreement == pytest.approx(1 - 3 / 13, abs=0.1)
    assert found.reading.read_by is ReadBy.PADDLEOCR
    assert " ".join(line.text for line in found.reading.lines) == RECEIPT


def test_where_they_see_different_texts_the_first_reading_stays() -> None:
    found = opinion("שלום עולם טוב מאד היום", lines("wnw 71y a10 TNN DI'n"))

    assert (found.agreement, found.reading.read_by) == (0.0, ReadBy.TESSERACT)


def test_a_first_reading_that_is_all_but_guessed_gives_way_though_they_disagree() -> None:
    found = opinion("Tee! be ow lg ven", lines("besi est mon testament je"), confidence=0.3)

    assert found.reading.read_by is ReadBy.PADDLEOCR


def test_a_second_reading_that_lost_much_of_the_text_is_not_taken() -> None:
    found = opinion(RECEIPT, lines("TAX INVOICE SUPER GLUE 5.20 PAPER"))

    assert found.agreement > 0.4
    assert found.reading.read_by is ReadBy.TESSERACT


def test_ideographs_that_the_first_engine_cannot_read_are_taken_when_sure() -> None:
    columns = "雪国の長いトンネルを抜けると 夜の底が白くなった 信号所に汽車が止まった"

    sure, unsure = (opinion("E Ip iz FF", lines(columns, confidence)) for confidence in (0.98, 0.8))

    assert (sure.reading.read_by, sure.settled) == (ReadBy.PADDLEOCR, pytest.approx(0.98))
    assert (unsure.reading.read_by, unsure.settled) == (ReadBy.TESSERACT, 0)


def test_an_engine_that_fails_costs_nothing_but_its_opinion() -> None:
    assert second_opinion(upright(), reading(RECEIPT), Second(EngineError("paddleocr: no"))) is None


def test_what_both_read_alike_is_settled() -> None:
    alike = SecondOpinion(reading=reading(RECEIPT), agreement=0.75, settled=0.75)
    judged = with_opinion(score(unsure_character_share=0.4, unsettled_character_share=0.4), alike)

    assert {signal.name: signal.measured for signal in judged.signals} == {
        "unsure_character_share": 0.4,
        "unsettled_character_share": pytest.approx(0.1),
        "engine_agreement": 0.75,
    }


def test_agreement_knows_no_case_order_or_punctuation() -> None:
    assert word_agreement(lines("Cash, total"), lines("TOTAL cash")) == 1
    assert word_agreement(lines("cash"), lines("hand")) == 0
    assert word_agreement((), ()) == 0


def test_how_sure_the_first_was_and_what_a_hand_wrote_are_kept_when_the_second_is_followed() -> None:
    written = Region(kind=RegionKind.HANDWRITING, box=BOX)
    stamp = Region(kind=RegionKind.STAMP, box=BOX)
    first = PageScore(
        signals=(
            Signal(name=SignalName.UNSURE_CHARACTER_SHARE, measured=0.3),
            Signal(name=SignalName.UNCOVERED_LINE_SHARE, measured=0.4),
            Signal(name=SignalName.STAMP_WORDS, measured=1.0),
        ),
        regions=(written,),
    )
    second = PageScore(
        signals=(
            Signal(name=SignalName.UNSURE_CHARACTER_SHARE, measured=0.0),
            Signal(name=SignalName.UNCOVERED_LINE_SHARE, measured=0.0),
            Signal(name=SignalName.STAMP_WORDS, measured=0.0),
        ),
        regions=(stamp,),
    )

    joined = joined_score(first, second)

    assert {signal.name: signal.measured for signal in joined.signals} == {
        SignalName.UNSURE_CHARACTER_SHARE: 0.3,
        SignalName.UNCOVERED_LINE_SHARE: 0.0,
        SignalName.STAMP_WORDS: 1.0,
    }
    assert joined.regions == (written, stamp)
