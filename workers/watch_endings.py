"""Whether a file ends as its format asks for, told from a few of its bytes.

A scanner that is still sending leaves a PDF without its trailer, an image without its end marker. Nothing is decoded
here: a file that only looks whole is found out when it is read.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from models.document import MediaType
from models.errors import UnsupportedMediaType
from pipeline.intake import HEAD_BYTES, sniffed_media_type
from workers.watch_files import Ending

TAIL_BYTES = 1_024
"""PDF readers look for the end marker here, and so far behind the others' some programs append their own."""

PADDING = b"\0\t\n\r "
PDF_END = re.compile(rb"startxref\s+([1-9]\d*)\s+%%EOF")
"""With an offset of 0 it is the end of the first part of a file that is made for the web."""

PNG_END = b"IEND\xaeB`\x82"
JPEG_END = b"\xff\xd9"
GIF_END = b";"
BOX_HEADER_BYTES = 8
LONG_BOX_HEADER_BYTES = 16
MAX_BOXES = 10_000
STRIP_TAGS = ((273, 279), (324, 325))
"""Where the strips or tiles of a TIFF begin, and how many bytes each has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    path: Path
    byte_count: int
    head: bytes
    tail: bytes


def ending_of(path: Path) -> Ending:
    """Raises nothing: what cannot be opened is ``UNREADABLE``, what is no document ``UNSURE``."""
    try:
        ends = _ends_of(path)
    except OSError:
        return Ending.UNREADABLE
    if ends is None:
        return Ending.UNSURE
    try:
        is_whole = _CHECKS[sniffed_media_type(ends.head)](ends)
    except (UnsupportedMediaType, OSError):
        return Ending.UNSURE
    return Ending.WHOLE if is_whole else Ending.UNSURE


def _ends_of(path: Path) -> _Ends | None:
    """None for an empty file, and for what is none. Opened without waiting for the other end of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return None
        head = stream.read(HEAD_BYTES)
        stream.seek(max(0, status.st_size - TAIL_BYTES))
        return _Ends(path=path, byte_count=status.st_size, head=head, tail=stream.read(TAIL_BYTES))


def _pdf_ends(ends: _Ends) -> bool:
    return any(int(found[1]) < ends.byte_count for found in PDF_END.finditer(ends.tail))


def _png_ends(ends: _Ends) -> bool:
    return PNG_END in ends.tail


def _jpeg_ends(ends: _Ends) -> bool:
    return ends.tail.rstrip(PADDING).endswith(JPEG_END)


def _gif_ends(ends: _Ends) -> bool:
    return ends.tail.rstrip(PADDING).endswith(GIF_END)


def _webp_ends(ends: _Ends) -> bool:
    """RIFF: the size behind the first four bytes counts from there."""
    return int.from_bytes(ends.head[4:8], "little") + 8 <= ends.byte_count


def _bmp_ends(ends: _Ends) -> bool:
    return 0 < int.from_bytes(ends.head[2:6], "little") <= ends.byte_count


def _boxes_end(ends: _Ends) -> bool:
    """ISO base media (HEIC, AVIF, JPEG 2000): boxes with their lengths, one after the other, up to the end."""
    with ends.path.open("rb") as stream:
        at = 0
        for _ in range(MAX_BOXES):
            if at == ends.byte_count:
                return True
            stream.seek(at)
            header = stream.read(LONG_BOX_HEADER_BYTES)
            length = int.from_bytes(header[:4], "big")
            if length == 1:
                length = int.from_bytes(header[8:], "big")
            if length < BOX_HEADER_BYTES or at + length > ends.byte_count:
                return False
            at += length
    return False


def _jpeg2000_ends(ends: _Ends) -> bool:
    return _jpeg_ends(ends) or _boxes_end(ends)


def _tiff_ends(ends: _Ends) -> bool:
    """Every frame's strips or tiles lie within the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(ends.path, formats=("TIFF",)) as image:
                return all(end <= ends.byte_count for end in _strip_ends(image))
    except (OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, RuntimeError, struct.error):
        return False


def _strip_ends(image: Image.Image) -> Iterator[int]:
    for frame in range(getattr(image, "n_frames", 1)):
        image.seek(frame)
        tags = getattr(image, "tag_v2", {})
        for offsets_tag, byte_counts_tag in STRIP_TAGS:
            pairs = zip(tags.get(offsets_tag, ()), tags.get(byte_counts_tag, ()), strict=False)
            yield from (offset + byte_count for offset, byte_count in pairs)


_CHECKS: dict[MediaType, Callable[[_Ends], bool]] = {
    MediaType.PDF: _pdf_ends,
    MediaType.PNG: _png_ends,
    MediaType.JPEG: _jpeg_ends,
    MediaType.TIFF: _tiff_ends,
    MediaType.WEBP: _webp_ends,
    MediaType.BMP: _bmp_ends,
    MediaType.GIF: _gif_ends,
    MediaType.JPEG2000: _jpeg2000_ends,
    MediaType.HEIC: _boxes_end,
    MediaType.AVIF: _boxes_end,
}
