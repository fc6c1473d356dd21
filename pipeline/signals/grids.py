"""The cells of a ruled table, from its rules, and the words that stand in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.rules import JOIN_MM, RuledArea, Rules
from pipeline.signals.view import VIEW_PX_PER_MM, PageView, Pixels

SMALLEST_CELL_MM: Final = 2.0
"""Gaps between double rules, and the counters of heavy type, are no cells."""

FILLED_SHARE: Final = 0.85
"""A cell fills its own bounding box at least this much; anything else is no rectangle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """A white rectangle between rules, in view pixels, with the indices of the words whose middles lie in
    it."""

    left_px: int
    top_px: int
    right_px: int
    bottom_px: int
    is_rectangle: bool
    word_indices: tuple[int, ...]


def grid_cells(area: RuledArea, rules: Rules, view: PageView) -> tuple[GridCell, ...]:
    """The cells of one ruled area, closed at its bounds, so that tables without side rules have cells too."""
    labels, stats = _white_parts(area, rules)
    smallest = SMALLEST_CELL_MM * VIEW_PX_PER_MM
    owners = _word_owners(labels, area, view)
    cells = []
    for label, (left, top, width, height, pixels) in enumerate(stats.tolist()):
        if label == 0 or min(width, height) < smallest:
            continue
        cells.append(
            GridCell(
                left_px=area.left_px + left,
                top_px=area.top_px + top,
                right_px=area.left_px + left + width,
                bottom_px=area.top_px + top + height,
                is_rectangle=pixels >= FILLED_SHARE * width * height,
                word_indices=tuple(np.flatnonzero(owners == label).tolist()),
            )
        )
    return tuple(cells)


def _white_parts(area: RuledArea, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    window = np.s_[area.top_px : area.bottom_px, area.left_px : area.right_px]
    reach = 2 * round(JOIN_MM * VIEW_PX_PER_MM) + 1
    along = cv2.getStructuringElement(cv2.MORPH_RECT, (reach, 1))
    across = cv2.getStructuringElement(cv2.MORPH_RECT, (1, reach))
    drawn: Pixels = np.asarray(
        cv2.bitwise_or(
            cv2.dilate(rules.horizontal[window], along), cv2.dilate(rules.vertical[window], across)
        ),
        dtype=np.uint8,
    )
    drawn[[0, -1], :] = 255
    drawn[:, [0, -1]] = 255
    _, labels, stats, _ = cv2.connectedComponentsWithStats(cv2.bitwise_not(drawn), connectivity=4)
    return labels, stats


def _word_owners(labels: np.ndarray, area: RuledArea, view: PageView) -> np.ndarray:
    """The label of the white part in which each word's middle lies; 0 for words on rules or outside."""
    boxes = view.word_boxes
    columns = ((boxes[:, 0] + boxes[:, 2]) / 2).astype(int) - area.left_px
    rows = ((boxes[:, 1] + boxes[:, 3]) / 2).astype(int) - area.top_px
    inside = (columns >= 0) & (rows >= 0) & (columns < labels.shape[1]) & (rows < labels.shape[0])
    owners = np.zeros(len(boxes), dtype=int)
    owners[inside] = labels[rows[inside], columns[inside]]
    return owners
