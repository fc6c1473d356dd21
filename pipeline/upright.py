"""Turning a page upright and straight for reading, and its boxes back to the page as delivered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from PIL import Image

from models.geometry import Box, enclosing_box
from pipeline.ports import PageRaster

QUARTER_TURNS = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}
"""Clockwise degrees to Pillow's counter-clockwise names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UprightPage:
    """A page as it is read. ``raster`` is the delivered page after a clockwise quarter turn of ``rotation_deg``
    (0, 90, 180, 270) and then a small one of ``skew_deg``; sizes are those of the page as delivered, in pixels."""

    raster: PageRaster
    rotation_deg: int
    skew_deg: float
    delivered_width_px: int
    delivered_height_px: int

    def to_delivered(self, box: Box) -> Box:
        """The smallest box of the delivered page around ``box`` of the upright page, kept on the page."""
        if self.rotation_deg == 0 and self.skew_deg == 0:
            return box
        corners = (
            (box.left, box.top),
            (box.right, box.top),
            (box.right, box.bottom),
            (box.left, box.bottom),
        )
        turned = enclosing_box(Box(x, y, x, y) for x, y in map(self._point_to_delivered, corners))
        return Box(
            min(max(turned.left, 0.0), self.delivered_width_px),
            min(max(turned.top, 0.0), self.delivered_height_px),
            max(min(turned.right, self.delivered_width_px), 0.0),
            max(min(turned.bottom, self.delivered_height_px), 0.0),
        )

    def _point_to_delivered(self, point: tuple[float, float]) -> tuple[float, float]:
        """Both turns keep the page's centre, so that one rotation about it undoes them."""
        angle = math.radians(-(self.rotation_deg + self.skew_deg))
        x = point[0] - self.raster.image.width / 2
        y = point[1] - self.raster.image.height / 2
        return (
            x * math.cos(angle) - y * math.sin(angle) + self.delivered_width_px / 2,
            x * math.sin(angle) + y * math.cos(angle) + self.delivered_height_px / 2,
        )


def as_delivered(raster: PageRaster) -> UprightPage:
    """The page unturned."""
    return turned(raster, rotation_deg=0, skew_deg=0.0)


def turned(raster: PageRaster, *, rotation_deg: int, skew_deg: float) -> UprightPage:
    """``raster`` after the two clockwise turns; what a small turn uncovers at the corners is white."""
    image = raster.image
    if rotation_deg:
        image = image.transpose(QUARTER_TURNS[rotation_deg])
    if skew_deg:
        white = 255 if image.mode == "L" else (255, 255, 255)
        image = image.rotate(-skew_deg, Image.Resampling.BICUBIC, expand=True, fillcolor=white)
    return UprightPage(
        raster=replace(raster, image=image),
        rotation_deg=rotation_deg,
        skew_deg=skew_deg,
        delivered_width_px=raster.image.width,
        delivered_height_px=raster.image.height,
    )


def turned_size(width_px: int, height_px: int, *, rotation_deg: int, skew_deg: float) -> tuple[int, int]:
    """Width and height of the image that ``turned`` makes of a page of this size, without its pixels. As
    ``Image.rotate`` reckons, operation for operation: its rounding decides the last pixel."""
    if rotation_deg in (90, 270):
        width_px, height_px = height_px, width_px
    if not skew_deg:
        return width_px, height_px
    angle = -math.radians(-skew_deg % 360.0)
    cos, sin = round(math.cos(angle), 15), round(math.sin(angle), 15)
    centre_x, centre_y = width_px / 2, height_px / 2
    shift_x = cos * -centre_x + sin * -centre_y + 0.0 + centre_x
    shift_y = -sin * -centre_x + cos * -centre_y + 0.0 + centre_y
    corners = ((0, 0), (width_px, 0), (width_px, height_px), (0, height_px))
    across = [cos * x + sin * y + shift_x for x, y in corners]
    down = [-sin * x + cos * y + shift_y for x, y in corners]
    return math.ceil(max(across)) - math.floor(min(across)), math.ceil(max(down)) - math.floor(min(down))
