"""One small picture of the page that all signals share, with its ink and its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from models.geometry import Box
from models.text import Word

cv2.setNumThreads(1)  # workers run one page a core; more threads only fight each other

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.float64]

VIEW_SIDE_PX: Final = 960
"""The view has about ``VIEW_SIDE_PX`` squared pixels, whatever the page's own resolution: an A4 page is seen
at 98 dpi. The dots per inch that images claim are too often wrong to be used."""

VIEW_PX_PER_MM: Final = VIEW_SIDE_PX / 249.7
"""As if every page were as large as A4 (210 x 297 mm)."""

SIZE_TOLERANCE: Final = 0.05
"""A picture this close to the wanted size is not resampled again."""

FALLBACK_TEXT_HEIGHT_PX: Final = 14.0
"""Ten-point type on the A4 view, for pages on which no word was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """A page at working size. The boxes and the masks are in view pixels; ``scale`` is view pixels a page
    pixel.

    ``rgb`` is None for a page without colour. ``ink`` is 255 where the page is darker than its surroundings.
    ``word_boxes`` has a row (left, top, right, bottom) a word. ``text_height_px`` is the median word height.
    """

    grey: Pixels
    rgb: Pixels | None
    ink: Pixels
    scale: float
    words: tuple[Word, ...]
    word_boxes: Numbers
    text_height_px: float

    @property
    def width_px(self) -> int:
        return int(self.grey.shape[1])

    @property
    def height_px(self) -> int:
        return int(self.grey.shape[0])

    def page_box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """A box of the view in pixels of the upright page."""
        return Box(left, top, right, bottom).scaled(1 / self.scale)


def view_page(image: Image.Image, words: tuple[Word, ...]) -> PageView:
    """Shrinks ``image`` (mode "L" or "RGB", upright) once, finds its ink once; never enlarges."""
    small = _shrunk(image)
    scale = small.shape[1] / image.width
    rgb = small if small.ndim == 3 else None
    grey: Pixels = small if rgb is None else np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
    boxes: Numbers = np.array(
        [(word.box.left, word.box.top, word.box.right, word.box.bottom) for word in words], dtype=np.float64
    ).reshape(-1, 4)
    boxes *= scale
    return PageView(
        grey=grey,
        rgb=rgb,
        ink=ink_mask(grey),
        scale=scale,
        words=words,
        word_boxes=boxes,
        text_height_px=_text_height_px(boxes),
    )


def ink_mask(grey: Pixels) -> Pixels:
    """255 where a pixel is clearly darker than the mean of the 8 mm around it: shadows and tints are no
    ink."""
    return np.asarray(
        cv2.adaptiveThreshold(
            grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, blockSize=31, C=18
        ),
        dtype=np.uint8,
    )


def _shrunk(image: Image.Image) -> Pixels:
    """Whole-number steps by averaging first (fast), then the rest by area."""
    scale = min(1.0, VIEW_SIDE_PX / float(image.width * image.height) ** 0.5)
    steps = int(1 / scale + SIZE_TOLERANCE)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    pixels: Pixels = np.asarray(image.reduce(steps) if steps > 1 else image)
    if abs(pixels.shape[1] / size[0] - 1) <= SIZE_TOLERANCE:
        return pixels
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _text_height_px(boxes: Numbers) -> float:
    heights = boxes[:, 3] - boxes[:, 1]
    return float(np.median(heights)) if heights.size >= 5 else FALLBACK_TEXT_HEIGHT_PX
