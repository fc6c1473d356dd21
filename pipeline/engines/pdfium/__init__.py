"""pdfium behind the ``PdfEngine`` port. This package alone imports pypdfium2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pypdfium2
from PIL import Image

from models.errors import PageNotRendered
from pipeline.engines.pdfium.damage import scan_damage
from pipeline.engines.pdfium.inspect import facts_of, shapes_of
from pipeline.engines.pdfium.opening import PDFIUM_LOCK, opened_document
from pipeline.engines.pdfium.text import read_text_layer
from pipeline.ports import PageShape, PdfFacts, TextLayer
from pipeline.resolution import POINTS_PER_INCH


class PdfiumEngine:
    """Opens the file anew for each call, so it holds nothing between calls."""

    def inspect(self, path: Path, password: str | None) -> PdfFacts:
        with opened_document(path, password) as document, PDFIUM_LOCK:
            return facts_of(document)

    def page_shapes(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> tuple[PageShape | None, ...]:
        with opened_document(path, password) as document, PDFIUM_LOCK:
            return shapes_of(document, page_numbers)

    def text_layers(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> Iterator[TextLayer]:
        with opened_document(path, password) as document:
            with PDFIUM_LOCK:
                document.init_forms()
            for page_number in page_numbers:
                with PDFIUM_LOCK:
                    layer = read_text_layer(document, page_number)
                yield layer

    def render(self, path: Path, page_number: int, *, dpi: float, password: str | None) -> Image.Image:
        with opened_document(path, password) as document, PDFIUM_LOCK:
            try:
                document.init_forms()
                bitmap = document[page_number - 1].render(scale=dpi / POINTS_PER_INCH)
            except pypdfium2.PdfiumError as error:
                raise PageNotRendered(
                    "this page is damaged and cannot be drawn; export the PDF anew and submit it again"
                ) from error
            image: Image.Image = bitmap.to_pil()
            return image.convert("RGB")

    def scan_damage(
        self, path: Path, page_number: int, *, password: str | None, is_suspect: bool
    ) -> bool | None:
        with opened_document(path, password) as document, PDFIUM_LOCK:
            try:
                return scan_damage(document[page_number - 1], is_suspect=is_suspect)
            except pypdfium2.PdfiumError:
                return None
