"""Words that a page holds but does not paint: an earlier OCR's, under its scan or over it.

What is seen there is a picture, so nothing but the picture's ink can tell whether such words belong to
it: by their places, and by the heights of their letters, which an OCR gets wrong wherever it has guessed
(handwriting, noise, a script it was not told of).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from models.geometry import Box
from pipeline.layer_ink import Mask, PageInk
from pipeline.layer_words import LayerWord
from pipeline.letter_shapes import Top, top_of

LEAST_INK: Final = 0.05
"""Of a hidden word's box, the share that is inked."""
MARGIN: Final = 0.15
"""The strip beside a word that has to be blank, in line heights; a word space is about twice as wide."""
MARGIN_INK: Final = 0.4
"""It may hold this share of the ink inside the word: accents and italics of neighbours."""
LEAST_LETTERS: Final = 4
ASCENT: Final = 0.12
"""Ascenders stand this share of the word's height above the other letters; in print 0.2 to 0.3."""
LEAST_HEIGHT_PX: Final = 8
LEAST_JUDGED_SHARE: Final = 0.1
LEAST_JUDGED: Final = 5
"""Latin print in lower case has a third of words with letters of both heights; with far fewer, the words
are no such print."""

_NARROW: Final = frozenset("iljtfrI")
_WIDE: Final = frozenset("mwMW")


def hidden_fit_share(page: PageInk, words: Sequence[LayerWord]) -> float | None:
    """Hidden words that stand on ink with blank paper before or behind them; None without hidden words."""
    hidden = [word for word in words if not word.is_painted and word.quarter_turns == 0]
    if not hidden:
        return None
    return sum(_fits(page, word.word.box) for word in hidden) / len(hidden)


def _fits(page: PageInk, box: Box) -> bool:
    rows, columns = page.slices(box)
    inside = page.ink[rows, columns]
    if not inside.size or inside.mean() < LEAST_INK:
        return False
    margin = max(2, round(MARGIN * (rows.stop - rows.start)))
    before = page.ink[rows, max(columns.start - margin, 0) : columns.start]
    behind = page.ink[rows, columns.stop : columns.stop + margin]
    sides = [float(strip.mean()) for strip in (before, behind) if strip.size]
    return not sides or min(sides) <= MARGIN_INK * float(inside.mean())


def hidden_shape_share(page: PageInk, words: Sequence[LayerWord]) -> float | None:
    """Hidden Latin words whose ink rises where their ascenders and capitals are; 0 where hardly any word can
    be judged, None without hidden Latin words."""
    hidden = [word for word in words if not word.is_painted and word.quarter_turns == 0]
    latin = [word for word in hidden if word.word.text[0].isascii() and word.word.text.isalpha()]
    if len(latin) < 0.3 * len(hidden) or not hidden:
        return None
    judged = [rises for word in latin if (rises := _rises(page, word)) is not None]
    if len(judged) < max(LEAST_JUDGED, LEAST_JUDGED_SHARE * len(latin)):
        return 0.0
    return sum(judged) / len(judged)


def _rises(page: PageInk, word: LayerWord) -> bool | None:
    """None where the word has no letters of both heights, or is too small to tell."""
    text, box = word.word.text, word.word.box
    tops = [top_of(character) for character in text]
    if len(text) < LEAST_LETTERS or not {Top.LOW, Top.HIGH} <= set(tops) or box.height < LEAST_HEIGHT_PX:
        return None
    ink = _inked(page, box)
    firsts = _first_rows(ink, text)
    high = [row for row, top in zip(firsts, tops, strict=True) if row is not None and top is Top.HIGH]
    low = [row for row, top in zip(firsts, tops, strict=True) if row is not None and top is Top.LOW]
    if not high or not low:
        return False
    return bool(np.median(low) - np.median(high) > ASCENT * ink.shape[0])


def _inked(page: PageInk, box: Box) -> Mask:
    part = page.grey[max(int(box.top), 0) : int(box.bottom) + 1, max(int(box.left), 0) : int(box.right) + 1]
    darkest, paper = np.percentile(part, (2, 90)) if part.size else (0, 0)
    inked: Mask = part < (darkest + paper) / 2
    return inked


def _first_rows(ink: Mask, text: str) -> list[int | None]:
    """The topmost inked row in the middle of each letter, letters laid out by their usual widths."""
    edges = np.cumsum([0.0, *(_width_em(character) for character in text)])
    edges *= ink.shape[1] / edges[-1]
    rows: list[int | None] = []
    for left, right in pairwise(edges):
        inset = 0.2 * (right - left)
        start = int(left + inset)
        inked = np.flatnonzero(ink[:, start : max(int(right - inset), start + 1)].any(axis=1))
        rows.append(int(inked[0]) if len(inked) else None)
    return rows


def _width_em(character: str) -> float:
    if character in _NARROW:
        return 0.3
    if character in _WIDE:
        return 0.82
    return 0.68 if character.isupper() else 0.53
