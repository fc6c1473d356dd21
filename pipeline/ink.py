"""Where a page carries ink: the page against its own paper, and the connected marks in it.

Shared by the blank-page check and by the OCR engine (how tall is the print, which marks did no word take
up?).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

GreyPixels = NDArray[np.uint8]
Pixels = NDArray[np.int32]

NEGATIVE_BELOW_GREY = 90.0
"""A page whose median pixel is darker than this is white on black."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GreyPage:
    """A page in grey levels, reduced. ``scale`` is reduced pixels a page pixel."""

    pixels: GreyPixels
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The connected marks of ink on a page: an entry a mark in every array, in pixels of the reduced page."""

    left: Pixels
    top: Pixels
    width: Pixels
    height: Pixels
    area: Pixels

    def __len__(self) -> int:
        return len(self.left)

    def where(self, chosen: NDArray[np.bool_]) -> Marks:
        return Marks(
            left=self.left[chosen],
            top=self.top[chosen],
            width=self.width[chosen],
            height=self.height[chosen],
            area=self.area[chosen],
        )


def reduced_grey(image: Image.Image, scale: float) -> GreyPage:
    """``image`` in grey, its sides times ``scale``; never enlarged."""
    grey = image if image.mode == "L" else image.convert("L")
    if scale >= 1.0:
        return GreyPage(pixels=np.asarray(grey), scale=1.0)
    size = (max(1, round(grey.width * scale)), max(1, round(grey.height * scale)))
    return GreyPage(pixels=np.asarray(grey.resize(size, Image.Resampling.BOX)), scale=scale)


def is_negative(pixels: GreyPixels) -> bool:
    """Whether the page is white on black."""
    return float(np.median(pixels)) < NEGATIVE_BELOW_GREY


def contrast_to_paper(pixels: GreyPixels, window_px: int) -> GreyPixels:
    """How much darker each pixel is than the paper around it, 0 to 255, with the paper taken as white.

    The paper's tone is a morphological closing with a square of ``window_px``: whatever is narrower counts
    as ink, whatever is wider (shadows, gradients, yellowed paper, solid areas) as paper. A negative is
    turned over.
    """
    if is_negative(pixels):
        pixels = 255 - pixels
    window = np.ones((window_px, window_px), np.uint8)
    paper = cv2.morphologyEx(pixels, cv2.MORPH_CLOSE, window, borderType=cv2.BORDER_REPLICATE)
    paper = cv2.blur(paper, (window_px, window_px), borderType=cv2.BORDER_REPLICATE)
    tone = cv2.divide(pixels, np.maximum(paper, 1), scale=255)
    return np.asarray(255 - tone, dtype=np.uint8)


def connected_marks(ink: NDArray[np.bool_]) -> Marks:
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    left, top, width, height, area = stats[1:].T
    return Marks(left=left, top=top, width=width, height=height, area=area)
