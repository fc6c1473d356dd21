"""Lines of one column grouped to paragraphs, list items and, where the evidence is clear, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from models.geometry import enclosing_box
from models.text import Block, BlockKind, Line
from pipeline.letter_shapes import DESCENT_EM, descends, typical_em_px
from pipeline.rows import is_right_to_left, is_row_of_cells

BULLET: Final = re.compile(r"^[•◦▪■●‣⁃∙·o*–—-]\s+\S")
NUMBERED: Final = re.compile(r"^(?:\(?\d{1,2}[.)]|\(?[a-z][.)]|\(?[ivx]{1,4}\))\s+\S")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphRules:
    """Lengths in ems of the line.

    ``wide_leading``: a step between baselines so many times the usual one begins a paragraph.
    ``size_ratio``: type this much larger or smaller does. ``indent_em``: a first line set in by this much
    does; more than ``largest_indent_em`` is no indent. ``short_line_share``: a line that ends a sentence
    and leaves this share of the column free ends its paragraph. ``largest_row_step_em``: rows of cells
    further apart are no table. ``heading_ratio``: headings are this much larger than the
    body, with at most ``heading_chars`` characters in ``heading_lines`` lines.
    """

    wide_leading: float = 1.35
    largest_leading_em: float = 2.2
    size_ratio: float = 1.18
    indent_em: float = 0.8
    largest_indent_em: float = 5.0
    short_line_share: float = 0.2
    largest_row_step_em: float = 3.5
    heading_ratio: float = 1.25
    heading_chars: int = 120
    heading_lines: int = 3


SENTENCE_ENDS: Final = (".", "!", "?", ":", "。", "؟", "۔")
RULES: Final = ParagraphRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetLine:
    """A line with what its setting shows. ``start_px`` and ``end_px`` grow in the direction of reading."""

    line: Line
    em_px: float
    baseline_px: float
    start_px: float
    end_px: float
    is_cells: bool
    is_item: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """The usual step between a column's baselines, and its edges."""

    leading_px: float
    start_px: float
    end_px: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphs:
    """Grouping for one page; ``body_em_px`` is the font size of most of its text."""

    body_em_px: float
    page_width_px: int
    rules: ParagraphRules = RULES

    def blocks(self, lines: Sequence[Line]) -> Iterator[Block]:
        """The lines of one column, top to bottom, each in exactly one block."""
        if not lines:
            return
        sign = -1 if is_right_to_left(" ".join(line.text for line in lines)) else 1
        column = [self._set_line(line, sign) for line in lines]
        measure = _Measure(
            leading_px=self._leading_px(column),
            start_px=min(entry.start_px for entry in column),
            end_px=max(entry.end_px for entry in column),
        )
        group = [column[0]]
        for before, entry in pairwise(column):
            if self._begins(before, entry, group, measure):
                yield self._block(group)
                group = []
            group.append(entry)
        yield self._block(group)

    def single(self, line: Line) -> Block:
        return Block(kind=BlockKind.PARAGRAPH, lines=(line,), box=line.box)

    def _set_line(self, line: Line, sign: int) -> _SetLine:
        size = typical_em_px([(word.text, word.box.height) for word in line.words]) or self.body_em_px
        drop = DESCENT_EM * size if any(map(descends, line.text)) else 0.0
        start, end = sorted((sign * line.box.left, sign * line.box.right))
        return _SetLine(
            line=line,
            em_px=size,
            baseline_px=line.box.bottom - drop,
            start_px=start,
            end_px=end,
            is_cells=is_row_of_cells(line),
            is_item=bool(BULLET.match(line.text) or NUMBERED.match(line.text)),
        )

    def _leading_px(self, column: Sequence[_SetLine]) -> float:
        """The usual step between baselines; 1.2 ems where no two lines are near."""
        steps = [
            step
            for a, b in pairwise(column)
            if 0 < (step := b.baseline_px - a.baseline_px) < self.rules.largest_leading_em * a.em_px
        ]
        return median(steps) if steps else 1.2 * self.body_em_px

    def _begins(
        self, before: _SetLine, entry: _SetLine, group: Sequence[_SetLine], measure: _Measure
    ) -> bool:
        """Whether ``entry`` begins a new block after ``before``."""
        rules = self.rules
        step_px = entry.baseline_px - before.baseline_px
        if before.is_cells and entry.is_cells:
            return not 0 < step_px <= rules.largest_row_step_em * entry.em_px
        sizes = sorted((before.em_px, entry.em_px))
        usual_px = max(measure.leading_px, entry.em_px)
        return (
            entry.is_item
            or entry.is_cells != before.is_cells
            or sizes[1] > rules.size_ratio * sizes[0]
            or not 0 < step_px <= rules.wide_leading * usual_px
            or self._is_set_in(before, entry, group, measure)
            or self._ended(before, entry, measure)
        )

    def _is_set_in(
        self, before: _SetLine, entry: _SetLine, group: Sequence[_SetLine], measure: _Measure
    ) -> bool:
        """A first line's indent; or, after a list item with a hanging indent, the return to the margin."""
        rules = self.rules
        shift_em = (entry.start_px - before.start_px) / entry.em_px
        if group[0].is_item:
            return len(group) > 1 and shift_em < -0.5
        is_at_margin = before.start_px - measure.start_px < 0.4 * entry.em_px
        return is_at_margin and rules.indent_em <= shift_em <= rules.largest_indent_em

    def _ended(self, before: _SetLine, entry: _SetLine, measure: _Measure) -> bool:
        """``before`` closes a sentence well before the line's end, where the next word would have fitted."""
        room_px = measure.end_px - before.end_px
        ends = before.line.text.rstrip("\"')]»”’").endswith(SENTENCE_ENDS)
        is_short = room_px > self.rules.short_line_share * (measure.end_px - measure.start_px)
        return ends and is_short and room_px > entry.line.words[0].box.width + before.em_px

    def _block(self, group: Sequence[_SetLine]) -> Block:
        lines = tuple(entry.line for entry in group)
        box = enclosing_box(line.box for line in lines)
        if self._is_heading(group):
            return Block(kind=BlockKind.HEADING, lines=lines, box=box, heading_level=self._level(group))
        kind = BlockKind.LIST_ITEM if group[0].is_item else BlockKind.PARAGRAPH
        return Block(kind=kind, lines=lines, box=box)

    def _is_heading(self, group: Sequence[_SetLine]) -> bool:
        rules = self.rules
        text = " ".join(entry.line.text for entry in group)
        letters = sum(character.isalpha() for character in text)
        return (
            len(group) <= rules.heading_lines
            and len(text) <= rules.heading_chars
            and letters >= 3
            and letters >= 0.5 * len(text.replace(" ", ""))
            and not any(entry.is_cells for entry in group)
            and not text.rstrip().endswith((".", ",", ";", ":"))
            and median(entry.em_px for entry in group) >= rules.heading_ratio * self.body_em_px
        )

    def _level(self, group: Sequence[_SetLine]) -> int:
        """1 for titles (1.6 times the body and more), 2 below, 3 for those just above the limit."""
        ratio = median(entry.em_px for entry in group) / self.body_em_px
        return 1 if ratio >= 1.6 else 2 if ratio >= 1.35 else 3
