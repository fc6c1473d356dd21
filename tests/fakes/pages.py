"""Small documents made on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FIRST_WIDTH_PX = 400
HEIGHT_PX = 160
DPI = 200


def page_image(text: str, *, width_px: int = 900, height_px: int = HEIGHT_PX) -> Image.Image:
    """A tall page ends in its lower right corner, so that hardly any of it is margin."""
    image = Image.new("L", (width_px, height_px), 255)
    font = ImageFont.load_default(36)
    draw = ImageDraw.Draw(image)
    draw.text((20, 50), text, fill=0, font=font)
    if height_px > 2 * width_px:
        draw.text((width_px - 80, height_px - 60), "end", fill=0, font=font)
    return image


def write_tiff(path: Path, pages: Sequence[Image.Image]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = pages
    first.save(
        path, format="TIFF", save_all=True, append_images=rest, compression="tiff_deflate", dpi=(DPI, DPI)
    )
    return path


def tiff_of_widths(path: Path, widths_px: Sequence[int]) -> Path:
    """One page a width, by which the fake engines know it."""
    return write_tiff(path, [page_image(f"width {width}", width_px=width) for width in widths_px])
