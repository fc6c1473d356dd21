"""Lines in the order a person reads them, and the blocks that they form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.text import Block, Line, Word
from pipeline.columns import fragment_regions
from pipeline.line_numbers import with_line_numbers, without_line_numbers
from pipeline.paragraphs import Paragraphs
from pipeline.rows import (
    Fragment,
    body_em_px,
    fragment_gap_em,
    fragments_of,
    in_logical_order,
    line_of,
    rows_of,
    stand_level,
)

FUSED_LINES: Final = 3
"""So many lines that run across a gutter mean that the reader has not seen the columns."""
TURNED_ASPECT: Final = 2.5
"""A line of several letters that is so much higher than wide runs along the page's side."""
SLANTED_EMS: Final = 4.0
"""A line whose box is so much higher than the body's type, and lies over other lines, is slanted."""
SLANTED_COVERS: Final = 2
STRAY_GAP_EM: Final = 1.0
"""A reader that breaks the end off a line leaves no more than a wide word space; gutters are wider."""
STRAY_NEIGHBOUR_EM: Final = 3.0
"""How near a line that runs on above or below the gap must be to show that no gutter is there."""


def lines_from_words(words: Sequence[Word]) -> tuple[Line, ...]:
    """Every word in exactly one line, lines in reading order, split where a gutter runs between columns.

    The result doesn't depend on the order of ``words``: rows are found by geometry, and words written
    from right to left are put into logical order by their letters.
    """
    fragments = fragments_of(words)
    return tuple(
        line_of(in_logical_order([word for fragment in row for word in fragment.words]))
        for region in fragment_regions(fragments, body_em_px(words))
        for row in rows_of(region)
    )


def ordered_blocks(lines: Sequence[Line], page_width_px: int, page_height_px: int) -> tuple[Block, ...]:
    """Paragraphs, headings and list items in reading order; every word of ``lines`` is in exactly one of
    them.

    Lines with a ``paragraph_number`` keep their reader's order and grouping, unless the reader has fused
    columns: then they are split at the gutter and ordered by geometry, as lines without a number always
    are. Line numbers in a margin are a block of their own, before the text or, from the right margin,
    after it. Lines along the page's side and slanted ones come last.
    """
    kept = [line for line in lines if line.words]
    aside = _aside(kept, page_height_px)
    body = [line for index, line in enumerate(kept) if index not in aside]
    em_px = body_em_px([word for line in body for word in line.words])
    paragraphs = Paragraphs(body_em_px=em_px, page_width_px=page_width_px)
    columns, text = without_line_numbers(body, em_px)
    blocks = [block for region in _line_regions(text, em_px) for block in paragraphs.blocks(region)]
    for column in columns:
        blocks = with_line_numbers(blocks, column)
    apart = [paragraphs.single(kept[index]) for index in sorted(aside)]
    return (*blocks, *apart)


def _aside(lines: Sequence[Line], page_height_px: int) -> frozenset[int]:
    """Indices of turned and slanted lines; none where there are no others."""
    turned = {index for index, line in enumerate(lines) if _is_turned(line)}
    upright = [line for index, line in enumerate(lines) if index not in turned]
    em_px = body_em_px([word for line in upright for word in line.words])
    least_px = min(SLANTED_EMS * em_px, page_height_px / 2)
    boxes = np.array([[b.left, b.top, b.right, b.bottom] for b in (line.box for line in lines)])
    slanted = {
        index
        for index, line in enumerate(lines)
        if index not in turned and line.box.height > least_px and _lies_over(boxes, index)
    }
    aside = turned | slanted
    return frozenset(aside) if len(aside) < len(lines) else frozenset()


def _is_turned(line: Line) -> bool:
    letters = sum(character.isalnum() for character in line.text)
    return letters >= 3 and line.box.height > TURNED_ASPECT * line.box.width


def _lies_over(boxes: NDArray[np.float64], index: int) -> bool:
    """Whether a line's box covers most of two or more lines half its height."""
    box = boxes[index]
    width = np.minimum(boxes[:, 2], box[2]) - np.maximum(boxes[:, 0], box[0])
    height = np.minimum(boxes[:, 3], box[3]) - np.maximum(boxes[:, 1], box[1])
    shared = np.clip(width, 0, None) * np.clip(height, 0, None)
    sides = boxes[:, 2:] - boxes[:, :2]
    is_low = sides[:, 1] < sides[index, 1] / 2
    return int((is_low & (shared > 0.5 * sides.prod(axis=1))).sum()) >= SLANTED_COVERS


def _line_regions(lines: Sequence[Line], em_px: float) -> Iterator[list[Line]]:
    """Lines a column at a time, or a paragraph of the reader's at a time."""
    gap_em = fragment_gap_em([word for line in lines for word in line.words])
    pieces = [
        (index, fragment) for index, line in enumerate(lines) for fragment in fragments_of(line.words, gap_em)
    ]
    by_geometry = fragment_regions([fragment for _, fragment in pieces], em_px)
    owner = {id(fragment): index for index, fragment in pieces}
    if _has_numbers(lines) and _fused_count(by_geometry, owner) < FUSED_LINES:
        rejoined = _with_stray_ends_rejoined(lines, em_px)
        for _, group in groupby(rejoined, key=lambda line: line.paragraph_number):
            yield list(group)
        return
    for region in by_geometry:
        yield [line for row in rows_of(region) for line in _lines_of_row(row, owner, lines)]


def _with_stray_ends_rejoined(lines: Sequence[Line], em_px: float) -> list[Line]:
    """Lines whose end the reader took for a paragraph of its own, and put elsewhere, are whole again."""
    sizes = Counter(line.paragraph_number for line in lines)
    whole = list(lines)
    for stray in [line for line in lines if sizes[line.paragraph_number] == 1]:
        if not any(line is stray for line in whole):
            continue  # it has become the home of another
        home = next((line for line in whole if _is_broken_off(stray, line, whole, em_px)), None)
        if home is not None:
            joined = line_of(in_logical_order([*home.words, *stray.words]), home.paragraph_number)
            whole[whole.index(home)] = joined
            whole.remove(stray)
    return whole


def _is_broken_off(stray: Line, home: Line, lines: Sequence[Line], em_px: float) -> bool:
    """Whether both are one row with no gutter between: a line close by runs across the gap."""
    gap_px = max(stray.box.left - home.box.right, home.box.left - stray.box.right)
    if home is stray or not 0 <= gap_px <= STRAY_GAP_EM * em_px or not stand_level(stray.box, home.box):
        return False
    middle = (max(stray.box.left, home.box.left) + min(stray.box.right, home.box.right)) / 2
    reach_px = STRAY_NEIGHBOUR_EM * em_px
    return any(
        line.box.left < middle - em_px < middle + em_px < line.box.right
        and home.box.top - reach_px < line.box.bottom
        and line.box.top < home.box.bottom + reach_px
        for line in lines
    )


def _has_numbers(lines: Sequence[Line]) -> bool:
    return any(line.paragraph_number is not None for line in lines)


def _fused_count(by_geometry: Sequence[Sequence[Fragment]], owner: dict[int, int]) -> int:
    """Lines whose pieces fall into different regions."""
    homes: dict[int, set[int]] = {}
    for number, region in enumerate(by_geometry):
        for fragment in region:
            homes.setdefault(owner[id(fragment)], set()).add(number)
    return sum(len(numbers) > 1 for numbers in homes.values())


def _lines_of_row(row: Sequence[Fragment], owner: dict[int, int], lines: Sequence[Line]) -> Iterator[Line]:
    """The pieces of each line in one row, as that line where it is whole."""
    owners = list(dict.fromkeys(owner[id(fragment)] for fragment in row))
    for index in owners:
        words = [word for fragment in row if owner[id(fragment)] == index for word in fragment.words]
        if len(words) == len(lines[index].words):
            yield lines[index]
        else:
            yield line_of(in_logical_order(words))
