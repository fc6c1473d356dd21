"""Whatever pixels a decoder gives, as a page: "L" or "RGB", on white, bounded in size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageCms

BAND_PIXELS = 4_000_000
"""A large image is converted in bands of this size, so that only its reduced copy is held beside it."""

_GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_WIDE_MODES = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_ALPHA_MODES = frozenset({"LA", "La", "PA", "RGBA", "RGBa"})
_UNSIGNED_WHITES = (255.0, 1_023.0, 4_095.0, 16_383.0, 65_535.0, 2.0**24 - 1, 2.0**32 - 1)
_SIGNED_WHITES = (127.0, 32_767.0, 2.0**31 - 1)

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class ToneRange:
    """The samples that mean black and white; black lies above white where the file says "min is white"."""

    black: float
    white: float

    @property
    def reversed(self) -> ToneRange:
        return ToneRange(self.white, self.black)


def upright_by_exif(image: Image.Image, orientation: int) -> Image.Image:
    """``image`` turned and mirrored as EXIF orientation 1 to 8 asks; any other value is no orientation."""
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def page_pixels(image: Image.Image, *, max_pixels: int, is_min_white: bool = False) -> Image.Image:
    """``image`` as "L" or "RGB" on white, with at most ``max_pixels``.

    Samples wider than eight bits are scaled by their range, never clipped: the least bit depth that holds
    the largest sample is taken as white, so that blank paper stays blank. ``is_min_white`` turns those
    samples round (Pillow does it for eight bits only).
    """
    tones = _tone_range(image) if image.mode in _WIDE_MODES else None
    if tones is not None and is_min_white:
        tones = tones.reversed
    if image.width * image.height <= max_pixels:
        return _flattened(image, tones)
    size = bounded_size(image.width, image.height, max_pixels)
    factor = max(1, min(image.width // size[0], image.height // size[1]))
    return _reduced_in_bands(image, tones, factor).resize(size, Image.Resampling.BOX)


def bounded_size(width_px: int, height_px: int, max_pixels: int) -> tuple[int, int]:
    """The same shape with at most ``max_pixels``, no side under one pixel."""
    scale = min(1.0, math.sqrt(max_pixels / (width_px * height_px)))
    width = max(1, int(width_px * scale))
    height = max(1, int(height_px * scale))
    return min(width, max(1, max_pixels // height)), min(height, max(1, max_pixels // width))


def _reduced_in_bands(image: Image.Image, tones: ToneRange | None, factor: int) -> Image.Image:
    size = (-(-image.width // factor), -(-image.height // factor))
    reduced = Image.new("L" if image.mode in _GREY_MODES else "RGB", size)
    for top, bottom in _bands(image.width, image.height, factor):
        band = _flattened(image.crop((0, top, image.width, bottom)), tones)
        reduced.paste(band.reduce(factor), (0, top // factor))
    return reduced


def _bands(width_px: int, height_px: int, factor: int) -> Iterator[tuple[int, int]]:
    rows = factor * max(1, BAND_PIXELS // (width_px * factor))
    for top in range(0, height_px, rows):
        yield top, min(top + rows, height_px)


def _flattened(image: Image.Image, tones: ToneRange | None) -> Image.Image:
    if tones is not None:
        return _scaled_to_grey(image, tones)
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        return _on_white(image)
    if image.mode == "LAB":
        return _lab_to_rgb(image)
    wanted = "L" if image.mode in _GREY_MODES else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _on_white(image: Image.Image) -> Image.Image:
    mode = "L" if image.mode in _GREY_MODES else "RGB"
    if image.mode == "La":
        image = image.convert("LA")
    visible = image.convert("RGBA")
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, visible).convert(mode)


def _scaled_to_grey(image: Image.Image, tones: ToneRange) -> Image.Image:
    samples = np.asarray(image, dtype=np.float32)
    share = (samples - tones.black) / (tones.white - tones.black)
    grey = np.nan_to_num(np.clip(share, 0.0, 1.0), nan=1.0) * 255.0
    return Image.fromarray(np.rint(grey).astype(np.uint8))


def _tone_range(image: Image.Image) -> ToneRange:
    low, high = _extrema(image)
    if image.mode == "F":
        if low >= 0 and high <= 1:
            return ToneRange(0.0, 1.0)
        if low < 0:
            return ToneRange(low, high)
    if low < 0:
        white = next((limit for limit in _SIGNED_WHITES if limit >= max(high, -low - 1)), _SIGNED_WHITES[-1])
        return ToneRange(-white - 1, white)
    return ToneRange(0.0, next((limit for limit in _UNSIGNED_WHITES if limit >= high), max(high, 1.0)))


def _extrema(image: Image.Image) -> tuple[float, float]:
    lows, highs = [0.0], [0.0]
    for top, bottom in _bands(image.width, image.height, 1):
        samples = np.asarray(image.crop((0, top, image.width, bottom)))
        finite = samples[np.isfinite(samples)]
        if finite.size:
            lows.append(float(finite.min()))
            highs.append(float(finite.max()))
    return min(lows), max(highs)


@cache
def _lab_transform() -> ImageCms.ImageCmsTransform:
    return ImageCms.buildTransform(
        ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB"
    )


def _lab_to_rgb(image: Image.Image) -> Image.Image:
    converted = ImageCms.applyTransform(image, _lab_transform())
    assert converted is not None
    return converted
