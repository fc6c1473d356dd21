"""Raw engine text made clean, and rubbish lines dropped."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.geometry import Box
from models.text import Line, Word
from pipeline.engines.ocr_text import clean_text, without_rubbish
from pipeline.rows import line_of


def line(text: str, confidence: float) -> Line:
    return line_of([Word(text=text, box=Box(0, 0, 10, 10), confidence=confidence)])


@given(st.text(max_size=40))
def test_clean_text_is_composed_and_holds_nothing_invisible(raw: str) -> None:
    text = clean_text(raw)
    assert unicodedata.is_normalized("NFC", text)
    assert all(unicodedata.category(c) not in {"Cc", "Cs", "Co", "Zl", "Zp"} for c in text)
    assert text == text.strip()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("soft\u00adhyphen\ufeff", "softhyphen"),
        ("tab\tand\nbreak", "tab and break"),
        ("\x00\x07bell", "bell"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
    ],
)
def test_what_stays_and_what_goes(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


@pytest.mark.parametrize(
    ("text", "confidence", "is_kept"),
    [("~ .'", 0.3, False), ("—", 0.95, True), ("7", 0.1, True), ("\u5e74", 0.1, True), ("|", 0.2, False)],
)
def test_a_line_of_doubtful_signs_is_dropped(text: str, confidence: float, is_kept: bool) -> None:
    assert bool(without_rubbish([line(text, confidence)])) is is_kept
