"""CSV and workbooks: every cell in its place, as printed, and no formula."""

from __future__ import annotations

import csv
import io
import zipfile

import openpyxl
import pytest

from models.geometry import Box
from models.page import Table
from pipeline.exports.csv_tables import harmless
from pipeline.exports.table_grid import table_grid
from tests.unit.exports.documents import page, vlm_page, written

SPANNED = (
    "<table><tr><th rowspan='2'>Year</th><th colspan='2'>Costs</th></tr>"
    "<tr><td>net</td><td>gross</td></tr><tr><td>007</td><td>1.234,50</td><td>=1+1</td></tr></table>"
)
GRID = [["Year", "Costs", ""], ["", "net", "gross"], ["007", "1.234,50", "=1+1"]]


def with_tables(*htmls: str, number: int = 1) -> object:
    tables = [Table(box=Box(0, 0, 9, 9), html=html) for html in htmls]
    return page(number=number, tables=tables)


def test_spans_are_spread_to_a_grid() -> None:
    assert list(table_grid(SPANNED).rows()) == GRID


@pytest.mark.parametrize(
    ("html", "rows"),
    [
        ("<table></table>", []),
        (
            "<table><tr><td rowspan='99'>a</td><td>b</td></tr><tr><td>c</td></tr></table>",
            [["a", "b"], ["", "c"]],
        ),
        ("<table><tr><td>a</td></tr><tr><td>b</td><td>c</td></tr></table>", [["a", ""], ["b", "c"]]),
        ("<table><tr><td>a<br>b</td><td>x &amp; y</td></tr></table>", [["a b", "x & y"]]),
    ],
)
def test_odd_tables_have_a_grid_too(html: str, rows: list[list[str]]) -> None:
    assert list(table_grid(html).rows()) == rows


def test_a_span_that_no_page_has_is_bounded() -> None:
    grid = table_grid("<table><tr><td colspan='9999' rowspan='9999'>a</td></tr></table>")
    assert (grid.row_count, grid.column_count) == (1, 100)


def test_each_table_is_a_csv_of_its_own() -> None:
    pages = [with_tables(SPANNED, "<table><tr><td>ü</td></tr></table>"), with_tables(SPANNED, number=12)]
    archive = zipfile.ZipFile(io.BytesIO(written("csv", pages)))  # type: ignore[arg-type]
    assert archive.namelist() == ["p0001-t1.csv", "p0001-t2.csv", "p0012-t1.csv"]
    rows = list(csv.reader(io.StringIO(archive.read("p0001-t1.csv").decode(), newline="")))
    assert rows == [*GRID[:2], ["007", "1.234,50", "'=1+1"]]
    assert archive.read("p0001-t2.csv") == "ü\r\n".encode()


@pytest.mark.parametrize(
    ("cell", "stands_for"),
    [
        ("=1+1", "'=1+1"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        (" =1", "' =1"),
        ("\t=1", "'\t=1"),
        ("＝1+1", "'＝1+1"),
        ("-", "'-"),
        ("-1.234,50", "-1.234,50"),
        ("+7 %", "+7 %"),
        ("-5%", "-5%"),
        ("007", "007"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_csv_cell_that_would_run_is_marked_and_a_number_is_not(cell: str, stands_for: str) -> None:
    assert harmless(cell) == stands_for


def test_a_workbook_has_a_sheet_a_table_and_strings_alone() -> None:
    pages = [with_tables(SPANNED), with_tables("<table><tr><td>http://a.example</td></tr></table>", number=3)]
    workbook = openpyxl.load_workbook(io.BytesIO(written("xlsx", pages)))  # type: ignore[arg-type]
    assert workbook.sheetnames == ["p1 t1", "p3 t1"]
    cells = [[cell.value or "" for cell in row] for row in workbook["p1 t1"].iter_rows()]
    assert cells == GRID
    kinds = {cell.data_type for sheet in workbook for row in sheet.iter_rows() for cell in row if cell.value}
    assert kinds <= {"s", "inlineStr"}
    assert workbook["p3 t1"]["A1"].hyperlink is None


@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_a_document_without_tables_says_so(name: str) -> None:
    stored = io.BytesIO(written(name, [page()]))
    if name == "csv":
        archive = zipfile.ZipFile(stored)
        assert archive.namelist() == ["README.txt"]
        assert "no table" in archive.read("README.txt").decode()
    else:
        [sheet] = openpyxl.load_workbook(stored).worksheets
        assert "no table" in str(sheet["A1"].value)


@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_the_same_tables_give_the_same_bytes(name: str) -> None:
    pages = [with_tables(SPANNED)]
    assert written(name, pages) == written(name, pages)  # type: ignore[arg-type]


def test_the_tables_of_the_vlm_are_there() -> None:
    archive = zipfile.ZipFile(io.BytesIO(written("csv", [vlm_page(1, [], "", [SPANNED])])))
    assert archive.namelist() == ["p0001-t1.csv"]
