"""What every OCR engine's raw text goes through before it is a word of the page."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from models.text import Line

_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT = frozenset("\u200c\u200d")
"""Zero-width joiner and non-joiner spell words in Persian and in the Indic scripts."""

SIGNS_ALONE_CONFIDENCE = 0.6
"""Engines read specks and rules as signs (". ' | —"); sure ones, such as a dash in a cell, are above this."""


def clean_text(raw: str) -> str:
    """``raw`` in NFC, without control, format and unassigned characters, its white space single spaces."""
    composed = unicodedata.normalize("NFC", raw)
    if not composed.isascii() or not composed.isprintable():
        spaced = (" " if c.isspace() else c for c in composed)
        composed = "".join(
            c for c in spaced if c in _KEPT or unicodedata.category(c) not in _DROPPED_CATEGORIES
        )
    return " ".join(composed.split())


def without_rubbish(lines: Iterable[Line]) -> tuple[Line, ...]:
    """``lines`` without those that hold neither a letter nor a digit and that the engine isn't sure of."""
    return tuple(line for line in lines if _has_text(line.text) or _is_sure(line))


def _has_text(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _is_sure(line: Line) -> bool:
    return line.confidence is not None and line.confidence >= SIGNS_ALONE_CONFIDENCE
