"""Image files to pages: which frames are pages, and each of them as "L" or "RGB" on white, upright by EXIF.

Only TIFF has pages: of an animated GIF, WebP, AVIF, HEIC or PNG the first frame is the page, and reduced
copies or masks inside a TIFF are none. An image that ends early is refused, not delivered half grey: what
Pillow could still decode looks like a whole page, and nothing after this stage could tell.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count, islice
from pathlib import Path

import pillow_heif
from PIL import ExifTags, Image

from models.document import MediaType
from models.errors import DocumentCorrupt, PageNotRendered, TooManyPages, TooManyPixels
from pipeline.pixels import bounded_size, page_pixels, upright_by_exif
from pipeline.ports import PageRaster
from pipeline.resolution import RULES, plausible_dpi

Image.MAX_IMAGE_PIXELS = None
"""Pillow's guard warns and raises at its own limits; ours is checked from the header, before any decoding."""
pillow_heif.register_heif_opener()

MAX_COMPARED_PIXELS = 25_000_000
"""Larger JPEGs are decoded at a lower resolution to see whether they are whole."""
MIN_PIXEL_ASPECT = 1.1
MAX_PIXEL_ASPECT = 4.0
"""Fax pages have up to 204 x 98 dpi: pixels this far from square are made square, others are left alone."""

_FORMATS: dict[MediaType, tuple[str, ...]] = {
    MediaType.PNG: ("PNG",),
    MediaType.JPEG: ("JPEG", "MPO"),
    MediaType.TIFF: ("TIFF",),
    MediaType.WEBP: ("WEBP",),
    MediaType.BMP: ("BMP", "DIB"),
    MediaType.GIF: ("GIF",),
    MediaType.JPEG2000: ("JPEG2000",),
    MediaType.HEIC: ("HEIF", "AVIF"),
    MediaType.AVIF: ("AVIF", "HEIF"),
}
_BROKEN = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    AttributeError,
    struct.error,
    zlib.error,
)
"""What Pillow's parsers and decoders are known to raise on broken bytes."""
_BROKEN_MESSAGE = "damaged or incomplete image; get the file again, or save it anew as PNG, and submit that"
_SUBFILE_TYPE_TAG = 254
_NOT_A_PAGE_BITS = 0b101
_PHOTOMETRIC_TAG = 262
_PIECE_TAGS = ((273, 279), (324, 325))
"""Where the strips or tiles of a TIFF begin, and how many bytes each has."""
_FIRST_TRANSPOSED = 5
_JPEG_END = b"\xff\xd9"
_PADDING = b"\0\t\n\r "
_JPEG_NOISE = bytes(range(1, 255)) * 16


@dataclass(frozen=True, slots=True)
class Density:
    """How many pixels a decoded image has, once they are square, and how many of them to the inch."""

    width_px: int
    height_px: int
    dpi: float
    has_oblong_pixels: bool

    @classmethod
    def of(cls, width_px: int, height_px: int, x_dpi: float, y_dpi: float) -> Density:
        """From the header's size and what the file says of its density (0 or NaN where it says nothing)."""
        stretch = max(x_dpi, y_dpi) / min(x_dpi, y_dpi) if x_dpi > 0 and y_dpi > 0 else 1.0
        if MIN_PIXEL_ASPECT <= stretch <= MAX_PIXEL_ASPECT and min(x_dpi, y_dpi) >= RULES.min_dpi:
            if x_dpi > y_dpi:
                height_px = round(height_px * stretch)
            else:
                width_px = round(width_px * stretch)
            dpi = plausible_dpi(max(x_dpi, y_dpi), width_px, height_px)
            return cls(width_px, height_px, dpi, True)
        return cls(width_px, height_px, plausible_dpi(x_dpi, width_px, height_px), False)

    def square_size(self, size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
        """The size in square pixels of a page that may have been reduced to ``size`` already."""
        reduced = min(1.0, max(size[0] / self.width_px, size[1] / self.height_px))
        width_px, height_px = round(self.width_px * reduced), round(self.height_px * reduced)
        return bounded_size(max(1, width_px), max(1, height_px), max_pixels)


@dataclass(frozen=True, slots=True)
class Frame:
    """A page's frame in its file, and the size its header declares; None where that header is broken."""

    index: int
    size_px: tuple[int, int] | None


def count_pages(path: Path, media_type: MediaType, *, max_pages: int, max_pixels: int) -> int:
    """By the headers alone. Raises ``DocumentCorrupt``, ``TooManyPages``, ``TooManyPixels``."""
    page_count = 0
    with _opened(path, media_type) as image:
        for page_count, frame in enumerate(_page_frames(image, media_type), start=1):
            if page_count > max_pages:
                raise TooManyPages(f"more than {max_pages} pages; split the file and submit the parts")
            width_px, height_px = frame.size_px or (0, 0)
            if width_px * height_px > max_pixels:
                raise TooManyPixels(
                    f"page {page_count} has {width_px} x {height_px} pixels and {max_pixels} are allowed; "
                    "save it at a lower resolution and submit again"
                )
    return page_count


def read_page(path: Path, media_type: MediaType, page_number: int, *, max_page_pixels: int) -> PageRaster:
    """One page of an image file, reduced to ``max_page_pixels``. Raises ``PageNotRendered``."""
    try:
        return _read(path, media_type, page_number, max_page_pixels)
    except PageNotRendered:
        if media_type is MediaType.JPEG:
            return _jpeg_without_end_marker(path.read_bytes(), page_number, max_page_pixels)
        raise


def _read(
    source: Path | BytesIO, media_type: MediaType, page_number: int, max_page_pixels: int
) -> PageRaster:
    try:
        with _opened(source, media_type) as image:
            frame = next(islice(_page_frames(image, media_type), page_number - 1, None), None)
            if frame is None:
                raise PageNotRendered("the file ends before this page; get it again and submit that")
            if frame.size_px is None:
                raise PageNotRendered(_BROKEN_MESSAGE)
            image.seek(frame.index)
            return _raster(image, page_number, max_page_pixels)
    except DocumentCorrupt as error:
        raise PageNotRendered(str(error)) from error
    except MemoryError as error:
        raise PageNotRendered("too large for the memory at hand; save it at a lower resolution") from error
    except _BROKEN as error:
        raise PageNotRendered(_BROKEN_MESSAGE) from error


def is_cut_jpeg(stored: bytes) -> bool:
    """Whether the bytes of a JPEG end before its last row. One that has its end marker is believed."""
    stored = stored.rstrip(_PADDING)
    if stored.endswith(_JPEG_END):
        return False
    try:
        _jpeg_without_end_marker(stored, 1, MAX_COMPARED_PIXELS)
    except PageNotRendered:
        return True
    return False


def _jpeg_without_end_marker(stored: bytes, page_number: int, max_page_pixels: int) -> PageRaster:
    """A JPEG that lacks nothing but its end marker. Its pixels do not depend on what follows its bytes; those
    of one that ends early do, because the decoder draws the missing rows from there."""
    completed = [
        _read(BytesIO(stored + filler + _JPEG_END), MediaType.JPEG, page_number, max_page_pixels)
        for filler in (b"", _JPEG_NOISE)
    ]
    if completed[0].image != completed[1].image:
        raise PageNotRendered(_BROKEN_MESSAGE)
    return completed[0]


@contextmanager
def _opened(source: Path | BytesIO, media_type: MediaType) -> Iterator[Image.Image]:
    """The image, nothing decoded. Pillow's warnings about odd metadata are kept silent: the page matters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = Image.open(source, formats=_FORMATS[media_type])
        except _BROKEN as error:
            raise DocumentCorrupt(_BROKEN_MESSAGE) from error
        with image:
            yield image


def _page_frames(image: Image.Image, media_type: MediaType) -> Iterator[Frame]:
    """A broken frame inside a TIFF is a page that will fail; two in a row mean that the chain is lost."""
    if media_type is not MediaType.TIFF:
        yield Frame(0, image.size)
        return
    yielded, was_broken = False, False
    for index in count():
        try:
            image.seek(index)
        except EOFError:
            break
        except _BROKEN:
            if was_broken:
                break
            was_broken = True
            yield Frame(index, None)
            continue
        was_broken = False
        if not _tiff_tag(image, _SUBFILE_TYPE_TAG, 0) & _NOT_A_PAGE_BITS:
            yielded = True
            yield Frame(index, image.size)
    if not yielded:
        yield Frame(0, image.size)


def _tiff_tag(image: Image.Image, tag: int, default: int) -> int:
    value = getattr(image, "tag_v2", {}).get(tag, default)
    return value if isinstance(value, int) else default


def _raster(image: Image.Image, page_number: int, max_page_pixels: int) -> PageRaster:
    density = _density(image)
    is_min_white = _tiff_tag(image, _PHOTOMETRIC_TAG, 1) == 0
    if _lacks_pieces(image):
        raise PageNotRendered(_BROKEN_MESSAGE)
    if image.width * image.height > max_page_pixels:
        image.draft(None, bounded_size(*image.size, max_page_pixels))
    image.load()
    page = page_pixels(image, max_pixels=max_page_pixels, is_min_white=is_min_white)
    if density.has_oblong_pixels:
        page = page.resize(density.square_size(page.size, max_page_pixels), Image.Resampling.BICUBIC)
    scale = max(page.size) / max(density.width_px, density.height_px)
    page = upright_by_exif(page, _exif_orientation(image))
    return PageRaster(page_number=page_number, image=page, dpi=round(density.dpi * scale, 2))


def _lacks_pieces(image: Image.Image) -> bool:
    """Whether a TIFF leaves out a strip or tile. Some programs store no byte counts at all; that lacks nothing."""
    tags = getattr(image, "tag_v2", {})
    for offsets_tag, byte_counts_tag in _PIECE_TAGS:
        byte_counts = tags.get(byte_counts_tag, ())
        if 0 in tags.get(offsets_tag, ()) or (0 in byte_counts and any(byte_counts)):
            return True
    return False


def _exif_orientation(image: Image.Image) -> int:
    """Read after decoding: by then Pillow has turned a TIFF, and pillow-heif an HEIC, and removed the tag."""
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except _BROKEN:
        return 1
    return orientation if isinstance(orientation, int) else 1


def _density(image: Image.Image) -> Density:
    try:
        x_dpi, y_dpi = (float(value) for value in image.info.get("dpi", (0, 0)))
    except _BROKEN:
        x_dpi, y_dpi = 0.0, 0.0
    if _tiff_tag(image, ExifTags.Base.Orientation, 1) >= _FIRST_TRANSPOSED:
        return Density.of(*image.size[::-1], y_dpi, x_dpi)
    return Density.of(*image.size, x_dpi, y_dpi)
