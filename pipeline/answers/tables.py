"""Tables in an answer: those written with ``|`` made HTML, and HTML ones taken apart into rows of cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

from markdown_it import MarkdownIt

MOST_SPAN: Final = 100
"""No page has a cell over more rows or columns; larger numbers are a model's slip, or an attack on memory."""

_BLOCKS: Final = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_CELL: Final = MarkdownIt("commonmark", {"html": True}).disable(["link", "image", "autolink"])
_MARKUP: Final = re.compile(r"[*_`<>&\\]")
_BAR: Final = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str
    rows: int = 1
    columns: int = 1


def with_html_tables(markdown: str) -> str:
    """``markdown`` with its ``|`` tables as HTML, every cell kept: Markdown itself drops those beyond the heading's
    width."""
    if "|" not in markdown:
        return markdown
    lines = markdown.split("\n")
    tables = [token.map for token in _BLOCKS.parse(markdown) if token.type == "table_open" and token.map]
    for start, end in reversed([(start, end) for start, end in tables if lines[start].count("|") > 1]):
        rows = [lines[start], *lines[start + 2 : end]]
        lines[start:end] = ["", _piped_html(rows), ""]
    return "\n".join(lines)


def _piped_html(rows: list[str]) -> str:
    cells = [_piped_cells(row) for row in rows]
    head = "".join(f"<th>{cell}</th>" for cell in cells[0])
    body = ("".join(f"<td>{cell}</td>" for cell in row) for row in cells[1:])
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in (head, *body)) + "</table>"


def _piped_cells(row: str) -> list[str]:
    bare = row.strip().removeprefix("|")
    parts = _BAR.split(bare)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return [_cell_html(part.replace("\\|", "|").strip()) for part in parts]


def _cell_html(cell: str) -> str:
    return _CELL.renderInline(cell) if _MARKUP.search(cell) else cell


def table_rows(html: str) -> tuple[tuple[Cell, ...], ...]:
    """Rows of the cells as written, spans not spread. A table within a cell is that cell's text; a caption is a row
    of one cell."""
    reader = _TableReader()
    reader.feed(html)
    reader.close()
    return tuple(tuple(row.cells) for row in reader.rows)


@dataclass(slots=True)
class _Row:
    cells: list[Cell] = field(default_factory=list)


class _TableReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[_Row] = []
        self._depth = 0
        self._text: list[str] = []
        self._spans: tuple[int, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._depth += tag == "table"
        if self._depth > 1 or tag == "br":
            self._text.append(" ")
        elif tag in ("caption", "tr", "td", "th"):
            self._end_cell()
            if tag in ("caption", "tr"):
                self.rows.append(_Row())
            if tag != "tr":
                spans = dict(attrs)
                self._spans = _span(spans.get("rowspan")), _span(spans.get("colspan"))

    def handle_endtag(self, tag: str) -> None:
        if self._depth == 1 and tag in ("caption", "td", "th", "tr", "table"):
            self._end_cell()
        self._depth -= tag == "table"

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def _end_cell(self) -> None:
        if self._spans is not None:
            rows, columns = self._spans
            text = " ".join("".join(self._text).split())
            if not self.rows:
                self.rows.append(_Row())
            self.rows[-1].cells.append(Cell(text=text, rows=rows, columns=columns))
        self._spans = None
        self._text.clear()


def _span(value: str | None) -> int:
    """HTML's rule: what is no positive number is 1."""
    return min(max(int(value), 1), MOST_SPAN) if value and re.fullmatch(r"[0-9]{1,4}", value) else 1
