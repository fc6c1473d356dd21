"""Where on a page there is anything to see. Margins are cut off before a page is fitted to a tier: they hold nothing,
and cost as many visual tokens as print.

When in doubt the margin stays: faint marks count as ink, dark areas and edges of the scan too, and only lone specks
do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from models.geometry import Box
from pipeline.ink import GreyPixels, contrast_to_paper, is_negative, reduced_grey
from pipeline.letters import DARK_AREA_GREY_SHARE, PAPER_WINDOW_PX
from pipeline.upright import UprightPage, turned

VIEW_DPI: Final = 100.0
PX_PER_MM: Final = VIEW_DPI / 25.4

LEAST_CONTRAST: Final = 12.0
"""Ink is this much darker than its paper, of 255. The faintest print peaks at 50, so a pencil a quarter as dark is
seen; so is print that shows through. On the corpus 24 would cut 1 % more of the area."""

LEAST_NEIGHBOURS: Final = 3
"""Inked pixels of nine, its own among them: a line has so many, the grain of the paper has not."""

SPECK_MM: Final = 1.2
"""Marks that are smaller and have no other within ``REACH_MM`` are dirt: a page number is twice as tall."""

REACH_MM: Final = 1.0
PAD_MM: Final = 4.0
"""Kept around the ink: a faint end of a stroke is never further away from what was seen of it."""


def content_box(delivered: Image.Image, upright: UprightPage) -> Box:
    """The part of the upright page, in its whole pixels, that holds all of its ink and a pad around it; the whole page
    where there is none, or the paper is dark. ``delivered`` (mode "L" or "RGB") is the page before it was turned: a
    small turn leaves white corners, whose edges are no ink. Costs 40 to 70 ms."""
    whole = Box(0, 0, *upright.raster.image.size)
    marks = _marks(_view(delivered, upright.raster.dpi))
    if marks is None:
        return whole
    drawn = Image.fromarray(np.where(marks, np.uint8(0), np.uint8(255)))
    turned_marks = turned(
        replace(upright.raster, image=drawn), rotation_deg=upright.rotation_deg, skew_deg=upright.skew_deg
    ).raster.image
    bounds = ImageChops.invert(turned_marks).getbbox()
    if bounds is None:
        return whole
    return _padded(Box(*bounds), whole, turned_marks.size, round(PAD_MM * upright.raster.dpi / 25.4))


def trimmed(image: Image.Image, box: Box) -> Image.Image:
    """What of ``image`` lies in ``box``, whose edges are whole pixels."""
    return image.crop((int(box.left), int(box.top), int(box.right), int(box.bottom)))


def _padded(bounds: Box, whole: Box, view_size: tuple[int, int], pad_px: int) -> Box:
    """``bounds`` of the view, in pixels of the page."""
    across, down = whole.width / view_size[0], whole.height / view_size[1]
    return Box(
        max(0, int(bounds.left * across) - pad_px),
        max(0, int(bounds.top * down) - pad_px),
        min(int(whole.right), int(np.ceil(bounds.right * across)) + pad_px),
        min(int(whole.bottom), int(np.ceil(bounds.bottom * down)) + pad_px),
    )


def _view(image: Image.Image, dpi: float) -> GreyPixels:
    """The page reduced, in the darkest of its colours: yellow ink is as dark as black."""
    scale = VIEW_DPI / dpi
    if image.mode == "L":
        return reduced_grey(image, scale).pixels
    if scale < 1:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.BOX)
    red, green, blue = image.split()
    return np.asarray(ImageChops.darker(ImageChops.darker(red, green), blue))


def _marks(view: GreyPixels) -> NDArray[np.bool_] | None:
    """Where the view has ink that is no speck; None for white on black."""
    if is_negative(view):
        return None
    paper = float(np.quantile(view[::3, ::3], 0.9))
    is_dark = view < DARK_AREA_GREY_SHARE * paper
    ink = (contrast_to_paper(view, PAPER_WINDOW_PX) > LEAST_CONTRAST) | is_dark
    neighbours = cv2.boxFilter(ink.astype(np.uint8), -1, (3, 3), normalize=False)
    return _without_specks(ink & (neighbours >= LEAST_NEIGHBOURS))


def _without_specks(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Without the groups of ink, each further than ``REACH_MM`` from all else, that are smaller than a speck."""
    reach_px = round(REACH_MM * PX_PER_MM / 2)
    framed = np.pad(ink.astype(np.uint8), reach_px)
    near = cv2.dilate(framed, np.ones((2 * reach_px + 1,) * 2, np.uint8))
    _, groups, stats, _ = cv2.connectedComponentsWithStats(near)
    longer_px = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]].max(axis=1) - 2 * reach_px
    is_speck = longer_px < SPECK_MM * PX_PER_MM
    return np.asarray(ink & ~is_speck[groups[reach_px:-reach_px, reach_px:-reach_px]])
