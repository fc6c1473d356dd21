"""Ink that looks like writing and that no word accounts for.

Tesseract drops whole lines and columns without a low confidence to show for it; their ink stays on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.rules import Rules
from pipeline.signals.view import Numbers, PageView, Pixels

TEXT_HEIGHTS: Final = (0.35, 3.0)
"""Strokes of this many text heights can be letters or joined-up words; smaller ones are specks, larger ones
drawings."""

LEAST_STROKE_PX: Final = 12
"""A letter has more pixels than this at the view's size."""

MARGIN_TEXT_HEIGHTS: Final = 0.35
"""Word boxes are widened by this: accents, descenders and punctuation stick out of them."""

EDGE_SHARE: Final = 0.015
"""What touches the outer 1.5 % of the page is the scanner's edge, not writing."""

LINE_GAP_TEXT_HEIGHTS: Final = 1.0
LEAST_LINE_STROKES: Final = 4
LEAST_LINE_TEXT_HEIGHTS: Final = 2.5
"""Four strokes side by side over 2.5 text heights are a piece of a line; maps and drawings rarely have
that."""

LEAST_STROKES: Final = 30
"""Fewer strokes than this have no typical height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncoveredArea:
    """Neighbouring strokes that no word accounts for, in view pixels."""

    left_px: int
    top_px: int
    right_px: int
    bottom_px: int
    strokes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of the text-like ink, None for a page without any.

    ``uncovered_share`` has no word; ``uncovered_line_share`` also stands in a row like a line of text.
    ``irregularity`` is the spread of stroke heights around their median (median absolute deviation over
    median): type has few heights, handwriting many; None under ``LEAST_STROKES`` strokes.
    """

    uncovered_share: float | None
    uncovered_line_share: float | None
    irregularity: float | None
    areas: tuple[UncoveredArea, ...]


def measure_coverage(view: PageView, rules: Rules) -> Coverage:
    strokes, centres = _text_like_strokes(view, rules)
    ink_px = strokes[:, cv2.CC_STAT_AREA]
    if not len(strokes):
        return Coverage(uncovered_share=None, uncovered_line_share=None, irregularity=None, areas=())
    covered = _word_mask(view)[centres[:, 1].astype(int), centres[:, 0].astype(int)] > 0
    missed = strokes[~covered]
    in_line = _stands_in_line(missed, view)
    total_px = float(ink_px.sum())
    return Coverage(
        uncovered_share=float(missed[:, cv2.CC_STAT_AREA].sum()) / total_px,
        uncovered_line_share=float(missed[in_line, cv2.CC_STAT_AREA].sum()) / total_px,
        irregularity=_irregularity(strokes),
        areas=_areas(missed, view),
    )


def _text_like_strokes(view: PageView, rules: Rules) -> tuple[np.ndarray, Numbers]:
    """Statistics (left, top, width, height, pixels) and centres of connected ink that could be letters."""
    drawn = cv2.dilate(cv2.bitwise_or(rules.horizontal, rules.vertical), np.ones((3, 3), np.uint8))
    _, _, stats, centres = cv2.connectedComponentsWithStats(cv2.subtract(view.ink, drawn))
    left, top, width, height, pixels = stats[1:].T
    least, most = (factor * view.text_height_px for factor in TEXT_HEIGHTS)
    margin_x, margin_y = EDGE_SHARE * view.width_px, EDGE_SHARE * view.height_px
    like = (
        (left > margin_x)
        & (top > margin_y)
        & (left + width < view.width_px - margin_x)
        & (top + height < view.height_px - margin_y)
        & (height >= least)
        & (height <= most)
        & (width <= 8 * most)
        & (pixels >= LEAST_STROKE_PX)
    )
    return stats[1:][like], centres[1:][like]


def _word_mask(view: PageView) -> Pixels:
    mask = np.zeros(view.ink.shape, np.uint8)
    margin = MARGIN_TEXT_HEIGHTS * view.text_height_px
    widened: Numbers = view.word_boxes + np.array([-margin, -margin, margin, margin])
    for left, top, right, bottom in np.rint(widened).astype(int).clip(0).tolist():
        mask[top:bottom, left:right] = 255
    return mask


def _irregularity(strokes: np.ndarray) -> float | None:
    if len(strokes) < LEAST_STROKES:
        return None
    heights = strokes[:, cv2.CC_STAT_HEIGHT].astype(np.float64)
    median = float(np.median(heights))
    return float(np.median(np.abs(heights - median))) / median


def _stands_in_line(strokes: np.ndarray, view: PageView) -> np.ndarray:
    """Which strokes chain up sideways: each one's middle band, drawn out to the right, touches the next
    one's."""
    left, top, width, height, _ = strokes.T
    reach = LINE_GAP_TEXT_HEIGHTS * view.text_height_px
    bands = np.stack([left, top + 0.25 * height, left + width + reach, top + 0.75 * height], axis=1)
    groups, bounds, sizes = _grouped(bands, view)
    long_enough = bounds[:, 2] - reach >= LEAST_LINE_TEXT_HEIGHTS * view.text_height_px
    flat_enough = bounds[:, 3] <= TEXT_HEIGHTS[1] * view.text_height_px
    return np.asarray((long_enough & flat_enough & (sizes >= LEAST_LINE_STROKES))[groups])


def _areas(strokes: np.ndarray, view: PageView) -> tuple[UncoveredArea, ...]:
    left, top, width, height, _ = strokes.T
    reach = 0.6 * view.text_height_px
    widened = np.stack([left - reach, top - reach, left + width + reach, top + height + reach], axis=1)
    _, bounds, sizes = _grouped(widened, view)
    inset = round(reach)
    return tuple(
        UncoveredArea(
            left_px=left + inset,
            top_px=top + inset,
            right_px=left + width - inset,
            bottom_px=top + height - inset,
            strokes=int(size),
        )
        for (left, top, width, height), size in zip(bounds.tolist(), sizes, strict=True)
        if size >= LEAST_LINE_STROKES
    )


def _grouped(boxes: Numbers, view: PageView) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (left, top, right, bottom) that touch form a group: each box's group, the groups' bounds
    (left, top, width, height) and how many boxes they have. Drawn on a canvas, so linear in the boxes."""
    canvas = np.zeros(view.ink.shape, np.uint8)
    corners = np.rint(boxes).astype(int)
    corners[:, 0::2] = corners[:, 0::2].clip(0, view.width_px - 1)
    corners[:, 1::2] = corners[:, 1::2].clip(0, view.height_px - 1)
    for left, top, right, bottom in corners.tolist():
        canvas[top : bottom + 1, left : right + 1] = 1
    _, labels, stats, _ = cv2.connectedComponentsWithStats(canvas)
    groups = labels[corners[:, 1], corners[:, 0]]
    return groups, stats[:, :4], np.bincount(groups, minlength=len(stats))
