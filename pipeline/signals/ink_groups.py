"""Ink that stands together like the letters of a word, and the shape of each such group in numbers.

Rules are taken out first, so that what is written on a line of a form is not one shape with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.rules import Rules
from pipeline.signals.view import Numbers, PageView, Pixels

SHAPE_NAMES: Final = (
    "height",
    "width",
    "aspect",
    "strokes_per_width",
    "fill",
    "pen_width",
    "pen_width_spread",
    *(f"edges_at_{angle_deg:g}_deg" for angle_deg in np.arange(8) * 22.5),
    "largest_width",
    "largest_height",
    "largest_ink_share",
    "largest_fill",
    "height_spread",
    "bottom_spread",
    "largest_solidity",
    "largest_roughness",
    "largest_holes",
    "slope",
    "off_the_line",
    "pen_length",
    "log_ink",
)
"""Lengths are in text heights of the page. ``largest`` is the stroke with the most ink; its solidity is the share
of its convex hull, its roughness the square of its outline's length by its ink. ``edges_at`` is the share of the
group's edges in each direction: type has upright and level ones above all."""

LEAST_INK_PX: Final = 15
LEAST_HEIGHT: Final = 0.4
LEAST_STROKE_PX: Final = 6
LEAST_STROKE_HEIGHT: Final = 0.2
"""Smaller ones, in text heights or pixels, are specks."""

MOST_STROKE_HEIGHT: Final = 10.0
MOST_STROKE_SHARE: Final = 0.25
MOST_BAND_SHARE: Final = 0.6
"""Higher and wider strokes than this, in text heights and shares of the page, are frames and pictures."""

EDGE_SHARE: Final = 0.012
"""What touches the outer 1.2 % of the page is the scanner's edge."""

GROUP_GAP: Final = 0.45
"""Strokes of one group stand no further apart, in text heights."""

STRONG_EDGE: Final = 0.3
"""Edges count from this share of the group's strongest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrokePicture:
    """The view's connected strokes: ``labels`` has each pixel's stroke, ``stats`` a row (left, top, width, height,
    pixels) a stroke, ``ink`` 255 where there is any, without the rules."""

    ink: Pixels
    labels: np.ndarray
    stats: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class InkGroup:
    """Strokes by their labels, with their bounds in view pixels."""

    strokes: np.ndarray
    left_px: int
    top_px: int
    right_px: int
    bottom_px: int
    ink_px: int

    @property
    def window(self) -> tuple[slice, slice]:
        return np.s_[self.top_px : self.bottom_px, self.left_px : self.right_px]


def find_strokes(view: PageView, rules: Rules) -> StrokePicture:
    drawn = cv2.dilate(cv2.bitwise_or(rules.horizontal, rules.vertical), np.ones((3, 3), np.uint8))
    ink = np.asarray(cv2.subtract(view.ink, drawn), dtype=np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink)
    return StrokePicture(ink=ink, labels=labels, stats=stats)


def find_groups(picture: StrokePicture, view: PageView) -> Iterator[InkGroup]:
    """Strokes that stand side by side; specks, frames and what lies at the page's edge are left out."""
    labels = _writing_like(picture.stats, view)
    if not len(labels):
        return
    owners = _owners(picture.stats[labels], view)
    order = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    for members in np.split(labels[order], starts[1:]):
        stats = picture.stats[members]
        left, top = stats[:, 0].min(), stats[:, 1].min()
        right, bottom = (stats[:, 0] + stats[:, 2]).max(), (stats[:, 1] + stats[:, 3]).max()
        ink_px = int(stats[:, cv2.CC_STAT_AREA].sum())
        if ink_px >= LEAST_INK_PX and bottom - top >= LEAST_HEIGHT * view.text_height_px:
            yield InkGroup(
                strokes=members,
                left_px=int(left),
                top_px=int(top),
                right_px=int(right),
                bottom_px=int(bottom),
                ink_px=ink_px,
            )


def _writing_like(stats: np.ndarray, view: PageView) -> np.ndarray:
    left, top, width, height, pixels = stats.T
    em, page_width, page_height = view.text_height_px, view.width_px, view.height_px
    is_speck = (pixels < LEAST_STROKE_PX) | (np.maximum(width, height) < LEAST_STROKE_HEIGHT * em)
    is_frame = (height > MOST_STROKE_HEIGHT * em) & (height > MOST_STROKE_SHARE * page_height)
    is_band = (width > MOST_BAND_SHARE * page_width) & (height > 3 * em)
    margin_x, margin_y = EDGE_SHARE * page_width, EDGE_SHARE * page_height
    is_inside = (
        (left > margin_x)
        & (top > margin_y)
        & (left + width < page_width - margin_x)
        & (top + height < page_height - margin_y)
    )
    chosen = ~is_speck & ~is_frame & ~is_band & is_inside
    chosen[0] = False  # the background
    return np.flatnonzero(chosen)


def _owners(stats: np.ndarray, view: PageView) -> np.ndarray:
    """The group of each stroke: middle bands, drawn out sideways, that touch."""
    canvas = np.zeros((view.height_px, view.width_px), np.uint8)
    left, top, width, height, _ = stats.T
    reach = GROUP_GAP * view.text_height_px / 2
    first_row, last_row = (top + 0.25 * height).astype(int), (top + 0.75 * height).astype(int)
    first_column, last_column = np.maximum(left - reach, 0).astype(int), (left + width + reach).astype(int)
    for y1, y2, x1, x2 in zip(first_row, last_row, first_column, last_column, strict=True):
        canvas[y1 : max(y2, y1 + 1), x1 : x2 + 1] = 1
    _, groups = cv2.connectedComponents(canvas)
    owners: np.ndarray = groups[first_row, left + width // 2]
    return owners


class ShapeMeter:
    """Measures groups of one view; what they share is computed once."""

    def __init__(self, picture: StrokePicture, view: PageView) -> None:
        self._picture = picture
        self._em = view.text_height_px
        self._across = cv2.Sobel(view.grey, cv2.CV_32F, 1, 0)
        self._down = cv2.Sobel(view.grey, cv2.CV_32F, 0, 1)

    def shape(self, group: InkGroup) -> Numbers:
        """The values of ``SHAPE_NAMES``, in that order."""
        stats = self._picture.stats[group.strokes]
        own = np.isin(self._picture.labels[group.window], group.strokes).astype(np.uint8)
        width, height = (
            (group.right_px - group.left_px) / self._em,
            (group.bottom_px - group.top_px) / self._em,
        )
        depth = cv2.distanceTransform(
            cv2.copyMakeBorder(own, 1, 1, 1, 1, cv2.BORDER_CONSTANT), cv2.DIST_L2, 3
        )
        depth = depth[1:-1, 1:-1][own > 0]
        pen_px = float(np.percentile(depth, 90))
        ink_em = group.ink_px / self._em**2
        return np.array(
            [
                height,
                width,
                width / height,
                len(stats) / max(width, 0.5),
                group.ink_px / own.size,
                10 * pen_px / self._em,
                float(depth.std() / max(depth.mean(), 0.1)),
                *self._edge_directions(group, own),
                *self._largest_stroke(stats, group),
                *self._line_fit(stats, height),
                group.ink_px / max(2 * pen_px, 1.0) / self._em,
                float(np.log(ink_em + 0.01)),
            ]
        )

    def _edge_directions(self, group: InkGroup, own: Pixels) -> Numbers:
        across, down = self._across[group.window], self._down[group.window]
        strength = cv2.magnitude(across, down)
        near = cv2.dilate(own, np.ones((3, 3), np.uint8)) > 0
        edges = near & (strength > STRONG_EDGE * np.percentile(strength, 95))
        angle_deg = np.degrees(np.arctan2(down[edges], across[edges]))
        eighths = np.floor((angle_deg + 11.25) / 22.5).astype(int) % 8
        counts = np.bincount(eighths, minlength=8).astype(np.float64)
        return np.asarray(counts / max(counts.sum(), 1.0))

    def _largest_stroke(self, stats: np.ndarray, group: InkGroup) -> tuple[float, ...]:
        """Its width, height, share of the ink and fill; spreads of all strokes' heights and lower edges; its
        solidity, roughness and holes."""
        number = int(stats[:, cv2.CC_STAT_AREA].argmax())
        left, top, width, height, ink_px = (int(value) for value in stats[number])
        window = self._picture.labels[top : top + height, left : left + width]
        mask = (window == group.strokes[number]).astype(np.uint8)
        outlines, nesting = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
        is_hole = nesting[0][:, 3] >= 0
        outer = max((line for line, hole in zip(outlines, is_hole, strict=True) if not hole), key=len)
        outline_px = sum(len(line) for line in outlines)
        heights = stats[:, cv2.CC_STAT_HEIGHT]
        tall = heights[heights > 0.3 * (group.bottom_px - group.top_px)]
        tall = tall if len(tall) else heights
        bottoms = stats[:, 1] + heights
        return (
            width / self._em,
            height / self._em,
            ink_px / group.ink_px,
            ink_px / (width * height),
            float(tall.std() / tall.mean()),
            float(bottoms.std()) / self._em,
            ink_px / max(cv2.contourArea(cv2.convexHull(outer)), 1.0),
            outline_px**2 / ink_px / 50,
            int(is_hole.sum()) / max(width / self._em, 0.5),
        )

    def _line_fit(self, stats: np.ndarray, height: float) -> tuple[float, float]:
        """The slope of the line that the strokes stand on, and how far off it they are."""
        middles = stats[:, 0] + stats[:, 2] / 2
        if len(stats) < 3 or float(np.ptp(middles)) <= self._em:
            return 0.0, 0.0
        bottoms = (stats[:, 1] + stats[:, 3]).astype(np.float64)
        slope, start = np.polyfit(middles, bottoms, 1)
        off = float(np.median(np.abs(bottoms - slope * middles - start)))
        return min(abs(float(slope)), 1.0), off / self._em
