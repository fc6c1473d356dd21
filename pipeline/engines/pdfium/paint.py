"""What a page paints, in which order: raster images, and the text that they cover."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium_c

from models.geometry import Box
from pipeline.engines.pdfium.frame import IDENTITY, Affine

MAX_OBJECTS = 100_000
"""Page objects looked at; real pages stay below a few thousand, so only hostile ones lose their tail."""
MAX_DEPTH = 8
"""Forms within forms that are followed; a form may contain itself."""
COVERING_SHARE = 0.02
"""An image smaller than this share of the page is no candidate for lying over text."""


@dataclass(frozen=True, slots=True)
class PaintedImage:
    """``page_object`` is pdfium's and lives as long as the page is open."""

    box: Box
    order: int
    page_object: Any


@dataclass(frozen=True, slots=True)
class Painting:
    """``text_order`` maps the address of a text object to its place in the order of painting."""

    images: tuple[PaintedImage, ...]
    text_order: dict[int, int]
    page_area_pt2: float

    def covering(self, text_address: int) -> tuple[Box, ...]:
        """Images of some size painted after a text object."""
        order = self.text_order.get(text_address)
        if order is None:
            return ()
        smallest = COVERING_SHARE * self.page_area_pt2
        return tuple(i.box for i in self.images if i.order > order and i.box.area >= smallest)


def address(pointer: Any) -> int:
    return ctypes.addressof(pointer.contents)


def painting_of(page: Any, frame: Affine, width_pt: float, height_pt: float) -> Painting:
    """Walk the page's objects depth first, which is the order of painting."""
    walk = _Walk(frame, Box(0, 0, width_pt, height_pt))
    walk.visit(page, IDENTITY, depth=0)
    return Painting(tuple(walk.images), walk.text_order, width_pt * height_pt)


class _Walk:
    def __init__(self, frame: Affine, page_box: Box) -> None:
        self.frame = frame
        self.page_box = page_box
        self.images: list[PaintedImage] = []
        self.text_order: dict[int, int] = {}
        self.seen = 0

    def visit(self, container: Any, matrix: Affine, *, depth: int) -> None:
        in_form = depth > 0
        count = (pdfium_c.FPDFFormObj_CountObjects if in_form else pdfium_c.FPDFPage_CountObjects)(container)
        get_object = pdfium_c.FPDFFormObj_GetObject if in_form else pdfium_c.FPDFPage_GetObject
        for index in range(count):
            if self.seen >= MAX_OBJECTS:
                return
            self.seen += 1
            self._visit_object(get_object(container, index), matrix, depth)

    def _visit_object(self, page_object: Any, matrix: Affine, depth: int) -> None:
        kind = pdfium_c.FPDFPageObj_GetType(page_object)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            self.text_order[address(page_object)] = self.seen
        elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            self._add_image(page_object, matrix)
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            own = pdfium_c.FS_MATRIX()
            if pdfium_c.FPDFPageObj_GetMatrix(page_object, own):
                form_matrix = Affine(own.a, own.b, own.c, own.d, own.e, own.f)
                self.visit(page_object, form_matrix.then(matrix), depth=depth + 1)

    def _add_image(self, page_object: Any, matrix: Affine) -> None:
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        if not pdfium_c.FPDFPageObj_GetBounds(page_object, left, bottom, right, top):
            return
        box = matrix.then(self.frame).box(left.value, bottom.value, right.value, top.value)
        page = self.page_box
        clipped = Box(
            max(box.left, page.left),
            max(box.top, page.top),
            min(box.right, page.right),
            min(box.bottom, page.bottom),
        )
        if clipped.width > 0 and clipped.height > 0:
            self.images.append(PaintedImage(clipped, self.seen, page_object))
