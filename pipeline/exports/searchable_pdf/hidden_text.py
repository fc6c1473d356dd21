"""The invisible text that an earlier OCR program left on a page, taken out before ours is put in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pypdf import PageObject, PdfWriter
from pypdf.generic import ContentStream, StreamObject

from pipeline.exports.searchable_pdf.faults import PARSER_FAULTS

INVISIBLE: Final = 3
_SETS_MODE: Final = re.compile(rb"(?<![\d.])3\s+Tr\b")
_SHOWS: Final = frozenset({b"Tj", b"TJ"})
_SHOWS_ON_NEXT_LINE: Final = frozenset({b"'", b'"'})

Operation = tuple[Any, bytes]


def without_hidden_text(page: PageObject, writer: PdfWriter) -> StreamObject | None:
    """The page's content without what it shows in render mode 3; None where there is none, or it cannot be told."""
    try:
        content = page.get_contents()
        if content is None or not _SETS_MODE.search(content.get_data()):
            return None
        parsed = ContentStream(content, writer)
        parsed.operations = list(_without_hidden(parsed.operations))
        stream = StreamObject()
        stream.set_data(parsed.get_data())
        return stream.flate_encode()
    except PARSER_FAULTS:
        return None


def _without_hidden(operations: Iterable[Operation]) -> Iterator[Operation]:
    mode, outer = 0, []
    for operands, operator in operations:
        if operator == b"q":
            outer.append(mode)
        elif operator == b"Q" and outer:
            mode = outer.pop()
        elif operator == b"Tr" and operands:
            mode = int(operands[0])
        if mode == INVISIBLE and operator in _SHOWS:
            continue
        if mode == INVISIBLE and operator in _SHOWS_ON_NEXT_LINE:
            yield [], b"T*"
            continue
        yield operands, operator
