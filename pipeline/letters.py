"""The marks on a page that may be letters: how tall they stand, and which of them no word accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from models.geometry import Box
from models.text import Word
from pipeline.ink import GreyPage, Marks, connected_marks, contrast_to_paper, is_negative, reduced_grey

VIEW_LONG_SIDE_PX = 1_400
"""A4 at 120 dpi; strips are measured by their short side instead, so that they are not shrunk to nothing."""
VIEW_STRIP_ASPECT = 2.5
PAPER_WINDOW_PX = 21
LEAST_CONTRAST, MOST_CONTRAST = 24.0, 60.0
"""Ink is this much darker than its paper, of 255: 40 % of the page's darkest strokes, within these bounds.
The faintest scans measured peak at 50, show-through at 23."""

DARK_AREA_GREY_SHARE = 0.8
DARK_AREA_PX = (40, 14)
DARK_AREA_SHARE = 0.55
"""An area is dark when this share of a window of this width and height (a few letters on A4) is darker than
80 % of the paper's tone. Light letters leave three quarters of a band dark; bold type on paper reaches
half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Letter-like marks in pixels of the view; ``scale`` is view pixels a page pixel."""

    marks: Marks
    scale: float
    view_width_px: int
    view_height_px: int
    has_dark_area: bool

    @property
    def height_px(self) -> float | None:
        """Typical height in page pixels, x-height and capitals mixed, taller marks counting more."""
        heights = np.sort(self.marks.height)
        if not len(heights):
            return None
        sums = np.cumsum(heights)
        return float(heights[np.searchsorted(sums, sums[-1] / 2)]) / self.scale


def find_letters(image: Image.Image) -> Letters:
    """Marks at least 4 px tall and 2 px wide whose shape a letter, or a few joined letters, may have."""
    view = _view(image)
    contrast = contrast_to_paper(view.pixels, PAPER_WINDOW_PX)
    threshold = min(max(0.4 * float(np.quantile(contrast[::3, ::3], 0.995)), LEAST_CONTRAST), MOST_CONTRAST)
    marks = connected_marks(contrast > threshold)
    height, width = view.pixels.shape
    tall, wide, area = marks.height / view.scale, marks.width / view.scale, marks.area / view.scale**2
    fits = (tall >= 4) & (wide >= 2) & (area >= 8) & (marks.height < max(height, width) / 12)
    shaped = (wide < 4 * tall) & (tall < 8 * wide) & (marks.area < 0.95 * marks.width * marks.height)
    return Letters(
        marks=marks.where(fits & shaped),
        scale=view.scale,
        view_width_px=width,
        view_height_px=height,
        has_dark_area=is_negative(view.pixels) or _has_dark_area(view),
    )


def _view(image: Image.Image) -> GreyPage:
    long, short = max(image.size), min(image.size)
    if long > VIEW_STRIP_ASPECT * short:
        return reduced_grey(image, VIEW_LONG_SIDE_PX / VIEW_STRIP_ASPECT / short)
    return reduced_grey(image, VIEW_LONG_SIDE_PX / long)


def _has_dark_area(view: GreyPage) -> bool:
    paper = float(np.quantile(view.pixels[::3, ::3], 0.9))
    dark = np.where(view.pixels < DARK_AREA_GREY_SHARE * paper, np.uint8(255), np.uint8(0))
    return bool((cv2.blur(dark, DARK_AREA_PX) > 255 * DARK_AREA_SHARE).any())


def uncovered_letters(letters: Letters, words: Sequence[Word]) -> Marks:
    """Marks about as tall as the words of the page whose centre lies in none of them."""
    typical = float(np.median([word.box.height for word in words])) if words else letters.height_px or 0.0
    marks = letters.marks
    tall, wide = marks.height / letters.scale, marks.width / letters.scale
    like_words = (tall >= 0.35 * typical) & (tall <= 2.5 * typical) & (wide >= 0.1 * typical)
    covered = np.zeros((letters.view_height_px, letters.view_width_px), np.bool_)
    for word in words:
        left, top, right, bottom = view_box(word.box, letters.scale)
        covered[top:bottom, left:right] = True
    at_y = np.minimum(marks.top + marks.height // 2, letters.view_height_px - 1)
    at_x = np.minimum(marks.left + marks.width // 2, letters.view_width_px - 1)
    return marks.where(like_words & ~covered[at_y, at_x])


def view_box(box: Box, scale: float) -> tuple[int, int, int, int]:
    """``box`` in whole view pixels, a pixel larger on every side."""
    return (
        max(0, int(box.left * scale) - 1),
        max(0, int(box.top * scale) - 1),
        int(box.right * scale) + 2,
        int(box.bottom * scale) + 2,
    )
