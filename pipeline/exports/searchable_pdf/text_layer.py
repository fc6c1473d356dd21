"""Invisible text on a page of a PDF, each word over its print."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pypdf import PageObject, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    PdfObject,
    RectangleObject,
    StreamObject,
)

from pipeline.exports.searchable_pdf.hidden_text import without_hidden_text
from pipeline.exports.searchable_pdf.invisible_font import ADVANCE_EM, InvisibleFont
from pipeline.exports.searchable_pdf.placement import PlacedText

FONT_KEY: Final = "DoctriageInvisible"
LETTER_PT: Final = (0.0, 0.0, 612.0, 792.0)
"""The page of a PDF that names no size, as PDFium has it."""

SIZE_TOLERANCE_PX: Final = 2
SIZE_TOLERANCE_SHARE: Final = 0.01
LEAST_FONT_SIZE: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """From pixels of the page as delivered to the page's own units: x' = ``x_by_x``·x + ``x_by_y``·y + ``x_at_0`` and
    y' likewise."""

    x_by_x: float
    x_by_y: float
    x_at_0: float
    y_by_x: float
    y_by_y: float
    y_at_0: float

    def vector(self, x: float, y: float) -> tuple[float, float]:
        return self.x_by_x * x + self.x_by_y * y, self.y_by_x * x + self.y_by_y * y

    def point(self, x: float, y: float) -> tuple[float, float]:
        along_x, along_y = self.vector(x, y)
        return along_x + self.x_at_0, along_y + self.y_at_0


def page_frame(page: PageObject, width_px: int, height_px: int) -> PageFrame | None:
    """None where the page as it was read has not the shape of this one, so that nothing is known of places on it."""
    left, bottom, right, top = _shown_box(page)
    width, height = right - left, top - bottom
    quarter_turns = int(page.rotation / 90) % 4
    shown = (height, width) if quarter_turns % 2 else (width, height)
    tolerance_px = max(SIZE_TOLERANCE_PX, SIZE_TOLERANCE_SHARE * max(width_px, height_px))
    if not (
        abs(width_px * shown[1] / shown[0] - height_px) <= tolerance_px
        or abs(height_px * shown[0] / shown[1] - width_px) <= tolerance_px
    ):
        return None
    across, down = shown[0] / width_px, shown[1] / height_px
    match quarter_turns:
        case 0:
            edges = (across, 0.0, left, 0.0, -down, top)
        case 1:
            edges = (0.0, down, left, across, 0.0, bottom)
        case 2:
            edges = (-across, 0.0, right, 0.0, down, bottom)
        case _:
            edges = (0.0, -down, right, -across, 0.0, top)
    names = ("x_by_x", "x_by_y", "x_at_0", "y_by_x", "y_by_y", "y_at_0")
    return PageFrame(**dict(zip(names, edges, strict=True)))


def _shown_box(page: PageObject) -> tuple[float, float, float, float]:
    """What a viewer shows: the crop box within the media box."""
    media = _edges(page, "/MediaBox") or LETTER_PT
    crop = _edges(page, "/CropBox") or media
    shown = (
        max(media[0], crop[0]),
        max(media[1], crop[1]),
        min(media[2], crop[2]),
        min(media[3], crop[3]),
    )
    return shown if shown[0] < shown[2] and shown[1] < shown[3] else media


def _edges(page: PageObject, name: str) -> tuple[float, float, float, float] | None:
    found = page.get(name)
    found = None if found is None else found.get_object()
    if not isinstance(found, ArrayObject) or len(found) < 4:
        return None
    box = RectangleObject(tuple(float(edge.get_object()) for edge in found[:4]))
    left, right = sorted((float(box.left), float(box.right)))
    bottom, top = sorted((float(box.bottom), float(box.top)))
    return (left, bottom, right, top) if left < right and bottom < top else None


def add_text(
    page: PageObject,
    frame: PageFrame,
    texts: Iterable[PlacedText],
    *,
    writer: PdfWriter,
    font: InvisibleFont,
) -> None:
    """Before all that the page paints, so that nothing of it can move our text, nor our text change it."""
    placed = list(texts)
    if not placed:
        return
    key = _add_font(page, font.reference)
    shown = (_shown_text(text, frame, font, key) for text in placed)
    content = "\n".join(["q", "BT", "3 Tr", *shown, "ET", "Q", ""])
    stream = StreamObject()
    stream.set_data(content.encode("ascii"))
    page[NameObject("/Contents")] = ArrayObject(
        [writer._add_object(stream.flate_encode()), *_content_streams(page, writer)]
    )


def _shown_text(text: PlacedText, frame: PageFrame, font: InvisibleFont, key: str) -> str:
    """Size, stretch and place of a word, then its codes; ``key`` is the font's name on the page."""
    along, up = frame.vector(text.along_x, text.along_y), frame.vector(text.up_x, text.up_y)
    x, y = frame.point(text.x, text.y)
    length, size = math.hypot(*along), max(math.hypot(*up), LEAST_FONT_SIZE)
    cos, sin = along[0] / length, along[1] / length
    stretch_percent = 100 * length / (ADVANCE_EM * size * len(text.text))
    matrix = " ".join(map(_number, (cos, sin, -sin, cos, x, y)))
    return f"/{key} {_number(size)} Tf {_number(stretch_percent)} Tz {matrix} Tm <{font.text_code(text.text)}> Tj"


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _content_streams(page: PageObject, writer: PdfWriter) -> list[PdfObject]:
    cleaned = without_hidden_text(page, writer)
    if cleaned is not None:
        return [writer._add_object(cleaned)]
    if "/Contents" not in page:
        return []
    contents = page.raw_get("/Contents")
    found = contents.get_object()
    if isinstance(found, ArrayObject):
        return list(found)
    if isinstance(contents, IndirectObject):
        return [contents]
    return [writer._add_object(found)] if isinstance(found, StreamObject) else []


def _add_font(page: PageObject, reference: IndirectObject) -> str:
    """The font's name among the page's own. What the page shares with others stays as it is."""
    resources = DictionaryObject(_dictionary(page, "/Resources"))
    fonts = DictionaryObject(_dictionary(resources, "/Font"))
    key = FONT_KEY
    while f"/{key}" in fonts:
        key += "X"
    fonts[NameObject(f"/{key}")] = reference
    resources[NameObject("/Font")] = fonts
    page[NameObject("/Resources")] = resources
    return key


def _dictionary(holder: DictionaryObject, name: str) -> dict[PdfObject, PdfObject]:
    found = holder.get(name)
    found = None if found is None else found.get_object()
    return {key: found.raw_get(key) for key in found} if isinstance(found, DictionaryObject) else {}
