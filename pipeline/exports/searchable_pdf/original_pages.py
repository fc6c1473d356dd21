"""The original PDF opened to be written anew with all that belongs to it."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Final

from pypdf import PasswordType, PdfReader, PdfWriter

from pipeline.exports.original import Original
from pipeline.exports.searchable_pdf.faults import PARSER_FAULTS

PDF_HEADER: Final = "%PDF-1.7"
END_MARKER: Final = b"%%EOF"
MARKER_WITHIN_BYTES: Final = 1_024
_HEADER: Final = re.compile(r"%PDF-[12]\.\d")
"""A file with other bytes before its header has them in this place."""


class NotParsed(Exception):
    """pypdf makes nothing of the PDF, or something else than what was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedOriginal:
    writer: PdfWriter
    was_encrypted: bool


@contextmanager
def copied_original(original: Original) -> Iterator[CopiedOriginal]:
    """Pages, bookmarks, links and attachments of the PDF, without its encryption. Raises ``NotParsed``, also for
    what pypdf raises while the block runs."""
    with _quiet_parser():
        try:
            with original.path.open("rb") as stored:
                reader = PdfReader(_with_end_marker(stored), strict=False)
                if reader.is_encrypted:
                    _decrypt(reader, original.password)
                writer = PdfWriter(clone_from=reader)
                writer.pdf_header = reader.pdf_header if _HEADER.fullmatch(reader.pdf_header) else PDF_HEADER
                yield CopiedOriginal(writer=writer, was_encrypted=reader.is_encrypted)
        except PARSER_FAULTS as error:
            raise NotParsed(f"{type(error).__name__}: {error}") from error


def _with_end_marker(stored: BinaryIO) -> BinaryIO:
    """pypdf reads no file that lacks it; others look for the objects themselves."""
    size = stored.seek(0, os.SEEK_END)
    stored.seek(max(size - MARKER_WITHIN_BYTES, 0))
    has_marker = END_MARKER in stored.read()
    stored.seek(0)
    return stored if has_marker else BytesIO(stored.read() + b"\nstartxref\n0\n" + END_MARKER + b"\n")


def _decrypt(reader: PdfReader, password: str | None) -> None:
    """Whether a password is wrong, or only spelled in a way that pypdf does not know, tells who draws the pages."""
    for candidate in ("", password):
        if candidate is not None and reader.decrypt(candidate) is not PasswordType.NOT_DECRYPTED:
            return
    raise NotParsed("encrypted, and not opened")


@contextmanager
def _quiet_parser() -> Iterator[None]:
    """pypdf says of every oddity of a file that it met it; what matters of them is in the outcome."""
    parser = logging.getLogger("pypdf")
    before = parser.level
    parser.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        parser.setLevel(before)
