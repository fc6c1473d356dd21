"""At which resolution a page is rendered, and which resolution an OCR engine is told. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.ports import PageShape

POINTS_PER_INCH = 72.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionRules:
    """What counts as a believable resolution and a believable page.

    ``min_dpi`` and ``max_dpi`` bound what scanners really do; 70 is also the least Tesseract accepts. 72 and
    96 are what software writes when it knows nothing (``screen_dpis``), so they are believed only where the
    page they imply is at most ``screen_short_side_in`` wide (A3 is 11.7 inches). ``max_short_side_in`` is a
    little over A0. An unknown resolution is estimated as if the long side were that of A4
    (``page_long_side_in``), or, for a strip longer than ``strip_aspect`` times its width, as if the short
    side were that of an 80 mm receipt roll. A PDF page with a long side under ``small_page_pt`` (half a
    letter page) or over ``large_page_pt`` (tabloid) is looked into before its size is believed;
    ``readable_text_pt`` is the letter size that the rendering dpi is meant for. ``max_side_px`` is what
    Leptonica and most image formats still take.
    """

    min_dpi: float = 70.0
    max_dpi: float = 1_200.0
    screen_dpis: tuple[float, ...] = (72.0, 96.0)
    screen_short_side_in: float = 14.0
    max_short_side_in: float = 36.0
    page_long_side_in: float = 11.7
    strip_aspect: float = 2.5
    strip_short_side_in: float = 3.15
    small_page_pt: float = 396.0
    large_page_pt: float = 1_224.0
    readable_text_pt: float = 9.0
    max_side_px: int = 32_000


RULES = ResolutionRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResolution:
    """``render_dpi`` is pixels per inch of the PDF's own units; ``ocr_dpi`` is what an OCR engine is told."""

    render_dpi: float
    ocr_dpi: float


def is_believable(dpi: float, width_px: int, height_px: int, rules: ResolutionRules = RULES) -> bool:
    """Whether an image of this size can have been made at ``dpi``."""
    if not rules.min_dpi <= dpi <= rules.max_dpi:
        return False
    is_screen_default = any(math.isclose(dpi, screen, abs_tol=0.5) for screen in rules.screen_dpis)
    longest_in = rules.screen_short_side_in if is_screen_default else rules.max_short_side_in
    return min(width_px, height_px) / dpi <= longest_in


def estimated_dpi(width_px: int, height_px: int, rules: ResolutionRules = RULES) -> float:
    """The resolution a page of this many pixels most likely has, from ``min_dpi`` to ``max_dpi``."""
    short_px, long_px = sorted((width_px, height_px))
    if long_px > rules.strip_aspect * short_px:
        dpi = short_px / rules.strip_short_side_in
    else:
        dpi = long_px / rules.page_long_side_in
    return float(round(min(max(dpi, rules.min_dpi), rules.max_dpi)))


def plausible_dpi(dpi: float | None, width_px: int, height_px: int, rules: ResolutionRules = RULES) -> float:
    """``dpi`` where it can be believed, else the estimate from the pixel size."""
    if dpi is not None and is_believable(dpi, width_px, height_px, rules):
        return dpi
    return estimated_dpi(width_px, height_px, rules)


def bounded_dpi(shape: PageShape, dpi: float, max_page_pixels: int, rules: ResolutionRules = RULES) -> float:
    """``dpi``, or as much of it as keeps the page within its pixels and its longest side."""
    width_in, height_in = shape.width_pt / POINTS_PER_INCH, shape.height_pt / POINTS_PER_INCH
    by_area = math.sqrt(max_page_pixels / (width_in * height_in))
    by_side = rules.max_side_px / max(width_in, height_in)
    return min(dpi, by_area, by_side)


def is_unusual_size(shape: PageShape, rules: ResolutionRules = RULES) -> bool:
    """Whether the page's content has to be looked at before its size in points means anything."""
    return not rules.small_page_pt <= max(shape.width_pt, shape.height_pt) <= rules.large_page_pt


def page_resolution(
    shape: PageShape, *, dpi: int, max_page_pixels: int, rules: ResolutionRules = RULES
) -> PageResolution:
    """The resolution of one PDF page.

    Pages between half letter and tabloid get ``dpi``. A smaller one is enlarged, up to the pixels of a
    letter page, where a scan or the letters on it hold more than ``dpi`` would show (user units, thumbnails).
    A larger one that is a scan is not blown up beyond the scan's own pixels. All are bounded in pixels.
    """
    long_side_pt = max(shape.width_pt, shape.height_pt)
    wanted_dpi = float(dpi)
    if long_side_pt < rules.small_page_pt:
        wanted_dpi = _small_page_dpi(shape, dpi, rules)
    elif long_side_pt > rules.large_page_pt and shape.scan_dpi is not None:
        wanted_dpi = min(float(dpi), shape.scan_dpi)
    render_dpi = bounded_dpi(shape, wanted_dpi, max_page_pixels, rules)
    ocr_dpi = render_dpi
    if wanted_dpi != dpi:
        width_px, height_px = pixel_size(shape, render_dpi)
        ocr_dpi = plausible_dpi(render_dpi, width_px, height_px, rules)
    return PageResolution(render_dpi=render_dpi, ocr_dpi=ocr_dpi)


def _small_page_dpi(shape: PageShape, dpi: int, rules: ResolutionRules) -> float:
    letter_dpi = dpi * 11 * POINTS_PER_INCH / max(shape.width_pt, shape.height_pt)
    held_dpi = shape.scan_dpi or 0.0
    if shape.text_size_pt:
        held_dpi = max(held_dpi, dpi * rules.readable_text_pt / shape.text_size_pt)
    return max(float(dpi), min(held_dpi, letter_dpi))


def pixel_size(shape: PageShape, dpi: float) -> tuple[int, int]:
    """Width and height in pixels, rounded up as poppler does."""
    width_px = math.ceil(shape.width_pt * dpi / POINTS_PER_INCH - 1e-6)
    height_px = math.ceil(shape.height_pt * dpi / POINTS_PER_INCH - 1e-6)
    return max(1, width_px), max(1, height_px)
