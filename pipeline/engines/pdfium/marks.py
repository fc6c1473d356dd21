"""Check boxes and radio buttons of a form as characters: their marks are often drawn without any text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium_c

from models.geometry import Box
from pipeline.engines.pdfium.frame import Affine

MAX_ANNOTATIONS = 5_000

_CHARACTERS = {
    (pdfium_c.FPDF_FORMFIELD_CHECKBOX, True): "☑",
    (pdfium_c.FPDF_FORMFIELD_CHECKBOX, False): "☐",
    (pdfium_c.FPDF_FORMFIELD_RADIOBUTTON, True): "◉",
    (pdfium_c.FPDF_FORMFIELD_RADIOBUTTON, False): "○",
}


@dataclass(frozen=True, slots=True)
class FieldMark:
    """The state of one box, as a character, where it stands on the displayed page."""

    text: str
    box: Box


def field_marks(page: Any, form: Any, frame: Affine) -> tuple[FieldMark, ...]:
    """Call before the page is flattened, which removes the fields. ``form`` is the open form environment."""
    marks = []
    for index in range(min(pdfium_c.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        with _annotation(page, index) as annotation:
            mark = _mark(annotation, form, frame) if annotation else None
        if mark is not None:
            marks.append(mark)
    return tuple(marks)


@contextmanager
def _annotation(page: Any, index: int) -> Iterator[Any]:
    annotation = pdfium_c.FPDFPage_GetAnnot(page, index)
    try:
        yield annotation
    finally:
        if annotation:
            pdfium_c.FPDFPage_CloseAnnot(annotation)


def _mark(annotation: Any, form: Any, frame: Affine) -> FieldMark | None:
    if pdfium_c.FPDFAnnot_GetSubtype(annotation) != pdfium_c.FPDF_ANNOT_WIDGET:
        return None
    kind = pdfium_c.FPDFAnnot_GetFormFieldType(form, annotation)
    text = _CHARACTERS.get((kind, bool(pdfium_c.FPDFAnnot_IsChecked(form, annotation))))
    rect = pdfium_c.FS_RECTF()
    if text is None or not pdfium_c.FPDFAnnot_GetRect(annotation, rect):
        return None
    return FieldMark(text, frame.box(rect.left, rect.bottom, rect.right, rect.top))
