"""Printed rules, the joints where they meet, and the grids that they draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.view import VIEW_PX_PER_MM, PageView, Pixels

HORIZONTAL_RULE_MM: Final = 10.0
"""Shorter strokes are underlines, dashes and heavy type."""

VERTICAL_RULE_MM: Final = 6.5
"""A little more than one line of a table; taller than the strokes of headings."""

PARALLEL_RULE_MM: Final = 40.0
"""Rules of tables are at least this long; lines to sign or to write on are often shorter."""

JOIN_MM: Final = 0.8
"""Rules that stop this short of one another still meet: anti-aliasing and scanning eat the corners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Masks of the rules, 255 where there is one, in view pixels."""

    horizontal: Pixels
    vertical: Pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledArea:
    """Rules that hang together: their bounds in view pixels, and how many joints, rows and columns they
    have."""

    left_px: int
    top_px: int
    right_px: int
    bottom_px: int
    joints: int
    rows: int
    columns: int


def find_rules(view: PageView) -> Rules:
    """Straight strokes by morphological opening. The page must be upright within half a degree."""
    ink = view.ink
    horizontal = _opened(cv2.dilate(ink, np.ones((3, 1), np.uint8)), _px(HORIZONTAL_RULE_MM), 1)
    vertical = _opened(cv2.dilate(ink, np.ones((1, 3), np.uint8)), 1, _px(VERTICAL_RULE_MM))
    return Rules(horizontal=_thin(horizontal, 0), vertical=_thin(vertical, 1))


def ruled_areas(rules: Rules) -> tuple[RuledArea, ...]:
    """Every connected group of rules that has joints."""
    reach = cv2.getStructuringElement(cv2.MORPH_RECT, (2 * _px(JOIN_MM) + 1, 2 * _px(JOIN_MM) + 1))
    horizontal = cv2.dilate(rules.horizontal, reach)
    vertical = cv2.dilate(rules.vertical, reach)
    joints = cv2.bitwise_and(horizontal, vertical)
    if not joints.any():
        return ()
    _, labels, stats, _ = cv2.connectedComponentsWithStats(cv2.bitwise_or(horizontal, vertical))
    _, _, _, centres = cv2.connectedComponentsWithStats(joints)
    columns_px, rows_px = np.rint(centres[1:]).astype(int).T
    owners = labels[rows_px, columns_px]
    return tuple(
        _area(stats[owner], columns_px[owners == owner], rows_px[owners == owner])
        for owner in np.unique(owners[owners > 0])
    )


def parallel_rules(rules: Rules) -> int:
    """The most horizontal rules with like ends on both sides: tables without side rules have three or
    more."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(rules.horizontal)
    long = stats[1:][stats[1:, cv2.CC_STAT_WIDTH] >= _px(PARALLEL_RULE_MM)]
    if not len(long):
        return 0
    ends = np.stack(
        [long[:, cv2.CC_STAT_LEFT], long[:, cv2.CC_STAT_LEFT] + long[:, cv2.CC_STAT_WIDTH]], axis=1
    )
    alike = np.abs(ends[:, None] - ends[None]).max(axis=2) <= _px(2.0)
    return max(distinct_positions(long[row, cv2.CC_STAT_TOP], 2 * _px(JOIN_MM)) for row in alike)


def distinct_positions(values: np.ndarray, tolerance_px: float) -> int:
    """How many positions there are when those within ``tolerance_px`` of their neighbour are one."""
    ordered = np.sort(values.astype(np.int64))
    return int(1 + (np.diff(ordered) > tolerance_px).sum()) if ordered.size else 0


def _area(stats: np.ndarray, columns_px: np.ndarray, rows_px: np.ndarray) -> RuledArea:
    left, top, width, height, _ = (int(value) for value in stats)
    inset = _px(JOIN_MM)
    return RuledArea(
        left_px=left + inset,
        top_px=top + inset,
        right_px=left + width - inset,
        bottom_px=top + height - inset,
        joints=len(rows_px),
        rows=distinct_positions(rows_px, 2 * _px(JOIN_MM)) - 1,
        columns=distinct_positions(columns_px, 2 * _px(JOIN_MM)) - 1,
    )


def _opened(mask: np.ndarray, width_px: int, height_px: int) -> Pixels:
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (width_px, height_px))
    return np.asarray(cv2.morphologyEx(mask, cv2.MORPH_OPEN, kernel), dtype=np.uint8)


def _thin(mask: Pixels, axis: int) -> Pixels:
    """Drops what is too thick to be a rule: bars, photographs, filled cells."""
    thick = _opened(mask, *((1, 9) if axis == 0 else (9, 1)))
    return np.asarray(cv2.subtract(mask, thick), dtype=np.uint8)


def _px(millimetres: float) -> int:
    return max(1, round(millimetres * VIEW_PX_PER_MM))
