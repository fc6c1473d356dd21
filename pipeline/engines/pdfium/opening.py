"""Opening a PDF with pdfium, and every reason why that may fail, in the pipeline's own errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium_c

from models.errors import DocumentCorrupt, DocumentEncrypted, SourceUnreadable, WrongPassword

PDFIUM_LOCK = threading.RLock()
"""pdfium may be entered by one thread at a time; every call into it is made under this lock."""


@contextmanager
def opened_document(path: Path, password: str | None) -> Iterator[pypdfium2.PdfDocument]:
    """The document, closed at the end. The lock is not held while the caller works: take it for each call.

    A password that the document does not need is ignored, also where only an owner password protects it.
    Raises ``DocumentEncrypted``, ``WrongPassword``, ``DocumentCorrupt`` or ``SourceUnreadable``.
    """
    with PDFIUM_LOCK:
        document = _open(path, password)
    try:
        yield document
    finally:
        with PDFIUM_LOCK:
            document.close()


def _open(path: Path, password: str | None) -> pypdfium2.PdfDocument:
    _forget_last_error()
    try:
        return pypdfium2.PdfDocument(path, password=password)
    except FileNotFoundError as error:
        raise SourceUnreadable("the file is no longer there; submit it again") from error
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD and password is not None:
            return _open_without_password(path)
        raise _translated(error) from error


def _forget_last_error() -> None:
    """pdfium has one error for the whole process and keeps it when a document loads; a document without pages
    does load, and would be refused for the reason of the one before it. Loading nothing sets it to "no PDF"."""
    pdfium_c.FPDF_LoadMemDocument(b"", 0, None)


def _open_without_password(path: Path) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            raise WrongPassword(
                "encrypted, and the password given does not open it; "
                "give the right one (--password or --password-file on the command line)"
            ) from error
        raise _translated(error) from error


def _translated(error: pypdfium2.PdfiumError) -> DocumentEncrypted | DocumentCorrupt | SourceUnreadable:
    match error.err_code:
        case pdfium_c.FPDF_ERR_PASSWORD:
            return DocumentEncrypted(
                "encrypted; give its password (--password or --password-file on the command line), "
                "or remove the password and submit again"
            )
        case pdfium_c.FPDF_ERR_SECURITY:
            return DocumentEncrypted(
                "protected by a certificate or rights management; save it without protection and submit again"
            )
        case pdfium_c.FPDF_ERR_FILE:
            return SourceUnreadable("the file cannot be opened; check that it exists and may be read")
        case _:
            return DocumentCorrupt(
                "damaged PDF, or one without pages; print or export it to a new PDF and submit again"
            )
