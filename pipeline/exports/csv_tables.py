"""A document's tables as CSV (RFC 4180, UTF-8), one file a table, in a zip archive."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from typing import BinaryIO, Final

from pipeline.exports.document import Json, Pages
from pipeline.exports.table_grid import TableGrid, tables_of

FIRST_ZIP_DATE: Final = (1980, 1, 1, 0, 0, 0)
NOTE_NAME: Final = "README.txt"

_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")
"""What a spreadsheet takes for the beginning of a formula, full-width signs too."""
_NUMBER: Final = re.compile(r"[+-]?\d[\d.,' \u00a0\u202f]*%?")


def write_csv_tables(stream: BinaryIO, header: Json, pages: Pages) -> None:
    """``p0001-t1.csv`` is the first table of page 1. A table at a time; one without tables has a note that says so.
    The bytes depend on the tables alone."""
    table_count = 0
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for page in pages:
            for table in tables_of(page):
                table_count += 1
                archive.writestr(_entry(f"p{table.page_number:04}-t{table.number}.csv"), _csv(table).encode())
        if not table_count:
            archive.writestr(_entry(NOTE_NAME), f"{no_table_note(header)}\n".encode())


def no_table_note(header: Json) -> str:
    return f"{header['source']}: no table whose cells are known"


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, FIRST_ZIP_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _csv(table: TableGrid) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in table.rows())
    return text.getvalue()


def harmless(cell: str) -> str:
    """The cell as printed, with an apostrophe before what a spreadsheet would run as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
