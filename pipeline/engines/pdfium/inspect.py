"""What a PDF says of itself: pages, their shapes, and the names of files embedded in it."""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

import pypdfium2
import pypdfium2.raw as pdfium_c

from models.errors import DocumentCorrupt
from pipeline.ports import PageShape, PdfFacts
from pipeline.resolution import POINTS_PER_INCH, is_unusual_size

MAX_NAMED_ATTACHMENTS = 1_000
MAX_PAGES_TRIED = 1_000
"""A PDF none of whose first pages can be loaded is given up."""
MAX_NAME_CHARS = 255
MAX_OBJECTS_SEEN = 2_000
"""How many objects of a page are looked at for a scan or the letter size."""
MIN_SCAN_SHARE = 0.5
"""Images that cover less of the page than this do not make it a scan."""

_UNSHOWABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def facts_of(document: pypdfium2.PdfDocument) -> PdfFacts:
    """Raises ``DocumentCorrupt`` where not one page can be loaded."""
    page_count = len(document)
    if not any(
        _displayed_size(document, number) for number in range(1, min(page_count, MAX_PAGES_TRIED) + 1)
    ):
        raise DocumentCorrupt(
            "damaged PDF: none of its pages can be loaded; export it to a new PDF and submit again"
        )
    return PdfFacts(page_count=page_count, attachments=tuple(_attachment_names(document)))


def _attachment_names(document: pypdfium2.PdfDocument) -> Iterator[str]:
    count = document.count_attachments()
    for index in range(min(count, MAX_NAMED_ATTACHMENTS)):
        try:
            yield displayable_name(document.get_attachment(index).get_name())
        except (pypdfium2.PdfiumError, UnicodeDecodeError):
            yield "unnamed"
    if count > MAX_NAMED_ATTACHMENTS:
        yield f"and {count - MAX_NAMED_ATTACHMENTS} more"


def displayable_name(name: str) -> str:
    """The last part of an embedded file's name, without folders, control or direction characters."""
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    shown = "".join("\ufffd" if unicodedata.category(char) in _UNSHOWABLE else char for char in base)
    shown = shown.strip()[:MAX_NAME_CHARS]
    return "unnamed" if shown in {"", ".", ".."} else shown


def shapes_of(document: pypdfium2.PdfDocument, page_numbers: Sequence[int]) -> tuple[PageShape | None, ...]:
    """Sizes come from the page dictionary alone; only pages of unusual size have their content parsed."""
    return tuple(_shape(document, number) for number in page_numbers)


def _displayed_size(document: pypdfium2.PdfDocument, page_number: int) -> tuple[float, float] | None:
    try:
        width_pt, height_pt = document.get_page_size(page_number - 1)
    except pypdfium2.PdfiumError:
        return None
    if not (0 < width_pt < math.inf and 0 < height_pt < math.inf):
        return None
    return width_pt, height_pt


def _shape(document: pypdfium2.PdfDocument, page_number: int) -> PageShape | None:
    size = _displayed_size(document, page_number)
    if size is None:
        return None
    width_pt, height_pt = size
    shape = PageShape(width_pt=width_pt, height_pt=height_pt)
    if not is_unusual_size(shape):
        return shape
    try:
        page = document[page_number - 1]
    except pypdfium2.PdfiumError:
        return None
    try:
        objects = tuple(islice(page.get_objects(max_depth=3), MAX_OBJECTS_SEEN))
        return PageShape(
            width_pt=width_pt,
            height_pt=height_pt,
            scan_dpi=_scan_dpi(objects, width_pt * height_pt),
            text_size_pt=_text_size_pt(objects),
        )
    finally:
        page.close()


def _scan_dpi(objects: Sequence[pypdfium2.PdfObject], page_area_pt2: float) -> float | None:
    pixels, area_pt2 = 0, 0.0
    for image in objects:
        if isinstance(image, pypdfium2.PdfImage):
            width_px, height_px = image.get_px_size()
            left, bottom, right, top = image.get_bounds()
            pixels += width_px * height_px
            area_pt2 += max(0.0, right - left) * max(0.0, top - bottom)
    if not pixels or area_pt2 < MIN_SCAN_SHARE * page_area_pt2:
        return None
    return POINTS_PER_INCH * math.sqrt(pixels / area_pt2)


def _text_size_pt(objects: Sequence[pypdfium2.PdfObject]) -> float | None:
    sizes_pt = []
    for text in objects:
        if text.type == pdfium_c.FPDF_PAGEOBJ_TEXT:
            matrix = text.get_matrix()
            scale = math.sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c))
            sizes_pt.append(text.get_font_size() * scale)
    return statistics.median(sizes_pt) if sizes_pt else None
