"""A ruled table whose grid is clear, as HTML with rowspan and colspan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from pipeline.signals.grids import GridCell
from pipeline.signals.rules import JOIN_MM
from pipeline.signals.view import VIEW_PX_PER_MM, PageView

EDGE_TOLERANCE_PX: Final = 4 * JOIN_MM * VIEW_PX_PER_MM
"""Edges of cells this close together are one line of the grid: about half of the smallest row."""

UNRULED_LINES: Final = 3
"""Neighbouring cells that each hold the same number of lines, this many or more, are rows nobody ruled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCell:
    """A cell's place in the grid, rows and columns counted from 0, and its text."""

    row: int
    column: int
    row_span: int
    column_span: int
    text: str


def table_html(cells: Sequence[GridCell], view: PageView) -> str | None:
    """None wherever a reader could doubt: cells that are no rectangles, gaps, overlaps, rows without
    rules."""
    if not all(cell.is_rectangle for cell in cells) or _has_unruled_rows(cells, view):
        return None
    placed = placed_cells(cells, view)
    rows = max((cell.row + cell.row_span for cell in placed), default=0)
    columns = max((cell.column + cell.column_span for cell in placed), default=0)
    if rows < 2 or columns < 2 or not _tiles(placed, rows, columns):
        return None
    return "".join(
        [
            "<table>",
            *(
                f"<tr>{''.join(_cell_html(cell) for cell in placed if cell.row == row)}</tr>"
                for row in range(rows)
            ),
            "</table>",
        ]
    )


def placed_cells(cells: Sequence[GridCell], view: PageView) -> tuple[PlacedCell, ...]:
    """Every cell in the grid that all left and top edges span, in row order."""
    lefts = _grid_lines([cell.left_px for cell in cells])
    tops = _grid_lines([cell.top_px for cell in cells])
    placed = [
        PlacedCell(
            row=_line_number(tops, cell.top_px),
            column=_line_number(lefts, cell.left_px),
            row_span=_lines_between(tops, cell.top_px, cell.bottom_px),
            column_span=_lines_between(lefts, cell.left_px, cell.right_px),
            text=" ".join(view.words[index].text for index in cell.word_indices),
        )
        for cell in cells
    ]
    return tuple(sorted(placed, key=lambda cell: (cell.row, cell.column)))


def _grid_lines(edges_px: Sequence[int]) -> list[float]:
    ordered = np.sort(np.asarray(edges_px, dtype=np.float64))
    cuts = np.flatnonzero(np.diff(ordered) > EDGE_TOLERANCE_PX) + 1
    return [float(group.mean()) for group in np.split(ordered, cuts)]


def _line_number(lines: Sequence[float], edge_px: int) -> int:
    return int(np.argmin(np.abs(np.asarray(lines) - edge_px)))


def _lines_between(lines: Sequence[float], start_px: int, end_px: int) -> int:
    first = _line_number(lines, start_px)
    return sum(1 for line in lines[first:] if line < end_px - EDGE_TOLERANCE_PX / 2)


def _tiles(placed: Sequence[PlacedCell], rows: int, columns: int) -> bool:
    """Whether the cells cover the grid exactly once."""
    taken = np.zeros((rows, columns), dtype=int)
    for cell in placed:
        taken[cell.row : cell.row + cell.row_span, cell.column : cell.column + cell.column_span] += 1
    return bool((taken == 1).all())


def _has_unruled_rows(cells: Sequence[GridCell], view: PageView) -> bool:
    many = [(cell.top_px, lines) for cell in cells if (lines := _line_count(cell, view)) >= UNRULED_LINES]
    return any(
        lines == other_lines and abs(top - other_top) <= EDGE_TOLERANCE_PX
        for number, (top, lines) in enumerate(many)
        for other_top, other_lines in many[number + 1 :]
    )


def _line_count(cell: GridCell, view: PageView) -> int:
    boxes = view.word_boxes[list(cell.word_indices)]
    middles = np.sort((boxes[:, 1] + boxes[:, 3]) / 2)
    return int(1 + (np.diff(middles) > 0.5 * view.text_height_px).sum()) if len(middles) else 0


def _cell_html(cell: PlacedCell) -> str:
    rows = f' rowspan="{cell.row_span}"' if cell.row_span > 1 else ""
    columns = f' colspan="{cell.column_span}"' if cell.column_span > 1 else ""
    return f"<td{rows}{columns}>{escape(cell.text, quote=False)}</td>"
