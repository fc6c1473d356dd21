"""How far letters reach above the x-height and below the baseline, for the scripts where that differs by
letter."""

from __future__ import annotations

import unicodedata
from enum import Enum
from functools import cache
from statistics import median
from typing import Final

_LOW: Final = frozenset("acegmnopqrsuvwxyzıæœøавгежзиклмнопрстухцчшщъыьэюяαγεικμνοπρστυχω")
_HIGH: Final = frozenset("bdfhklßþбђћβδθλξζל")
_DESCENDING: Final = frozenset("gpqyjþруцщџфβγζημξρφχψךןףץק")

LOW_EM: Final = 0.5
HIGH_EM: Final = 0.72
DESCENT_EM: Final = 0.21
SQUARE_EM: Final = 0.88
OTHER_EM: Final = 0.75
"""Typical reaches of text faces in ems: x-height, capitals and ascenders, descenders, ideographs, other
scripts."""


class Top(Enum):
    LOW = "x-height"
    HIGH = "ascender"


@cache
def base_letter(character: str) -> str:
    """The letter without its accents."""
    return unicodedata.normalize("NFD", character)[0]


@cache
def top_of(character: str) -> Top | None:
    """None where faces differ (digits, t, i) or where the script has no such classes."""
    if len(unicodedata.normalize("NFD", character)) > 1:
        return None
    if character in _LOW:
        return Top.LOW
    if character in _HIGH:
        return Top.HIGH
    is_cased = character.isalpha() and character.isupper() and character != "Ϳ"
    return Top.HIGH if is_cased and ord(character) < 0x530 else None


@cache
def descends(character: str) -> bool:
    return base_letter(character) in _DESCENDING


@cache
def is_square(character: str) -> bool:
    """An ideograph, a kana or a Hangul syllable: drawn in a full square."""
    code = ord(character)
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3 or code >= 0x20000


@cache
def _ascent_em(character: str) -> float | None:
    if not character.isalnum():
        return None
    if is_square(character):
        return SQUARE_EM
    if character in _LOW:
        return LOW_EM
    return HIGH_EM if ord(character) < 0x530 else OTHER_EM


def em_px(text: str, height_px: float) -> float | None:
    """The font size behind a tight box around ``text``; None for punctuation alone."""
    ascents = [ascent for ascent in map(_ascent_em, text) if ascent is not None]
    if not ascents:
        return None
    drop = DESCENT_EM if any(map(descends, text)) else 0.0
    return height_px / (max(ascents) + drop)


def typical_em_px(words: list[tuple[str, float]]) -> float | None:
    """The median font size of words given as text and box height, by number of characters."""
    sizes = [
        size for text, height in words if (size := em_px(text, height)) for _ in range(min(len(text), 40))
    ]
    return median(sizes) if sizes else None
