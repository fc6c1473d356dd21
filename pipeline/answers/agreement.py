"""How much of what the OCR is sure of stands in an answer, in any order, and in which script both are."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from models.text import Line, Word
from pipeline.letter_shapes import is_square
from pipeline.text_metrics import comparable

SURE_CONFIDENCE: Final = 0.85
"""Of a word that counts. One without a confidence comes from a text layer, and counts."""
LEAST_LETTERS, LEAST_DIGITS = 4, 3
"""Shorter words stand on every page, and shorter numbers are too often specks or list marks."""
LEAST_SIMILARITY: Final = 0.8
"""Of two spellings of one word, 0 to 1: one letter in five."""
LEAST_JOINED: Final = 7
"""Letters of a word that may be found across the words of the answer, which parts words elsewhere."""
MOST_COMPARED: Final = 3_000
MOST_PLAIN_CHARS: Final = 200_000
"""Twice what an answer may hold: only a few ligatures, each taken apart into a whole phrase, come to more."""

_UNSURE: Final = "\u25a1"
_KEY: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Of ``wanted`` words (ideographs count one by one) ``found`` are in the answer. ``missing`` are some that are
    not."""

    wanted: int
    found: int
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.found / self.wanted if self.wanted else 1.0


def word_agreement(lines: Sequence[Line], text: str) -> Agreement:
    """What the OCR is sure of on the page, looked for in ``text``."""
    wanted = sure_words(lines)
    answered = keys_of(text)
    left = wanted - answered
    joined = "".join(_KEY.findall(_plain(text)))
    near = [word for word in answered - wanted if not is_square(word[0])][:MOST_COMPARED]
    missing = Counter(
        {
            word: count - found
            for word, count in list(left.items())[:MOST_COMPARED]
            if (found := _times_found(word, count, joined.count(word) - answered[word], near)) < count
        }
    )
    return Agreement(
        wanted=wanted.total(),
        found=wanted.total() - missing.total(),
        missing=tuple(word for word, _ in missing.most_common(12)),
    )


def _times_found(word: str, count: int, times_joined: int, near: Sequence[str]) -> int:
    """How many of ``count`` are there after all, parted or spelt in another way."""
    if len(word) >= LEAST_JOINED and times_joined > 0:
        return min(times_joined, count)
    if word[0].isdigit() or is_square(word[0]):
        return 0
    likeness = process.extractOne(
        word, near, scorer=Levenshtein.normalized_similarity, score_cutoff=LEAST_SIMILARITY
    )
    return count if likeness is not None else 0


def is_sure(word: Word) -> bool:
    return word.confidence is None or word.confidence >= SURE_CONFIDENCE


def sure_words(lines: Iterable[Line]) -> Counter[str]:
    """The telling words that the OCR is sure of, as ``keys_of`` gives them."""
    sure = (" ".join(word.text if is_sure(word) else _UNSURE for word in line.words) for line in lines)
    return keys_of("\n".join(sure))


def keys_of(text: str) -> Counter[str]:
    """The telling words of ``text``: case, accents and words cut at line ends do not count."""
    return Counter(key for word in _KEY.findall(_plain(text)) for key in _keys(word))


def _keys(word: str) -> Iterable[str]:
    if any(map(is_square, word)):
        return (sign for sign in word if is_square(sign))
    least = LEAST_DIGITS if word.isdigit() else LEAST_LETTERS
    return (word,) if len(word) >= least else ()


def _plain(text: str) -> str:
    """Comparable, without accents; of text that swells (one sign can stand for eighteen) only the beginning."""
    parted = unicodedata.normalize("NFD", comparable(text)[:MOST_PLAIN_CHARS])
    return unicodedata.normalize(
        "NFC", "".join(sign for sign in parted if unicodedata.category(sign) != "Mn")
    )


def letters_by_script(text: str) -> Counter[str]:
    """Letters of ``text`` by the script they are in; Chinese and Japanese are one."""
    return Counter(_script(sign) for sign in text if sign.isalpha())


@cache
def _script(letter: str) -> str:
    name = unicodedata.name(unicodedata.normalize("NFKC", letter)[0], "").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO") else name
