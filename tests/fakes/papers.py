"""Sheets of paper at any resolution, in inches: with print on them, with dirt on them, or with both."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

WIDTH_IN, HEIGHT_IN = 8.27, 11.69
MM_PER_INCH = 25.4


def paper(dpi: int, *, tone: int = 245, grain: float = 2.0, gradient: int = 0, seed: int = 7) -> Image.Image:
    """A4 in a tone with the grain of a scanner (standard deviation in grey levels), darker to the right."""
    width, height = round(WIDTH_IN * dpi), round(HEIGHT_IN * dpi)
    noise = np.random.default_rng(seed).normal(0, grain, (height, width)) if grain else 0.0
    pixels = tone + noise - np.linspace(0, gradient, width)[None, :] + np.zeros((height, width))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def printed(
    image: Image.Image, dpi: int, at_in: tuple[float, float], text: str, *, size_pt: float = 10, grey: int = 0
) -> Image.Image:
    font = ImageFont.load_default(max(4.0, size_pt * dpi / 72))
    ImageDraw.Draw(image).text((at_in[0] * dpi, at_in[1] * dpi), text, font=font, fill=grey)
    return image


def specks(image: Image.Image, dpi: int, count: int, most_mm: float, *, seed: int = 5) -> Image.Image:
    """Round specks of dirt of up to ``most_mm`` across."""
    random = np.random.default_rng(seed)
    draw = ImageDraw.Draw(image)
    for _ in range(count):
        x, y = random.uniform(0, image.width), random.uniform(0, image.height)
        radius = random.uniform(0.05, most_mm / 2) * dpi / MM_PER_INCH
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=int(random.integers(0, 120)))
    return image


def punched(image: Image.Image, dpi: int, tops_in: Sequence[float]) -> Image.Image:
    draw, radius = ImageDraw.Draw(image), 2.75 * dpi / MM_PER_INCH
    for top_in in tops_in:
        x, y = 0.5 * dpi, top_in * dpi
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=20)
    return image


def shadowed(image: Image.Image, dpi: int) -> Image.Image:
    """A black scanner edge on the left and at the foot."""
    draw, breadth = ImageDraw.Draw(image), round(6 * dpi / MM_PER_INCH)
    draw.rectangle((0, 0, breadth, image.height), fill=15)
    draw.polygon(
        [
            (0, image.height),
            (image.width, image.height),
            (image.width, image.height - breadth),
            (0, image.height - 2 * breadth),
        ],
        fill=10,
    )
    return image


def folded(image: Image.Image, *, contrast: int) -> Image.Image:
    middle = image.height // 2
    ImageDraw.Draw(image).line((0, middle, image.width, middle + 8), fill=245 - contrast, width=2)
    return image


def shown_through(
    dpi: int, *, contrast: int, blur_px: float, is_back: bool = True, seed: int = 7
) -> Image.Image:
    """A page of print seen from its back, through the paper; from its front when not ``is_back``."""
    sheet = Image.new("L", paper(dpi, grain=0).size, 255)
    for number in range(25):
        printed(
            sheet, dpi, (1, 1 + number * 0.3), f"Line {number} of the letter that stands on the other side"
        )
    if is_back:
        sheet = sheet.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    ink = 255 - np.asarray(sheet.filter(ImageFilter.GaussianBlur(blur_px * dpi / 200)), dtype=float)
    pixels = np.asarray(paper(dpi, seed=seed), dtype=float) - ink * contrast / 255
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def as_jpeg(image: Image.Image, quality: int) -> Image.Image:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(io.BytesIO(stream.getvalue()))
