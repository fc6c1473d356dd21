"""The original PDF opened to be written anew with all that belongs to it."""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pypdf import PasswordType, PdfReader, PdfWriter
from pypdf.errors import DependencyError, PyPdfError

from models.errors import DocumentEncrypted, WrongPassword
from pipeline.exports.original import Original

PARSER_FAULTS: Final = (
    PyPdfError,
    DependencyError,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
)
"""What pypdf is known to raise on broken bytes."""


class NotParsed(Exception):
    """pypdf makes nothing of the PDF, or something else than what was read."""


@contextmanager
def copied_original(original: Original) -> Iterator[PdfWriter]:
    """Pages, bookmarks, links and attachments of the PDF, without its encryption. Raises ``NotParsed``, also for
    what pypdf raises while the block runs, ``DocumentEncrypted`` without a password and ``WrongPassword``."""
    with _quiet_parser():
        try:
            with original.path.open("rb") as stream:
                reader = PdfReader(stream, strict=False)
                if reader.is_encrypted:
                    _decrypt(reader, original.password)
                yield PdfWriter(clone_from=reader, keep_initial_header=True)
        except PARSER_FAULTS as error:
            raise NotParsed(f"{type(error).__name__}: {error}") from error


def _decrypt(reader: PdfReader, password: str | None) -> None:
    for candidate in ("", password):
        if candidate is not None and reader.decrypt(candidate) is not PasswordType.NOT_DECRYPTED:
            return
    if password is None:
        raise DocumentEncrypted("encrypted; give its password with --password")
    raise WrongPassword("encrypted, and the password given does not open it")


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
