"""Small PDFs and images that the tests of intake and rasterising are made of."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pikepdf
from PIL import Image
from reportlab.pdfgen import canvas

BLOCK = b"0 0 0 rg 110 110 100 50 re f"
"""Paints a black rectangle 100 x 50 points, its lower left corner at (110, 110)."""
AS_STORED = {"compress_streams": False, "stream_decode_level": pikepdf.StreamDecodeLevel.none}


def pdf_with(
    path: Path, *, pages: int = 1, size=(612, 792), keys=None, content: bytes = BLOCK, **saving
) -> Path:
    """A PDF whose pages hold ``content`` and have ``keys`` set; ``saving`` goes to pikepdf."""
    pdf = pikepdf.new()
    for _ in range(pages):
        page = pdf.add_blank_page(page_size=size)
        page.obj.Contents = pdf.make_stream(content)
        for key, value in (keys or {}).items():
            page.obj[key] = value
    pdf.save(path, **saving)
    return path


def scan_pdf(path: Path, *, page_size, image: Image.Image, user_unit: float | None = None) -> Path:
    """A page covered by one image."""
    drawn = io.BytesIO()
    sheet = canvas.Canvas(drawn, pagesize=page_size)
    sheet.drawInlineImage(image, 0, 0, *page_size)
    sheet.save()
    with pikepdf.open(drawn) as pdf:
        if user_unit:
            pdf.pages[0].obj.UserUnit = user_unit
        pdf.save(path)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    """An image as a PDF stores it: ``data`` coded by ``coding``, None for plain samples."""

    data: bytes
    coding: str | None
    width_px: int
    height_px: int
    bits: int = 8
    parameters: Mapping[str, object] = field(default_factory=dict)

    def with_data(self, data: bytes) -> StoredImage:
        return replace(self, data=data)

    def stream(self, pdf: pikepdf.Pdf) -> pikepdf.Object:
        entries = {
            "/Type": pikepdf.Name.XObject,
            "/Subtype": pikepdf.Name.Image,
            "/Width": self.width_px,
            "/Height": self.height_px,
            "/ColorSpace": pikepdf.Name.DeviceGray,
            "/BitsPerComponent": self.bits,
        }
        if self.coding is None:
            return pdf.make_stream(self.data, entries)
        image = pdf.make_stream(b"", entries)
        parameters = pikepdf.Dictionary({f"/{key}": value for key, value in self.parameters.items()})
        image.write(self.data, filter=pikepdf.Name(f"/{self.coding}"), decode_parms=parameters)
        return image


def stored_scan_pdf(
    path: Path,
    image: StoredImage,
    *,
    share: float = 1.0,
    page_size=(300, 400),
    content: bytes = b"",
    **saving,
) -> Path:
    """A page of which ``image`` covers ``share`` from below, its bytes as they are, and ``content`` upon it."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=page_size)
    page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Scan=image.stream(pdf)))
    matrix = b"%d 0 0 %d 0 0" % (page_size[0], share * page_size[1])
    page.obj.Contents = pdf.make_stream(b"q " + matrix + b" cm /Scan Do Q " + content)
    pdf.save(path, **(saving or AS_STORED))
    return path


def picture(width_px: int = 60, height_px: int = 80, mode: str = "RGB") -> Image.Image:
    """White, with a red square in the upper left corner that tells which way is up."""
    image = Image.new("RGB", (width_px, height_px), "white")
    image.paste((200, 0, 0), (0, 0, width_px // 4, height_px // 4))
    return image.convert(mode)


def ink_box(image: Image.Image) -> tuple[int, int, int, int] | None:
    """The bounding box of everything darker than half grey."""
    return image.convert("L").point(lambda value: 255 if value < 128 else 0).getbbox()
