"""Intake: what the bytes are, whether they are taken, and the document's name, the SHA-256 of the bytes.

Content decides, never the file's name. Every refusal is a ``DocumentRejected`` whose message says what to do.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import magic

from models.document import Document, MediaType
from models.errors import EmptyFile, SourceUnreadable, TooManyBytes, TooManyPages, UnsupportedMediaType
from pipeline.images import count_pages
from pipeline.ports import PdfEngine, PdfFacts
from pipeline.settings import IntakeSettings

HEAD_BYTES = 8_192
PDF_HEADER_WITHIN_BYTES = 1_024
"""PDF readers accept junk before the header up to here (Acrobat's implementation notes; so does pdfium)."""
READ_BYTES = 2**20

_MEDIA_TYPES: dict[str, MediaType] = {
    "application/pdf": MediaType.PDF,
    "image/png": MediaType.PNG,
    "image/apng": MediaType.PNG,
    "image/vnd.mozilla.apng": MediaType.PNG,
    "image/jpeg": MediaType.JPEG,
    "image/tiff": MediaType.TIFF,
    "image/webp": MediaType.WEBP,
    "image/bmp": MediaType.BMP,
    "image/x-ms-bmp": MediaType.BMP,
    "image/gif": MediaType.GIF,
    "image/jp2": MediaType.JPEG2000,
    "image/jpx": MediaType.JPEG2000,
    "image/x-jp2-codestream": MediaType.JPEG2000,
    "image/heic": MediaType.HEIC,
    "image/heif": MediaType.HEIC,
    "image/heic-sequence": MediaType.HEIC,
    "image/heif-sequence": MediaType.HEIC,
    "image/avif": MediaType.AVIF,
    "image/avif-sequence": MediaType.AVIF,
}
_JPEG2000_STARTS = (b"\xff\x4f\xff\x51", b"\x00\x00\x00\x0cjP  \r\n\x87\n")
_CONTAINERS = (
    "application/zip",
    "application/gzip",
    "application/x-tar",
    "application/x-7z",
    "application/x-rar",
    "application/java-archive",
    "application/vnd.openxmlformats",
    "application/vnd.oasis",
    "application/vnd.ms-",
    "application/epub",
    "message/",
)
"""A PDF stored inside one of these is not the document."""


@dataclass(frozen=True, slots=True)
class _Advice:
    """What to tell of formats that are not read, by the start of their media type; the first match counts."""

    starts: tuple[str, ...]
    kind: str
    advice: str


_ADVICE = (
    _Advice(
        (
            "application/vnd.openxmlformats",
            "application/vnd.oasis",
            "application/vnd.ms-",
            "application/msword",
            "application/x-ole",
            "application/cdfv2",
            "application/rtf",
            "text/rtf",
            "application/epub",
        ),
        "an office file",
        "export it as PDF and submit that",
    ),
    _Advice(
        (
            "application/zip",
            "application/gzip",
            "application/x-tar",
            "application/x-7z",
            "application/x-rar",
            "application/x-bzip2",
            "application/x-xz",
            "application/zstd",
            "application/java-archive",
        ),
        "an archive or an office file",
        "unpack it and submit the files inside, or export it as PDF",
    ),
    _Advice(("image/svg",), "an SVG drawing", "convert it to PDF or PNG and submit again"),
    _Advice(("text/html", "application/xhtml"), "a web page", "print it to PDF and submit that"),
    _Advice(("message/",), "an e-mail", "print it to PDF, and submit its attachments on their own"),
    _Advice(("application/postscript", "image/x-eps"), "PostScript", "convert it to PDF and submit again"),
    _Advice(
        ("text/", "application/json", "application/xml", "inode/"),
        "text, not a scan",
        "convert it to PDF and submit again",
    ),
    _Advice(("image/",), "an image format that is not read", "save it as PNG or TIFF and submit again"),
    _Advice(("audio/", "video/"), "sound or video", "submit PDF files and images only"),
)


def inspect_source(path: Path, *, pdf: PdfEngine, limits: IntakeSettings, password: str | None) -> Document:
    """Everything that is decided before a page is read. Raises a kind of ``DocumentRejected``."""
    document_id, byte_count, head = _read_once(path, limits.max_bytes)
    media_type = sniffed_media_type(head)
    facts = _facts(path, media_type, pdf, limits, password)
    if facts.page_count > limits.max_pages:
        raise TooManyPages(
            f"{facts.page_count} pages and {limits.max_pages} are allowed; split it and submit the parts"
        )
    return Document(
        document_id=document_id,
        media_type=media_type,
        byte_count=byte_count,
        page_count=facts.page_count,
        attachments=facts.attachments,
    )


def _facts(
    path: Path, media_type: MediaType, pdf: PdfEngine, limits: IntakeSettings, password: str | None
) -> PdfFacts:
    if media_type is MediaType.PDF:
        return pdf.inspect(path, password)
    page_count = count_pages(path, media_type, max_pages=limits.max_pages, max_pixels=limits.max_image_pixels)
    return PdfFacts(page_count=page_count, attachments=())


def sniffed_media_type(head: bytes) -> MediaType:
    """The format by the first ``HEAD_BYTES`` of a file. Raises ``EmptyFile`` and ``UnsupportedMediaType``."""
    if not head:
        raise EmptyFile("the file is empty; get it again and submit that")
    found = magic.from_buffer(head, mime=True)
    media_type = _MEDIA_TYPES.get(found)
    if media_type is not None:
        return media_type
    if head.startswith(_JPEG2000_STARTS):
        return MediaType.JPEG2000
    if b"%PDF-" in head[:PDF_HEADER_WITHIN_BYTES] and not found.startswith(_CONTAINERS):
        return MediaType.PDF
    for entry in _ADVICE:
        if found.lower().startswith(entry.starts):
            raise UnsupportedMediaType(f"{entry.kind} ({found}); {entry.advice}")
    raise UnsupportedMediaType(
        f"neither a PDF nor a known image ({found}); if it should be one, get it again and submit that"
    )


def _read_once(path: Path, max_bytes: int) -> tuple[str, int, bytes]:
    """SHA-256, size and first bytes, read as a stream; a pipe, device or directory is refused at once."""
    try:
        _refuse_special(path.stat(), max_bytes)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as source:
            _refuse_special(os.fstat(descriptor), max_bytes)
            digest = hashlib.sha256()
            head, byte_count = b"", 0
            while chunk := source.read(READ_BYTES):
                head = head or chunk[:HEAD_BYTES]
                byte_count += len(chunk)
                _refuse_size(byte_count, max_bytes)
                digest.update(chunk)
    except FileNotFoundError as error:
        raise SourceUnreadable("no such file; check the path") from error
    except PermissionError as error:
        raise SourceUnreadable("no permission to read it; change its permissions and submit again") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable path"
        raise SourceUnreadable(
            f"cannot be read ({reason}); copy it to a local folder and submit again"
        ) from error
    return digest.hexdigest(), byte_count, head


def _refuse_special(status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SourceUnreadable("a folder, pipe, socket or device; submit an ordinary file")
    _refuse_size(status.st_size, max_bytes)


def _refuse_size(byte_count: int, max_bytes: int) -> None:
    if byte_count > max_bytes:
        raise TooManyBytes(
            f"{byte_count} bytes and {max_bytes} are allowed; split the file or scan it at a lower resolution"
        )
