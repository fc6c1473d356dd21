"""Boxes on a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-parallel bounding box in pixels, origin top left, right and bottom exclusive.

    Which page the pixels belong to (as delivered, or turned upright for reading) is said where the box is made;
    everything that leaves the pipeline is in the page as delivered.
    """

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        return max(0.0, self.width) * max(0.0, self.height)

    def intersection(self, other: Box) -> float:
        """Shared area in square pixels, 0 when the boxes do not meet."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)

    def scaled(self, factor: float) -> Box:
        return Box(self.left * factor, self.top * factor, self.right * factor, self.bottom * factor)


def enclosing_box(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of ``boxes``; raises ValueError for none."""
    all_boxes = tuple(boxes)
    if not all_boxes:
        raise ValueError("no box to enclose")
    return Box(
        min(box.left for box in all_boxes),
        min(box.top for box in all_boxes),
        max(box.right for box in all_boxes),
        max(box.bottom for box in all_boxes),
    )
