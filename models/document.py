"""A document as intake found it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MediaType(StrEnum):
    """The formats doctriage reads, by content."""

    PDF = "application/pdf"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    WEBP = "image/webp"
    BMP = "image/bmp"
    GIF = "image/gif"
    JPEG2000 = "image/jp2"
    HEIC = "image/heic"
    AVIF = "image/avif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """``document_id`` is the SHA-256 of the bytes in hex. ``attachments`` are names of files embedded in a PDF,
    reported but never opened or written."""

    document_id: str
    media_type: MediaType
    byte_count: int
    page_count: int
    attachments: tuple[str, ...] = ()
