"""Plain text, a form feed after each page as ``pdftotext`` has it."""

from __future__ import annotations

from typing import TextIO

from pipeline.exports.document import Json, Pages
from pipeline.exports.page_parts import failure_note, is_failed

PAGE_END = "\f"


def write_text(stream: TextIO, header: Json, pages: Pages) -> None:
    """A page at a time."""
    for page in pages:
        text = f"[{failure_note(page)}]" if is_failed(page) else page["text"]
        stream.write(f"{text}\n{PAGE_END}" if text else PAGE_END)
