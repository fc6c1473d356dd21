"""The marks on a page that may be letters: how tall they stand, and which of them no word accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from models.geometry import Box
from models.text import Word
from pipeline.ink import (
    GreyPage,
    GreyPixels,
    Marks,
    connected_marks,
    contrast_to_paper,
    is_negative,
    reduced_grey,
)

VIEW_LONG_SIDE_PX = 1_400
"""A4 at 120 dpi; strips are measured by their short side instead, so that they are not shrunk to nothing."""
VIEW_STRIP_ASPECT = 2.5
PAPER_WINDOW_PX = 21
LEAST_CONTRAST, MOST_CONTRAST = 24.0, 60.0
"""Ink is this much darker than its paper, of 255: 40 % of the page's darkest strokes, within these bounds.
The faintest scans measured peak at 50, show-through at 23."""

SHOW_THROUGH_CONTRAST = 70.0
SHOW_THROUGH_SHARPNESS = 0.31
"""Print seen through the paper: 0.19 to 0.27 for blurs of 2 to 3 px at 200 dpi, however strong. The faintest print
on this side: 0.36 and more."""

COLUMN_HEIGHTS = 3.0
"""A column of labels or numbers is at most so many letter heights wide."""

DARK_AREA_GREY_SHARE = 0.8
DARK_AREA_PX = (40, 14)
DARK_AREA_SHARE = 0.55
"""An area is dark when this share of a window of this width and height (a few letters on A4) is darker than
80 % of the paper's tone. Light letters leave three quarters of a band dark; bold type on paper reaches
half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Letter-like marks in pixels of the view; ``scale`` is view pixels a page pixel. ``ink`` is the whole
    view's, letter-like or not."""

    marks: Marks
    scale: float
    view_width_px: int
    view_height_px: int
    has_dark_area: bool
    is_show_through: bool
    ink: NDArray[np.bool_]

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
    peak = float(np.quantile(contrast[::3, ::3], 0.995))
    ink = contrast > min(max(0.4 * peak, LEAST_CONTRAST), MOST_CONTRAST)
    is_faint = peak < SHOW_THROUGH_CONTRAST
    height, width = view.pixels.shape
    return Letters(
        marks=_letter_like(connected_marks(ink), view),
        scale=view.scale,
        view_width_px=width,
        view_height_px=height,
        has_dark_area=is_negative(view.pixels) or _has_dark_area(view),
        is_show_through=is_faint and _sharpness(contrast, ink) < SHOW_THROUGH_SHARPNESS,
        ink=ink,
    )


def _letter_like(marks: Marks, view: GreyPage) -> Marks:
    tall, wide, area = marks.height / view.scale, marks.width / view.scale, marks.area / view.scale**2
    fits = (tall >= 4) & (wide >= 2) & (area >= 8) & (marks.height < max(view.pixels.shape) / 8)
    shaped = (wide < 4 * tall) & (tall < 8 * wide) & (marks.area < 0.95 * marks.width * marks.height)
    return marks.where(fits & shaped)


def _sharpness(contrast: GreyPixels, ink: NDArray[np.bool_]) -> float:
    """The steepest edges of the ink by its strongest contrast, per pixel of the view; 1 where there is no ink."""
    near = cv2.dilate(ink.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    if not near.any():
        return 1.0
    smooth = cv2.GaussianBlur(contrast, (3, 3), 0).astype(np.float32)
    steepness = cv2.magnitude(
        cv2.Sobel(smooth, cv2.CV_32F, 1, 0, scale=1 / 8), cv2.Sobel(smooth, cv2.CV_32F, 0, 1, scale=1 / 8)
    )
    return float(np.quantile(steepness[near], 0.98) / max(float(np.quantile(smooth[near], 0.98)), 1.0))


def _view(image: Image.Image) -> GreyPage:
    long, short = max(image.size), min(image.size)
    if long > VIEW_STRIP_ASPECT * short:
        return reduced_grey(image, VIEW_LONG_SIDE_PX / VIEW_STRIP_ASPECT / short)
    return reduced_grey(image, VIEW_LONG_SIDE_PX / long)


def _has_dark_area(view: GreyPage) -> bool:
    paper = float(np.quantile(view.pixels[::3, ::3], 0.9))
    dark = np.where(view.pixels < DARK_AREA_GREY_SHARE * paper, np.uint8(255), np.uint8(0))
    return bool((cv2.blur(dark, DARK_AREA_PX) > 255 * DARK_AREA_SHARE).any())


def on_white(grey: Image.Image, letters: Letters) -> Image.Image:
    """``grey`` (mode "L") as dark ink on pure white: all but the ink and its surroundings is painted over.

    On a nearly empty page an engine would take the grain of the paper for print, and lose minutes over it.
    """
    near = cv2.dilate(letters.ink.astype(np.uint8) * 255, np.ones((5, 5), np.uint8))
    return _masked(grey, np.asarray(near, dtype=np.uint8))


def marks_on_white(grey: Image.Image, letters: Letters, marks: Marks) -> Image.Image:
    """``grey`` with nothing left but ``marks``: without the dashes around a page number, for one."""
    return _masked(grey, _boxes_of(marks, letters, margin=1).astype(np.uint8) * 255)


def _masked(grey: Image.Image, mask: GreyPixels) -> Image.Image:
    full = Image.fromarray(mask).resize(grey.size, Image.Resampling.NEAREST)
    positive = ImageOps.invert(grey) if is_negative(np.asarray(grey)) else grey
    return Image.composite(positive, Image.new("L", grey.size, 255), full)


def clusters(marks: Marks, letters: Letters) -> list[tuple[int, int, int, int]]:
    """Boxes in page pixels around marks that stand together, with a margin of their height and a half."""
    margin = max(2, round(1.5 * float(np.median(marks.height)))) if len(marks) else 0
    groups = connected_marks(_boxes_of(marks, letters, margin=margin))
    right, bottom = groups.left + groups.width, groups.top + groups.height
    edges = np.stack([groups.left, groups.top, right, bottom], axis=1) / letters.scale
    return [(left, top, right, bottom) for left, top, right, bottom in edges.astype(int).tolist()]


def _boxes_of(marks: Marks, letters: Letters, *, margin: int) -> NDArray[np.bool_]:
    """The view with True in every mark's box, grown by ``margin``."""
    boxes = np.zeros((letters.view_height_px, letters.view_width_px), np.bool_)
    for left, top, width, height in zip(marks.left, marks.top, marks.width, marks.height, strict=True):
        top_px, left_px = max(0, top - margin), max(0, left - margin)
        boxes[top_px : top + height + margin, left_px : left + width + margin] = True
    return boxes


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


def narrow_column(marks: Marks, letters: Letters, *, least_rows: int) -> tuple[int, int, int, int] | None:
    """The box in page pixels, with a margin, around the narrow column of ``marks`` with the most rows, such as the
    labels of a list or the numbers of lines; None when none has ``least_rows``. Rows count once."""
    height_px = letters.height_px
    if height_px is None or len(marks) < least_rows:
        return None
    reach = COLUMN_HEIGHTS * height_px * letters.scale
    best: Marks | None = None
    best_rows = least_rows - 1
    for left in sorted(set(marks.left.tolist())):
        column = marks.where((marks.left >= left) & (marks.left + marks.width <= left + reach))
        rows = len(set((column.top / (height_px * letters.scale)).astype(int).tolist()))
        if rows > best_rows:
            best, best_rows = column, rows
    if best is None:
        return None
    left, top = float(best.left.min()), float(best.top.min())
    right, bottom = float((best.left + best.width).max()), float((best.top + best.height).max())
    return (
        max(0, int(left / letters.scale - height_px)),
        max(0, int(top / letters.scale - height_px)),
        int(right / letters.scale + height_px),
        int(bottom / letters.scale + height_px),
    )


def view_box(box: Box, scale: float) -> tuple[int, int, int, int]:
    """``box`` in whole view pixels, a pixel larger on every side."""
    return (
        max(0, int(box.left * scale) - 1),
        max(0, int(box.top * scale) - 1),
        int(box.right * scale) + 2,
        int(box.bottom * scale) + 2,
    )
