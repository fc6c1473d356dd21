"""From a PDF page's user space to the page as displayed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pypdfium2

from models.geometry import Box


@dataclass(frozen=True, slots=True)
class Affine:
    """The PDF matrix ``[a b c d e f]``: x' = a·x + c·y + e, y' = b·x + d·y + f (ISO 32000-2, 8.3.3)."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def then(self, outer: Affine) -> Affine:
        """This matrix first, ``outer`` after it."""
        return Affine(
            self.a * outer.a + self.b * outer.c,
            self.a * outer.b + self.b * outer.d,
            self.c * outer.a + self.d * outer.c,
            self.c * outer.b + self.d * outer.d,
            self.e * outer.a + self.f * outer.c + outer.e,
            self.e * outer.b + self.f * outer.d + outer.f,
        )

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """The axis-parallel box around the image of a rectangle given by two opposite corners."""
        xs = [self.a * x + self.c * y + self.e for x in (x0, x1) for y in (y0, y1)]
        ys = [self.b * x + self.d * y + self.f for x in (x0, x1) for y in (y0, y1)]
        return Box(min(xs), min(ys), max(xs), max(ys))

    def clockwise_deg(self, dx: float, dy: float) -> float:
        """The clockwise turn, 0 to 360, of a direction once mapped into a frame whose y axis points down."""
        x = self.a * dx + self.c * dy
        y = self.b * dx + self.d * dy
        return round(math.degrees(math.atan2(y, x)), 1) % 360


IDENTITY = Affine(1, 0, 0, 1, 0, 0)


def page_frame(page: pypdfium2.PdfPage) -> Affine:
    """User space of an open page to points of the page as displayed."""
    left, bottom, right, top = page.get_bbox()
    return displayed_frame(left, bottom, right, top, page.get_rotation())


def displayed_frame(left: float, bottom: float, right: float, top: float, rotate_deg: int) -> Affine:
    """User space to points of the displayed page, origin top left. ``rotate_deg`` is ``/Rotate``."""
    match rotate_deg % 360:
        case 90:
            return Affine(0, 1, 1, 0, -bottom, -left)
        case 180:
            return Affine(-1, 0, 0, 1, right, -bottom)
        case 270:
            return Affine(0, -1, -1, 0, top, right)
        case _:
            return Affine(1, 0, 0, -1, -left, top)
