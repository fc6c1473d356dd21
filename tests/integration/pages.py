"""Small PDFs and images that the tests of intake and rasterising are made of."""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
from PIL import Image
from reportlab.pdfgen import canvas

BLOCK = b"0 0 0 rg 110 110 100 50 re f"
"""Paints a black rectangle 100 x 50 points, its lower left corner at (110, 110)."""


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


def picture(width_px: int = 60, height_px: int = 80, mode: str = "RGB") -> Image.Image:
    """White, with a red square in the upper left corner that tells which way is up."""
    image = Image.new("RGB", (width_px, height_px), "white")
    image.paste((200, 0, 0), (0, 0, width_px // 4, height_px // 4))
    return image.convert(mode)


def ink_box(image: Image.Image) -> tuple[int, int, int, int] | None:
    """The bounding box of everything darker than half grey."""
    return image.convert("L").point(lambda value: 255 if value < 128 else 0).getbbox()
