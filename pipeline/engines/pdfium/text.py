"""A PDF page's own text, character by character, through pdfium.

pdfium gives characters in logical order (visually ordered Hebrew and Arabic is turned round), with spaces
and line breaks that it put in itself, and U+0002 for a hyphen at the end of a line. It does not say
whether a character can be seen: content switched off, painted over or white on white is in here as well,
and the reader of this layer has to compare it with the pixels.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

from models.errors import PageFailed
from models.geometry import Box
from pipeline.engines.pdfium.frame import Affine, page_frame
from pipeline.engines.pdfium.marks import FieldMark, field_marks
from pipeline.engines.pdfium.paint import Painting, address, painting_of
from pipeline.ports import Glyph, TextLayer

MAX_GLYPHS = 200_000
"""A page with more characters than this gets an empty layer, so that it is read from its pixels, in bounded
memory. The densest page of a printed book or table holds about 20,000."""

_HYPHENS_AT_LINE_END = frozenset({0x02, 0xFFFE})
_SOFT_HYPHEN = 0xAD
_INVISIBLE_MODES = frozenset({pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP})
_EMPTY = Box(0, 0, 0, 0)


def read_text_layer(pdf: pypdfium2.PdfDocument, page_number: int) -> TextLayer:
    """Flatten the form fields of one page, read its characters, free it. Raises ``PageFailed``."""
    try:
        marks = _marks_of(pdf, page_number)
        with _flattened(pdf, page_number) as page:
            return _layer(page, page_number, marks)
    except pypdfium2.PdfiumError as error:
        raise PageFailed(
            f"page {page_number}: damaged, its text cannot be parsed; export the PDF anew and submit it again"
        ) from error


@contextmanager
def _opened(pdf: pypdfium2.PdfDocument, page_number: int) -> Iterator[pypdfium2.PdfPage]:
    page = pdf[page_number - 1]
    try:
        yield page
    finally:
        page.close()


@contextmanager
def _flattened(pdf: pypdfium2.PdfDocument, page_number: int) -> Iterator[pypdfium2.PdfPage]:
    """The page with annotations and fields drawn into its content; changed pages have to be opened anew."""
    with _opened(pdf, page_number) as page:
        outcome = pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY)
        if outcome != pdfium_c.FLATTEN_SUCCESS:
            yield page
            return
    with _opened(pdf, page_number) as page:
        yield page


def _marks_of(pdf: pypdfium2.PdfDocument, page_number: int) -> tuple[FieldMark, ...]:
    if pdf.formenv is None:
        return ()
    with _opened(pdf, page_number) as page:
        return field_marks(page, pdf.formenv, page_frame(page))


@contextmanager
def _text_page(page: pypdfium2.PdfPage) -> Iterator[Any]:
    text_page = pdfium_c.FPDFText_LoadPage(page)
    if not text_page:
        raise pypdfium2.PdfiumError("no text page")
    try:
        yield text_page
    finally:
        pdfium_c.FPDFText_ClosePage(text_page)


def _layer(page: pypdfium2.PdfPage, page_number: int, marks: tuple[FieldMark, ...]) -> TextLayer:
    width_pt, height_pt = page.get_size()
    frame = page_frame(page)
    painting = painting_of(page, frame, width_pt, height_pt)
    with _text_page(page) as text_page:
        reader = _GlyphReader(text_page, frame, painting, Box(0, 0, width_pt, height_pt))
        glyphs = tuple(_with_marks(reader.glyphs(), marks))
    visible = sum(not glyph.text.isspace() for glyph in glyphs)
    return TextLayer(
        page_number=page_number,
        width_pt=width_pt,
        height_pt=height_pt,
        glyphs=glyphs,
        images=tuple(image.box for image in painting.images),
        unmapped_glyph_share=reader.unmapped_count / visible if visible else 0.0,
    )


def _with_marks(glyphs: Iterator[Glyph], marks: tuple[FieldMark, ...]) -> Iterator[Glyph]:
    """A mark's character takes the place of whatever letter the form drew inside the box."""
    for glyph in glyphs:
        if not any(_holds(mark.box, glyph.box) for mark in marks):
            yield glyph
    for mark in marks:
        yield _line_break()
        yield Glyph(text=mark.text, box=mark.box, font_size_pt=mark.box.height, angle_deg=0.0)


def _holds(outer: Box, inner: Box) -> bool:
    return inner.area > 0 and outer.intersection(inner) > 0.5 * inner.area


def _line_break() -> Glyph:
    return Glyph(text="\n", box=_EMPTY, font_size_pt=0.0, angle_deg=0.0, is_generated=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """What all characters of one text object share."""

    font_size_pt: float
    angle_deg: float
    font_number: int | None
    is_invisible: bool
    covers: tuple[Box, ...]


class _GlyphReader:
    def __init__(self, text_page: Any, frame: Affine, painting: Painting, page_box: Box) -> None:
        self.text_page = text_page
        self.frame = frame
        self.painting = painting
        self.page_box = page_box
        self.unmapped_count = 0
        self._runs: dict[int, _Run] = {}
        self._fonts: dict[int, int] = {}
        self._unmapped: dict[tuple[int | None, int], bool] = {}
        self._edges = tuple(ctypes.c_double() for _ in range(4))

    def glyphs(self) -> Iterator[Glyph]:
        """Characters on the displayed page, in pdfium's order; none where there are too many to hold."""
        count = pdfium_c.FPDFText_CountChars(self.text_page)
        if count > MAX_GLYPHS:
            return
        for index in range(count):
            code = pdfium_c.FPDFText_GetUnicode(self.text_page, index)
            text_object = pdfium_c.FPDFText_GetTextObject(self.text_page, index)
            if not text_object:
                yield from _generated(code)
                continue
            glyph = self._glyph(index, code, address(text_object), text_object)
            if glyph is not None:
                yield glyph

    def _glyph(self, index: int, code: int, object_address: int, text_object: Any) -> Glyph | None:
        text = self._text(index, code)
        box = self._box(index)
        centre_x, centre_y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        if text is None or not _contains(self.page_box, centre_x, centre_y):
            return None
        run = self._runs.get(object_address)
        if run is None:
            run = self._runs[object_address] = self._run(index, object_address, text_object)
        if not text.isspace():
            self.unmapped_count += self._is_unmapped(index, code, run.font_number)
        covered = any(_contains(cover, centre_x, centre_y) for cover in run.covers)
        return Glyph(
            text=text,
            box=box,
            font_size_pt=run.font_size_pt,
            angle_deg=run.angle_deg,
            is_painted=not (run.is_invisible or covered),
            font_number=run.font_number,
        )

    def _text(self, index: int, code: int) -> str | None:
        if code in _HYPHENS_AT_LINE_END:
            return "-"
        if code == _SOFT_HYPHEN:
            return "-" if self._ends_line(index) else None
        if code == 0 or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            return "\ufffd"
        return chr(code)

    def _ends_line(self, index: int) -> bool:
        if index + 1 >= pdfium_c.FPDFText_CountChars(self.text_page):
            return True
        return pdfium_c.FPDFText_GetUnicode(self.text_page, index + 1) in (0x0A, 0x0D)

    def _box(self, index: int) -> Box:
        left, right, bottom, top = self._edges
        if not pdfium_c.FPDFText_GetCharBox(self.text_page, index, left, right, bottom, top):
            return _EMPTY
        if left.value >= right.value or bottom.value >= top.value:
            return self._loose_box(index)
        return self.frame.box(left.value, bottom.value, right.value, top.value)

    def _loose_box(self, index: int) -> Box:
        """The box by the font's own ascent and descent, for spaces and for fonts that give no shape."""
        rect = pdfium_c.FS_RECTF()
        if not pdfium_c.FPDFText_GetLooseCharBox(self.text_page, index, rect):
            return _EMPTY
        return self.frame.box(rect.left, rect.bottom, rect.right, rect.top)

    def _run(self, index: int, object_address: int, text_object: Any) -> _Run:
        matrix = pdfium_c.FS_MATRIX()
        pdfium_c.FPDFText_GetMatrix(self.text_page, index, matrix)
        scale = math.sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c))
        mode = pdfium_c.FPDFTextObj_GetTextRenderMode(text_object)
        return _Run(
            font_size_pt=abs(pdfium_c.FPDFText_GetFontSize(self.text_page, index)) * scale,
            angle_deg=self.frame.clockwise_deg(matrix.a, matrix.b),
            font_number=self._font_number(text_object),
            is_invisible=mode in _INVISIBLE_MODES,
            covers=self.painting.covering(object_address),
        )

    def _font_number(self, text_object: Any) -> int | None:
        font = pdfium_c.FPDFTextObj_GetFont(text_object)
        return self._fonts.setdefault(address(font), len(self._fonts)) if font else None

    def _is_unmapped(self, index: int, code: int, font_number: int | None) -> bool:
        key = (font_number, code)
        known = self._unmapped.get(key)
        if known is None:
            known = pdfium_c.FPDFText_HasUnicodeMapError(self.text_page, index) == 1
            self._unmapped[key] = known
        return known


def _contains(box: Box, x: float, y: float) -> bool:
    return box.left <= x <= box.right and box.top <= y <= box.bottom


def _generated(code: int) -> Iterator[Glyph]:
    """pdfium ends a line with CR LF; one break is enough."""
    if code == 0x0A:
        yield _line_break()
    elif code == 0x20:
        yield Glyph(text=" ", box=_EMPTY, font_size_pt=0.0, angle_deg=0.0, is_generated=True)
