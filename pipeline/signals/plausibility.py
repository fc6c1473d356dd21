"""Does the text look like words? Cheap shape checks that hold for every script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from models.text import Word

LEAST_WORDS: Final = 12
"""Shares over fewer words than this say nothing."""

_EDGE_PUNCTUATION: Final = "\"'“”‘’«»()[]{}<>.,;:!?…*•-–—_/|#&%$€£¥°§©®+="
_WORDLIKE: Final = re.compile(
    r"[^\W\d_]+(?:['’\-–./&@][^\W\d_]+)*|[\d.,:/\-–%]*\d[\d.,:/\-–%]*[^\W\d_]{0,3}|[^\W\d_]{1,3}\d+"
)


def odd_word_share(words: Sequence[Word]) -> float | None:
    """The share of words that are neither letters, a number, nor letters joined by a hyphen, dot or
    apostrophe.

    Specks, broken handwriting and misread scripts give ``|``, ``~f`` or ``c0n§`` instead. Case that changes
    in the middle of a word (``oFfIce``) is odd too. None for under ``LEAST_WORDS`` words.
    """
    if len(words) < LEAST_WORDS:
        return None
    return sum(_is_odd(word.text) for word in words) / len(words)


def _is_odd(text: str) -> bool:
    core = _without_marks(text).strip(_EDGE_PUNCTUATION)
    if not core:
        return len(text) < 3 and text not in {
            "-",
            "–",
            "—",
            "&",
            "•",
            "*",
            "%",
            "$",
            "€",
            "£",
            "+",
            "=",
            "/",
            ":",
        }
    return _WORDLIKE.fullmatch(core) is None or re.search(r"[a-zà-ÿ][A-Z]+[a-zà-ÿ]", core) is not None


def _without_marks(text: str) -> str:
    """Vowel points and accents are no letters of their own: pointed Hebrew, Arabic, Devanagari."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text)
    bare = "".join(
        character for character in decomposed if not unicodedata.category(character).startswith("M")
    )
    return unicodedata.normalize("NFC", bare)
