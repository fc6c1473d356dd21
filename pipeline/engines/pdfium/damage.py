"""Whether the raster images that make a page a scan are whole, by their stored bytes.

Renderers say nothing of a JPEG that ends early and draw its missing rows white or grey.
"""

from __future__ import annotations

import math

import pypdfium2
import pypdfium2.raw as pdfium_c

from models.geometry import Box
from pipeline.engines.pdfium.frame import page_frame
from pipeline.engines.pdfium.inspect import MIN_SCAN_SHARE
from pipeline.engines.pdfium.paint import COVERING_SHARE, painting_of
from pipeline.images import is_cut_jpeg

MIN_SCAN_PIXELS = 10_000
"""A smaller image stretched over the page is a background, not a scan."""
MAX_DECODED_PIXELS = 100_000_000
"""Larger images are not decoded to see whether they can be."""
MIN_DATA_SHARE = 0.99
"""Some programs store a row less than they declare."""


def scan_damage(page: pypdfium2.PdfPage, *, is_suspect: bool) -> bool | None:
    """Whether parts of the images that cover most of the page are missing; None where no images cover it.

    Missing bytes and JPEGs that end early are found at once; whether all others have enough data and can be
    decoded is looked at only where ``is_suspect``, as it takes as long as drawing them.
    """
    images = _scan_images(page)
    if not images:
        return None
    return any(_ends_early(image) or (is_suspect and _is_undecodable(image)) for image in images)


def _scan_images(page: pypdfium2.PdfPage) -> tuple[pypdfium2.PdfImage, ...]:
    width_pt, height_pt = page.get_size()
    page_area_pt2 = width_pt * height_pt
    painting = painting_of(page, page_frame(page), width_pt, height_pt)
    boxes: list[Box] = []
    images: list[pypdfium2.PdfImage] = []
    for painted in painting.images:
        image = pypdfium2.PdfImage(painted.page_object, page=page)
        if painted.box.area >= COVERING_SHARE * page_area_pt2 and _pixels(image) >= MIN_SCAN_PIXELS:
            boxes.append(painted.box)
            images.append(image)
    is_scan = sum(box.area for box in boxes) >= MIN_SCAN_SHARE * page_area_pt2
    return tuple(images) if is_scan else ()


def _pixels(image: pypdfium2.PdfImage) -> int:
    width_px, height_px = image.get_px_size()
    return int(width_px * height_px)


def _ends_early(image: pypdfium2.PdfImage) -> bool:
    if not pdfium_c.FPDFImageObj_GetImageDataRaw(image, None, 0):
        return True
    if image.get_filters(skip_simple=True) != ["DCTDecode"]:
        return False
    return is_cut_jpeg(bytes(image.get_data(decode_simple=True)))


def _is_undecodable(image: pypdfium2.PdfImage) -> bool:
    if _pixels(image) > MAX_DECODED_PIXELS:
        return False
    if not image.get_filters(skip_simple=True):
        stored_bytes = pdfium_c.FPDFImageObj_GetImageDataDecoded(image, None, 0)
        if stored_bytes < MIN_DATA_SHARE * _declared_bytes(image):
            return True
    bitmap = pdfium_c.FPDFImageObj_GetBitmap(image)
    if not bitmap:
        return True
    pdfium_c.FPDFBitmap_Destroy(bitmap)
    return False


def _declared_bytes(image: pypdfium2.PdfImage) -> int:
    width_px, height_px = image.get_px_size()
    return int(height_px * math.ceil(width_px * image.get_metadata().bits_per_pixel / 8))
