"""Frames of any colour that lean against the page's own lines: put there by hand, by a rubber stamp.

A printed box stands as straight as the print around it, wherever the page itself was laid. A frame that leans by little
must therefore be whole, and all of its sides have to lean the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.leaning_type import turned_level
from pipeline.signals.view import VIEW_PX_PER_MM, Numbers, PageView, Pixels

LONG_SIDE_MM: Final = (12.0, 95.0)
SHORT_SIDE_MM: Final = (6.0, 65.0)
GAPS_PX: Final = (3, 7)
"""Worn frames have gaps; closing wide ones only would join every frame to what stands beside it."""

MOST_FILLED: Final = 0.6

INNER_INK: Final = (0.02, 0.35)
"""Share of ink well within the frame: stamps say something, and pictures are darker."""

INSET_MM: Final = 1.5
CORNER: Final = 0.04
"""Left out at both ends of a side: corners are rounded or worn."""

OFF_LINE_PX: Final = 1.6
NEAR_SIDE: Final = 0.05
"""A side bulges by no more than this share of its length; what lies further in is what the frame holds."""

LEANS_DEG: Final = 2.0
LEAST_SIDE: Final = 0.8
SLIGHTLY_LEANS_DEG: Final = 1.0
LEAST_SIDE_SLIGHTLY: Final = 0.95
LEAST_SIDE_DEG: Final = 0.5
MOST_ODDS_DEG: Final = 4.0
"""Sides of one frame lean alike: others are drawn shapes, or pieces of letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaningFrame:
    """``lean_deg`` is clockwise against the page's own lines, ``wholeness`` the share of its four sides, 0 to 1, that
    carries ink. The box is in view pixels."""

    lean_deg: float
    wholeness: float
    left_px: int
    top_px: int
    right_px: int
    bottom_px: int


@dataclass(frozen=True, slots=True)
class _Side:
    """``share`` of its length that lies on one straight line, and that line's turn against the frame's own."""

    share: float
    turn_deg: float


NO_SIDE: Final = _Side(0.0, 0.0)


def find_leaning_frames(view: PageView, page_deg: float) -> tuple[LeaningFrame, ...]:
    """The most whole first. ``page_deg`` is the slope of the page's own lines."""
    found = [
        frame
        for gap_px in GAPS_PX
        for left, top, own in _outlines(view.ink, gap_px)
        if (frame := _as_frame(left, top, own, view.ink, page_deg)) is not None
    ]
    return tuple(sorted(found, key=lambda frame: -frame.wholeness))


def _outlines(ink: Pixels, gap_px: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Connected strokes of the size of a stamp, mostly empty: left, top, and a mask of their own pixels."""
    closed = cv2.morphologyEx(ink, cv2.MORPH_CLOSE, np.ones((gap_px, gap_px), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(closed)
    sides = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]]
    short, long = sides.min(axis=1) / VIEW_PX_PER_MM, sides.max(axis=1) / VIEW_PX_PER_MM
    fits = (long >= LONG_SIDE_MM[0]) & (long <= LONG_SIDE_MM[1])
    fits &= (short >= SHORT_SIDE_MM[0]) & (short <= SHORT_SIDE_MM[1])
    fits &= stats[:, cv2.CC_STAT_AREA] <= MOST_FILLED * sides.prod(axis=1)
    fits[0] = False  # the background
    for number in np.flatnonzero(fits):
        left, top, width, height = (int(value) for value in stats[number, :4])
        window = np.s_[top : top + height, left : left + width]
        yield left, top, (labels[window] == number) & (ink[window] > 0)


def _as_frame(left: int, top: int, own: np.ndarray, ink: Pixels, page_deg: float) -> LeaningFrame | None:
    ys, xs = (positions.astype(np.float64) for positions in np.nonzero(own))
    if len(xs) < 4:
        return None
    (x, y), (width, height), turn_deg = cv2.minAreaRect(np.stack([xs, ys], axis=1).astype(np.float32))
    if turn_deg > 45:
        turn_deg, width, height = turn_deg - 90, height, width
    along, across = turned_level(xs - x, ys - y, turn_deg)
    sides = (
        _side(along, across, width),
        _side(along, -across, width),
        _side(across, along, height),
        _side(across, -along, height),
    )
    signs = (1, -1, -1, 1)
    leans = [turn_deg - page_deg + sign * side.turn_deg for sign, side in zip(signs, sides, strict=True)]
    if not _is_by_hand([side.share for side in sides], leans):
        return None
    bottom, right = top + own.shape[0], left + own.shape[1]
    ys, xs = (positions.astype(np.float64) for positions in np.nonzero(ink[top:bottom, left:right]))
    if (
        not INNER_INK[0]
        <= _inner_share(*turned_level(xs - x, ys - y, turn_deg), width, height)
        <= INNER_INK[1]
    ):
        return None
    return LeaningFrame(
        lean_deg=float(np.mean(leans)),
        wholeness=float(np.mean([side.share for side in sides])),
        left_px=left,
        top_px=top,
        right_px=right,
        bottom_px=bottom,
    )


def _is_by_hand(shares: list[float], leans: list[float]) -> bool:
    lean_deg, odds_deg = abs(float(np.mean(leans))), float(np.ptp(leans))
    if min(shares) >= LEAST_SIDE and lean_deg >= LEANS_DEG:
        return odds_deg <= MOST_ODDS_DEG
    is_one_way = max(leans) < 0 or min(leans) > 0
    return (
        min(shares) >= LEAST_SIDE_SLIGHTLY
        and is_one_way
        and lean_deg >= SLIGHTLY_LEANS_DEG
        and min(map(abs, leans)) >= LEAST_SIDE_DEG
    )


def _side(along: Numbers, outward: Numbers, length: float) -> _Side:
    """The line through the outermost ink (the least ``outward``) at each place along one side."""
    places = max(8, int(length))
    owners = ((along + length / 2) / max(length, 1.0) * places).astype(int).clip(0, places - 1)
    edge = np.full(places, np.inf)
    np.minimum.at(edge, owners, outward)
    cut = int(CORNER * places)
    edge, positions = edge[cut : places - cut], np.arange(cut, places - cut, dtype=np.float64)
    filled = np.isfinite(edge)
    if not filled.any():
        return NO_SIDE
    near = filled & (np.abs(edge - np.median(edge[filled])) <= NEAR_SIDE * length + 2)
    slope = 0.0
    for _ in range(3):
        if near.sum() < 8:
            return NO_SIDE
        slope, start = np.polyfit(positions[near], edge[near], 1)
        near = filled & (np.abs(edge - slope * positions - start) <= OFF_LINE_PX)
    return _Side(float(near.mean()), float(np.rad2deg(np.arctan(slope))))


def _inner_share(along: Numbers, across: Numbers, width: float, height: float) -> float:
    inset = INSET_MM * VIEW_PX_PER_MM
    inside = (np.abs(along) < width / 2 - inset) & (np.abs(across) < height / 2 - inset)
    return float(inside.sum()) / max((width - 2 * inset) * (height - 2 * inset), 1.0)
