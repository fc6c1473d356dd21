"""Stamps that are words: known by what they say and by the date beside them."""

from __future__ import annotations

import pytest

from models.text import Line
from pipeline.rows import line_of
from pipeline.signals.stamp_words import count_stamp_words
from tests.unit.signals.pages import blank_page, write


def lines(*rows: tuple[str, float, float]) -> tuple[Line, ...]:
    page = blank_page()
    return tuple(line_of(write(page, text, left, top)) for text, left, top in rows)


@pytest.mark.parametrize(
    ("word", "date"),
    [
        ("RECEIVED", "DEC 11 1989"),
        ("RECEIVEN", "APR 2 1984"),
        ("PAID", "12/03/2021"),
        ("EINGEGANGEN", "4. MAI 1978"),
        ("REÇU", "17 AOÛT 1999"),
    ],
)
def test_a_stamp_word_over_a_date_counts(word: str, date: str) -> None:
    assert count_stamp_words(lines((word, 500, 100), (date, 505, 122))) == 1


def test_the_date_may_stand_in_a_line_with_other_words() -> None:
    assert count_stamp_words(lines(("RECEIVED", 500, 100), ("Product: Falcon Green", 100, 122))) == 0
    page = blank_page()
    fused = line_of([*write(page, "Product", 100, 122), *write(page, "DEC 11 1989", 505, 122)])
    assert count_stamp_words((*lines(("RECEIVED", 500, 100)), fused)) == 1


@pytest.mark.parametrize(
    "row",
    ["DATE FILED:", "YOU HAVE RECEIVED THIS", "Received", "CUSTOMER COPY", "RECEIVERS"],
)
def test_other_lines_beside_a_date_do_not(row: str) -> None:
    assert count_stamp_words(lines((row, 500, 100), ("DEC 11 1989", 505, 122))) == 0


def test_a_stamp_word_far_from_any_date_does_not() -> None:
    assert count_stamp_words(lines(("RECEIVED", 500, 100), ("DEC 11 1989", 505, 400))) == 0
