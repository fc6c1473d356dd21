"""Every format that a document can be written in, by the name that the command line knows it by.

A writer is imported when a document is written: the command line lists the names and starts at once.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from pipeline.exports.document import Json, Pages

if TYPE_CHECKING:
    from pipeline.exports.original import Original

TextWriter = Callable[[TextIO, Json, Pages], None]
BytesWriter = Callable[[BinaryIO, Json, Pages], None]
OriginalWriter = Callable[[BinaryIO, Json, Pages, "Original"], None]
Write = Callable[[BinaryIO, Json, Pages, "Original | None"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """``suffix`` is that of the file beside the source's whole name. ``writer`` imports what writes the format. One
    that ``needs_original`` is given the document's bytes."""

    name: str
    suffix: str
    media_type: str
    writer: Callable[[], Write]
    needs_original: bool = False


def _of_text(write_text: TextWriter) -> Write:
    """UTF-8, lines ended with a line feed."""

    def write(stream: BinaryIO, header: Json, pages: Pages, _: Original | None) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        write_text(text, header, pages)
        text.detach()

    return write


def _of_bytes(write_bytes: BytesWriter) -> Write:
    def write(stream: BinaryIO, header: Json, pages: Pages, _: Original | None) -> None:
        write_bytes(stream, header, pages)

    return write


def _with_original(write_bytes: OriginalWriter) -> Write:
    def write(stream: BinaryIO, header: Json, pages: Pages, original: Original | None) -> None:
        assert original is not None
        write_bytes(stream, header, pages, original)

    return write


def _markdown() -> Write:
    from pipeline.outputs import write_document_markdown

    return _of_text(write_document_markdown)


def _json() -> Write:
    from pipeline.outputs import write_document_json

    return _of_text(write_document_json)


def _text() -> Write:
    from pipeline.exports.plain_text import write_text

    return _of_text(write_text)


def _html() -> Write:
    from pipeline.exports.html import write_html

    return _of_text(write_html)


def _csv() -> Write:
    from pipeline.exports.csv_tables import write_csv_tables

    return _of_bytes(write_csv_tables)


def _xlsx() -> Write:
    from pipeline.exports.xlsx_tables import write_xlsx_tables

    return _of_bytes(write_xlsx_tables)


def _hocr() -> Write:
    from pipeline.exports.hocr import write_hocr

    return _of_text(write_hocr)


def _alto() -> Write:
    from pipeline.exports.alto import write_alto

    return _of_text(write_alto)


def _pdf() -> Write:
    from pipeline.exports.searchable_pdf import write_searchable_pdf

    return _with_original(write_searchable_pdf)


def _docling() -> Write:
    from pipeline.exports.docling import write_docling

    return _of_text(write_docling)


_ALL: Final = (
    OutputFormat(name="markdown", suffix=".md", media_type="text/markdown", writer=_markdown),
    OutputFormat(name="json", suffix=".json", media_type="application/json", writer=_json),
    OutputFormat(name="text", suffix=".txt", media_type="text/plain", writer=_text),
    OutputFormat(name="html", suffix=".html", media_type="text/html", writer=_html),
    OutputFormat(name="csv", suffix=".tables.zip", media_type="application/zip", writer=_csv),
    OutputFormat(
        name="xlsx",
        suffix=".xlsx",
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        writer=_xlsx,
    ),
    OutputFormat(name="hocr", suffix=".hocr", media_type="text/html", writer=_hocr),
    OutputFormat(name="alto", suffix=".alto.xml", media_type="application/xml", writer=_alto),
    OutputFormat(
        name="pdf",
        suffix=".searchable.pdf",
        media_type="application/pdf",
        writer=_pdf,
        needs_original=True,
    ),
    OutputFormat(name="docling", suffix=".docling.json", media_type="application/json", writer=_docling),
)
FORMATS: Final[Mapping[str, OutputFormat]] = {each.name: each for each in _ALL}
OUTPUT_SUFFIXES: Final = tuple(each.suffix for each in _ALL)
DEFAULT_FORMATS: Final = ("markdown", "json")
