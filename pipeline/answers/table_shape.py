"""Whether the rows of an HTML table are equally wide once its spans are spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.answers.tables import Cell, table_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class OddRow:
    """A row, counted from 1, that is ``width`` columns wide in a table of ``expected``."""

    row_number: int
    width: int
    expected: int
    text: str


def odd_rows(html: str) -> tuple[OddRow, ...]:
    """The rows whose width is not that of most rows.

    A row of one cell passes unless it is the last: a caption, or a heading between rows, cannot be in a wrong column,
    but a table that breaks off ends so. Empty rows pass, and so do spans that run on below the last row, which
    browsers cut.
    """
    rows = table_rows(html)
    widths = _widths(rows)
    counted = [width for width, row in zip(widths, rows, strict=True) if width is not None and len(row) > 1]
    if not counted:
        return ()
    most = max(Counter(counted).items(), key=lambda item: (item[1], item[0]))[0]
    return tuple(
        OddRow(row_number=number, width=width, expected=most, text=" | ".join(cell.text for cell in row))
        for number, (width, row) in enumerate(zip(widths, rows, strict=True), start=1)
        if width is not None and width != most and not (len(row) == 1 and width == 1 and number < len(rows))
    )


def _widths(rows: Sequence[Sequence[Cell]]) -> list[int | None]:
    """Columns a row fills, those of cells that hang down from above included; None for a row without cells."""
    hanging: dict[int, int] = {}
    widths: list[int | None] = []
    for row in rows:
        below = {column: count - 1 for column, count in hanging.items() if count > 1}
        taken, column = set(hanging), 0
        for cell in row:
            while column in taken:
                column += 1
            columns = range(column, column + cell.columns)
            taken.update(columns)
            below.update(dict.fromkeys(columns, cell.rows - 1) if cell.rows > 1 else {})
        widths.append(len(taken) if row else None)
        hanging = below
    return widths
