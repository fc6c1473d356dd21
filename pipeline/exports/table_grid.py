"""The cells of a page's tables, each in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.answers.tables import Cell, table_rows
from pipeline.exports.document import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCell:
    """``row`` and ``column`` count from 0 and are those of its top left place; ``rows`` and ``columns`` are what it
    spans within the table."""

    row: int
    column: int
    rows: int
    columns: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrid:
    """A table of one page. ``number`` counts from 1 within the page."""

    page_number: int
    number: int
    box: Sequence[float] | None
    cells: tuple[PlacedCell, ...]
    row_count: int
    column_count: int

    def rows(self) -> Iterator[list[str]]:
        """Every row in full width: a cell's text stands in its top left place, what it spans else is empty."""
        texts: dict[int, dict[int, str]] = {}
        for cell in self.cells:
            texts.setdefault(cell.row, {})[cell.column] = cell.text
        for row in range(self.row_count):
            placed = texts.get(row, {})
            yield [placed.get(column, "") for column in range(self.column_count)]


def tables_of(page: Json) -> Iterator[TableGrid]:
    for number, table in enumerate(page["tables"], 1):
        yield table_grid(table["html"], box=table["box"], page_number=page["page_number"], number=number)


def table_grid(
    html: str, *, box: Sequence[float] | None = None, page_number: int = 1, number: int = 1
) -> TableGrid:
    rows = [row for row in table_rows(html) if row]
    cells = tuple(_placed(rows))
    return TableGrid(
        page_number=page_number,
        number=number,
        box=box,
        cells=cells,
        row_count=len(rows),
        column_count=max((cell.column + cell.columns for cell in cells), default=0),
    )


def _placed(rows: Sequence[Sequence[Cell]]) -> Iterator[PlacedCell]:
    """As a browser lays a table out: a cell takes the next place that no cell above spans. A span ends with the
    table."""
    taken_until: dict[int, int] = {}
    for row, cells in enumerate(rows):
        column = 0
        for cell in cells:
            while taken_until.get(column, 0) > row:
                column += 1
            rows_spanned = min(cell.rows, len(rows) - row)
            for spanned in range(column, column + cell.columns):
                taken_until[spanned] = row + rows_spanned
            yield PlacedCell(row=row, column=column, rows=rows_spanned, columns=cell.columns, text=cell.text)
            column += cell.columns
