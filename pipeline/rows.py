"""Words joined to fragments and rows by where they stand, and put into logical order by the scripts they
are in."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from models.geometry import Box, enclosing_box
from models.text import Line, Word
from pipeline.letter_shapes import OTHER_EM, em_px, is_square, typical_em_px

FRAGMENT_GAP_EM: Final = 0.7
"""Words further apart than this may stand in different columns; a word space is 0.25, in justified text
up to 0.7."""
SAME_ROW_OVERLAP: Final = 0.5
"""Words of one row share at least this much of the height of the lower one."""
LARGEST_SIZE_RATIO: Final = 2.2
"""A drop cap or a logo is no neighbour for words so much smaller."""
WIDE_SPACE: Final = 1.5
WIDEST_FRAGMENT_GAP_EM: Final = 1.4
"""Where most gaps are wider than this allows, they part cells and not words."""
ROW_STEP_EM: Final = 0.45
"""Lower edges of one row differ by less: descenders reach 0.2 below the baseline."""
CELL_GAP_EM: Final = 2.0
"""Words of a sentence never stand so far apart, columns of a table do."""
MOST_OPEN: Final = 250
"""Fragments of one height that are compared; only heaps of text printed over each other have more."""
JOINED_GAP_EM: Final = 0.3
"""Between ideographs, a gap below this is no space."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Words that follow each other without a wide gap, in logical order."""

    words: tuple[Word, ...]
    box: Box


def body_em_px(words: Sequence[Word]) -> float:
    """The font size of most of the text; 1 where there is none."""
    typical = typical_em_px([(word.text, word.box.height) for word in words])
    if typical is None and words:
        typical = max(fmean(word.box.height for word in words) / OTHER_EM, 1.0)
    return typical or 1.0


def word_key(word: Word) -> tuple[float, float, float, float, str]:
    box = word.box
    return (box.left, box.top, box.right, box.bottom, word.text)


def fragments_of(words: Sequence[Word], gap_em: float | None = None) -> list[Fragment]:
    """Chains of neighbouring words, at most ``gap_em`` apart (see ``fragment_gap_em``, for these words where
    None). The result doesn't depend on the order of ``words``."""
    gap_em = fragment_gap_em(words) if gap_em is None else gap_em
    chains = _Chains(level_px=2 * body_em_px(words), gap_em=gap_em)
    for word in sorted(words, key=word_key):
        chains.add(word)
    return [
        Fragment(in_logical_order(chain), enclosing_box(word.box for word in chain)) for chain in chains.words
    ]


def fragment_gap_em(words: Sequence[Word]) -> float:
    """Half as wide again as most word spaces, so that the wide ones of a typewriter, which often stand above each
    other, are no gutter."""
    body_px = body_em_px(words)
    by_bottom = sorted(words, key=lambda word: (word.box.bottom, word_key(word)))
    gaps_px = []
    row: list[Word] = []
    for word in [*by_bottom, None]:
        if word is not None and (not row or word.box.bottom - row[-1].box.bottom <= ROW_STEP_EM * body_px):
            row.append(word)
            continue
        row.sort(key=word_key)
        gaps_px += [after.box.left - before.box.right for before, after in pairwise(row)]
        row = [] if word is None else [word]
    spaces_px = [gap_px for gap_px in gaps_px if gap_px > 0]
    if not spaces_px:
        return FRAGMENT_GAP_EM
    return min(max(FRAGMENT_GAP_EM, WIDE_SPACE * median(spaces_px) / body_px), WIDEST_FRAGMENT_GAP_EM)


class _Chains:
    """Words from left to right, each added to the chain that ends just before it, or beginning one.

    Chains are looked for only in the bands of the page, ``level_px`` high, that the word touches.
    """

    def __init__(self, level_px: float, gap_em: float) -> None:
        self.level_px = level_px
        self.gap_em = gap_em
        self.words: list[list[Word]] = []
        self._sizes: list[float | None] = []
        self._open_at: dict[int, list[int]] = defaultdict(list)

    def add(self, word: Word) -> None:
        size_px = em_px(word.text, word.box.height)
        levels = range(int(word.box.top // self.level_px), int(word.box.bottom // self.level_px) + 1)
        index = self._before(word, size_px, levels)
        if index is None:
            index = len(self.words)
            self.words.append([])
            self._sizes.append(None)
        self.words[index].append(word)
        self._sizes[index] = size_px
        for level in levels:
            if index not in self._open_at[level][-8:]:
                self._open_at[level].append(index)

    def _before(self, word: Word, size_px: float | None, levels: range) -> int | None:
        nearest: tuple[float, int] | None = None
        for level in levels:
            still_open = []
            for index in self._open_at[level]:
                last, last_px = self.words[index][-1], self._sizes[index]
                gap_px = word.box.left - last.box.right
                if gap_px <= self.gap_em * LARGEST_SIZE_RATIO * (last_px or max(last.box.height, 1.0)):
                    still_open.append(index)
                    if _are_neighbours(last, last_px, word, size_px, gap_px, self.gap_em):
                        nearest = min(nearest or (abs(gap_px), index), (abs(gap_px), index))
            self._open_at[level] = still_open[-MOST_OPEN:]
        return nearest[1] if nearest else None


def _are_neighbours(
    before: Word, before_px: float | None, after: Word, after_px: float | None, gap_px: float, gap_em: float
) -> bool:
    """Level with each other, of like size, and no further apart than words of a line are."""
    if before_px and after_px and not 1 / LARGEST_SIZE_RATIO <= before_px / after_px <= LARGEST_SIZE_RATIO:
        return False
    size_px = max(before_px or 0.0, after_px or 0.0) or max(before.box.height, after.box.height) / OTHER_EM
    return -0.5 * size_px <= gap_px <= gap_em * size_px and stand_level(before.box, after.box)


def stand_level(one: Box, two: Box) -> bool:
    shared = min(one.bottom, two.bottom) - max(one.top, two.top)
    return shared >= SAME_ROW_OVERLAP * min(one.height, two.height)


def rows_of(fragments: Sequence[Fragment]) -> list[list[Fragment]]:
    """The fragments of one column, a row at a time from top to bottom, each row from left to right."""
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda f: (f.box.top + f.box.bottom, word_key(f.words[0]))):
        row = next((row for row in reversed(rows[-3:]) if _fits_row(fragment, row)), None)
        if row is None:
            rows.append([fragment])
        else:
            row.append(fragment)
    return [sorted(row, key=lambda f: (f.box.left, word_key(f.words[0]))) for row in rows]


def _fits_row(fragment: Fragment, row: Sequence[Fragment]) -> bool:
    nearest = min(
        row[-MOST_OPEN:], key=lambda f: max(f.box.left - fragment.box.right, fragment.box.left - f.box.right)
    )
    overlaps = nearest.box.left < fragment.box.right and fragment.box.left < nearest.box.right
    return not overlaps and stand_level(nearest.box, fragment.box)


def is_row_of_cells(line: Line) -> bool:
    """A gap wide enough for a table's or a form's: such a line is no part of running text."""
    words = sorted(line.words, key=word_key)
    size_px = typical_em_px([(word.text, word.box.height) for word in words]) or line.box.height
    gaps_px = (after.box.left - before.box.right for before, after in pairwise(words))
    return any(gap_px > CELL_GAP_EM * size_px for gap_px in gaps_px)


def in_logical_order(words: Sequence[Word]) -> tuple[Word, ...]:
    """Words of one row in the order they are read, from where they stand (Unicode bidi rule L2, word by
    word)."""
    by_x = sorted(words, key=word_key)
    directions = [_direction(word.text) for word in by_x]
    if "R" not in directions:
        return tuple(by_x)
    right_to_left = directions.count("R") > directions.count("L")
    if right_to_left:
        by_x.reverse()
        directions.reverse()
    return tuple(_with_runs_reversed(by_x, directions, "L" if right_to_left else "R"))


def _direction(text: str) -> str | None:
    """The direction of most letters: "L", "R" or None for digits and signs alone."""
    if text.isascii():
        return "L" if any(map(str.isalpha, text)) else None
    kinds = [unicodedata.bidirectional(character) for character in text]
    left, right = kinds.count("L"), kinds.count("R") + kinds.count("AL")
    if not left and not right:
        return None
    return "R" if right > left else "L"


def is_right_to_left(text: str) -> bool:
    return _direction(text) == "R"


def _with_runs_reversed(words: Sequence[Word], directions: Sequence[str | None], against: str) -> list[Word]:
    """Reverse each stretch that runs against the row, with the neutral words inside it."""
    result: list[Word] = []
    start = 0
    while start < len(words):
        if directions[start] != against:
            result.append(words[start])
            start += 1
            continue
        end = start
        for index in range(start, len(words)):
            if directions[index] == against:
                end = index
            elif directions[index] is not None:
                break
        result.extend(reversed(words[start : end + 1]))
        start = end + 1
    return result


def joined_text(words: Sequence[Word]) -> str:
    """Words with single spaces between them, but none between ideographs that stand close."""
    parts: list[str] = []
    for index, word in enumerate(words):
        if index and not _are_unspaced(words[index - 1], word):
            parts.append(" ")
        parts.append(word.text)
    return "".join(parts)


def _are_unspaced(before: Word, after: Word) -> bool:
    if not (is_square(before.text[-1]) and is_square(after.text[0])):
        return False
    gap_px = max(after.box.left - before.box.right, before.box.left - after.box.right)
    return gap_px < JOINED_GAP_EM * max(before.box.height, after.box.height)


def line_of(words: Sequence[Word], paragraph_number: int | None = None) -> Line:
    """One line of words in logical order; its confidence is the mean by characters, None where a word has
    none."""
    weights = [max(len(word.text), 1) for word in words]
    known = [word.confidence for word in words if word.confidence is not None]
    confidence = None
    if len(known) == len(words):
        confidence = sum(c * w for c, w in zip(known, weights, strict=True)) / sum(weights)
    return Line(
        text=joined_text(words),
        box=enclosing_box(word.box for word in words),
        confidence=confidence,
        words=tuple(words),
        paragraph_number=paragraph_number,
    )
