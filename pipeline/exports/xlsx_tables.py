"""A document's tables as a workbook, one sheet a table. The only importer of XlsxWriter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import BinaryIO, Final

import xlsxwriter

from pipeline.exports.csv_tables import no_table_note
from pipeline.exports.document import Json, Pages
from pipeline.exports.table_grid import tables_of

MADE_AT: Final = datetime(1980, 1, 1, tzinfo=UTC).replace(tzinfo=None)
EVERY_CELL: Final = "A1:XFD1048576"
MOST_ROWS: Final = 1_048_576
MOST_COLUMNS: Final = 16_384
LONGEST_CELL: Final = 32_767
"""What a sheet holds."""


def write_xlsx_tables(stream: BinaryIO, header: Json, pages: Pages) -> None:
    """The sheet ``p1 t1`` is the first table of page 1. Every cell is a string, as printed: none becomes a formula, a
    link, a number or a date. A row at a time, but for the list of sheets. A document without tables has one sheet that
    says so. The bytes depend on the tables alone."""
    with xlsxwriter.Workbook(stream, {"constant_memory": True}) as workbook:
        workbook.set_properties({"created": MADE_AT, "comments": "Tables as doctriage read them"})
        sheet_count = 0
        for page in pages:
            for table in tables_of(page):
                sheet_count += 1
                sheet = workbook.add_worksheet(f"p{table.page_number} t{table.number}")
                sheet.ignore_errors({"number_stored_as_text": EVERY_CELL})
                for row, cells in zip(range(MOST_ROWS), table.rows(), strict=False):
                    for column, cell in enumerate(cells[:MOST_COLUMNS]):
                        if cell:
                            sheet.write_string(row, column, cell[:LONGEST_CELL])
        if not sheet_count:
            workbook.add_worksheet("no tables").write_string(0, 0, no_table_note(header))
