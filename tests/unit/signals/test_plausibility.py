from __future__ import annotations

import pytest

from models.geometry import Box
from models.text import Word
from pipeline.signals.plausibility import odd_word_share


def share(*texts: str) -> float | None:
    return odd_word_share([Word(text=text, box=Box(0, 0, 1, 1), confidence=0.9) for text in texts])


@pytest.mark.parametrize(
    "text",
    [
        "house", "Straße", "d’accord", "(well-known)", "U.S.A.", "1,234.50", "12/03/2022", "§12", "10kg", "&",
        "—", "дом", "日本語", "שלום", "R2D2"[:2], "COVID-19,"[:5], "“quoted”", "$4.99", "25%",
        "שָׁלוֹם", "हिन्दी", "مُحَمَّد", "naïve",
    ],
)  # fmt: skip
def test_words_of_any_script_and_numbers_are_plausible(text: str) -> None:
    assert share(*[text] * 12) == 0


@pytest.mark.parametrize("text", ["|", "~", "a~b", "c0n§t", "oFfIce", "x;y", "{{", "th<e"])
def test_debris_is_odd(text: str) -> None:
    assert share(*[text] * 12) == 1


def test_a_dozen_words_are_needed() -> None:
    assert share(*["|"] * 11) is None


def test_shares_are_counted_by_word() -> None:
    assert share(*["good"] * 9, "|", "~", "a~b") == pytest.approx(0.25)
