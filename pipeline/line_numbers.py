"""Line numbers in a page's margins: transcripts number every line, poems and listings often every fifth.

They are told from the numbers of lists and tables by what they count: the rows of a running text beside them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, mode
from typing import Final

from models.geometry import enclosing_box
from models.text import Block, BlockKind, Line, Word
from pipeline.columns import fragment_regions
from pipeline.rows import Fragment, fragments_of, in_logical_order, is_row_of_cells, line_of, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNumberRules:
    """When integers below each other are line numbers.

    ``least_numbers`` of up to ``most_digits`` rise, most of them by one and the same step, and are
    ``run_share`` of all that stands within ``gutter_em`` of them (typesetters leave 0.8 ems to 1.6). From
    one number to the next the text goes on by as many rows as the numbers say, times ``least_pitch`` to
    ``most_pitch``: stanzas add space that is not counted, an item of two lines makes it two. Where every
    row has its number, ``running_share`` of the rows go on in lower case (``least_running`` do) or are
    empty: items of a list begin with capitals. At least ``least_rows`` have text, and only in tables do
    more than ``cells_share`` of these hold further cells. Numbers along ``page_share`` of a page's text
    count the whole page. ``most_columns``: a page with more listings than this is none.
    """

    least_numbers: int = 5
    most_digits: int = 4
    run_share: float = 0.8
    gutter_em: float = 0.8
    least_pitch: float = 0.7
    most_pitch: float = 1.6
    running_share: float = 0.25
    least_running: int = 2
    least_rows: int = 3
    cells_share: float = 0.5
    page_share: float = 0.5
    most_columns: int = 4


RULES: Final = LineNumberRules()


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """The line numbers of one margin, top to bottom, as a block of their own."""

    block: Block
    is_left: bool


def without_line_numbers(
    lines: Sequence[Line], em_px: float
) -> tuple[tuple[NumberColumn, ...], tuple[Line, ...]]:
    """The columns of line numbers, and ``lines`` without them; every word is in exactly one of the two."""
    columns: list[NumberColumn] = []
    while len(columns) < RULES.most_columns:
        column = _number_column([word for line in lines for word in line.words], em_px)
        if column is None:
            break
        columns.append(column)
        taken = {id(word) for line in column.block.lines for word in line.words}
        lines = [rest for line in lines if (rest := _without(line, taken)) is not None]
    return tuple(columns), tuple(lines)


def _without(line: Line, taken: set[int]) -> Line | None:
    words = [word for word in line.words if id(word) not in taken]
    if len(words) == len(line.words):
        return line
    return line_of(words, line.paragraph_number) if words else None


def with_line_numbers(blocks: Sequence[Block], column: NumberColumn) -> list[Block]:
    """The numbers before the text that they stand beside, or after it where they are in the right margin."""
    numbers, text = column.block.box, enclosing_box(block.box for block in blocks)
    beside = [n for n, b in enumerate(blocks) if b.box.top < numbers.bottom and numbers.top < b.box.bottom]
    if numbers.height >= RULES.page_share * text.height:
        beside = [0, len(blocks) - 1]
    place = beside[0] if column.is_left else beside[-1] + 1
    return [*blocks[:place], column.block, *blocks[place:]]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Numbers that rise down the page, ``taken`` with what else stands between them, and the rows beside
    (empty where there is none)."""

    run: Sequence[Fragment]
    taken: Sequence[Fragment]
    rows: Sequence[Line | None]
    pitch_px: float


def _number_column(words: Sequence[Word], em_px: float) -> NumberColumn | None:
    if sum(_is_number(word) for word in words) < RULES.least_numbers:
        return None
    fragments = fragments_of(words)
    rows = rows_of(fragments)
    for is_left in (True, False):
        outermost = [row[0 if is_left else -1] for row in rows]
        for stack in _stacks([f for f in outermost if len(f.words) == 1 and _is_number(f.words[0])]):
            run = _longest_run(stack)
            taken = _strip(run, fragments, em_px) if _has_step(run) else ()
            if taken and _counts_rows(_candidate(run, taken, rows, em_px, is_left=is_left)):
                lines = tuple(line_of(fragment.words) for fragment in taken)
                box = enclosing_box(line.box for line in lines)
                return NumberColumn(Block(kind=BlockKind.PARAGRAPH, lines=lines, box=box), is_left)
    return None


def _is_number(word: Word) -> bool:
    return word.text.isdecimal() and len(word.text) <= RULES.most_digits


def _number(fragment: Fragment) -> int:
    return int(fragment.words[0].text)


def _middle_px(fragment: Fragment) -> float:
    return (fragment.box.top + fragment.box.bottom) / 2


def _stacks(numbers: Sequence[Fragment]) -> Iterator[list[Fragment]]:
    """Numbers above each other, each stack from top to bottom."""
    stack: list[Fragment] = []
    right_px = 0.0
    for number in sorted(numbers, key=lambda f: f.box.left):
        if stack and number.box.left > right_px:
            yield sorted(stack, key=_middle_px)
            stack = []
        right_px = max(right_px, number.box.right) if stack else number.box.right
        stack.append(number)
    if stack:
        yield sorted(stack, key=_middle_px)


def _longest_run(stack: Sequence[Fragment]) -> list[Fragment]:
    """The longest part of a stack in which each number is larger than the one before (patience sorting)."""
    lowest_ends: list[int] = []
    ends_at: list[int] = []
    before: list[int | None] = []
    for index, number in enumerate(map(_number, stack)):
        length = bisect_left(lowest_ends, number)
        before.append(ends_at[length - 1] if length else None)
        lowest_ends[length : length + 1] = [number]
        ends_at[length : length + 1] = [index]
    run: list[Fragment] = []
    at = ends_at[-1] if ends_at else None
    while at is not None:
        run.append(stack[at])
        at = before[at]
    return run[::-1]


def _steps(run: Sequence[Fragment]) -> list[int]:
    return [_number(after) - _number(number) for number, after in pairwise(run)]


def _has_step(run: Sequence[Fragment]) -> bool:
    if len(run) < RULES.least_numbers:
        return False
    steps = _steps(run)
    return steps.count(mode(steps)) >= len(steps) / 2


def _strip(run: Sequence[Fragment], fragments: Sequence[Fragment], em_px: float) -> list[Fragment]:
    """What stands in the run's strip of the page, misread numbers too; nothing where it isn't clear of the
    text."""
    box, gutter_px = enclosing_box(f.box for f in run), RULES.gutter_em * em_px
    near = [
        f
        for f in fragments
        if box.top <= _middle_px(f) <= box.bottom
        and f.box.right > box.left - gutter_px
        and f.box.left < box.right + gutter_px
    ]
    if len(run) < RULES.run_share * len(near):
        return []
    inside = [f for f in near if f.box.left >= box.left - gutter_px and f.box.right <= box.right + gutter_px]
    return sorted(inside, key=_middle_px)


def _candidate(
    run: Sequence[Fragment],
    taken: Sequence[Fragment],
    rows: Sequence[Sequence[Fragment]],
    em_px: float,
    *,
    is_left: bool,
) -> _Candidate:
    """The rows beside end where their column of text does."""
    numbers, top, bottom = set(map(id, taken)), taken[0].box.top, taken[-1].box.bottom
    rest = [f for row in rows for f in row if id(f) not in numbers]
    columns = fragment_regions(rest, em_px)
    column_of = {id(f): number for number, column in enumerate(columns) for f in column}
    row_of = {id(f): row for row in rows for f in row}
    texts: list[Line | None] = []
    beside: set[int] = set()
    for number in run:
        row = [f for f in row_of[id(number)] if id(f) not in numbers]
        nearest = column_of[id(row[0 if is_left else -1])] if row else None
        words = [word for f in row if column_of[id(f)] == nearest for word in f.words]
        texts.append(line_of(in_logical_order(words)) if words else None)
        beside |= {nearest} if nearest is not None else set()
    level = [f for column in beside for f in columns[column] if top <= _middle_px(f) <= bottom]
    heights = [_middle_px(row[0]) for row in rows_of([*taken, *level])]
    return _Candidate(run, taken, texts, median(after - before for before, after in pairwise(heights)))


def _counts_rows(candidate: _Candidate) -> bool:
    run, texts = candidate.run, [row for row in candidate.rows if row is not None]
    if len(texts) < RULES.least_rows:
        return False
    if sum(map(is_row_of_cells, texts)) > RULES.cells_share * len(texts):
        return False
    pairs = zip(pairwise(run), _steps(run), strict=True)
    unit_px = median((_middle_px(after) - _middle_px(number)) / step for (number, after), step in pairs)
    if not RULES.least_pitch * candidate.pitch_px <= unit_px <= RULES.most_pitch * candidate.pitch_px:
        return False
    running = sum(row.text[:1].islower() for row in texts)
    empty = len(run) - len(texts)
    return mode(_steps(run)) > 1 or (
        running >= RULES.least_running and running + empty >= RULES.running_share * len(run)
    )
