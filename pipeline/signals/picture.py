"""How good the picture of the page is: contrast, sharpness, noise, and how much of it is inked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.view import PageView

LEAST_INK_PX: Final = 50
"""With fewer, nothing can be said of how it stands on the paper."""

STEEPEST_SHARE: Final = 0.2
"""Of the ink's surroundings: where it meets the paper."""

PAPER_MARGIN_PX: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureQuality:
    """``ink_share`` is the share of the view's pixels that are ink. ``contrast`` is how much darker ink is than
    paper (0 to 1), ``sharpness`` the steepness of its edges as a share of that contrast a pixel of the view, and
    ``noise`` the standard deviation of the paper's grey from one pixel to the next (0 to 1); None without ink, or
    without paper."""

    ink_share: float
    contrast: float | None
    sharpness: float | None
    noise: float | None


def measure_picture(view: PageView) -> PictureQuality:
    ink = view.ink > 0
    margin = cv2.dilate(view.ink, np.ones((2 * PAPER_MARGIN_PX + 1,) * 2, np.uint8)) > 0
    paper = ~margin
    contrast = sharpness = None
    if ink.sum() >= LEAST_INK_PX and paper.any():
        contrast = max(0.0, float(np.median(view.grey[paper])) - float(np.median(view.grey[ink]))) / 255
        sharpness = _sharpness(view, margin, contrast)
    return PictureQuality(
        ink_share=float(ink.mean()),
        contrast=contrast,
        sharpness=sharpness,
        noise=_noise(view, paper) if paper.any() else None,
    )


def _sharpness(view: PageView, around_ink: np.ndarray, contrast: float) -> float | None:
    if contrast <= 0:
        return None
    across = cv2.Sobel(view.grey, cv2.CV_32F, 1, 0, scale=1 / 8)
    down = cv2.Sobel(view.grey, cv2.CV_32F, 0, 1, scale=1 / 8)
    steepness = np.hypot(across, down)[around_ink]
    steepest = float(np.quantile(steepness, 1 - STEEPEST_SHARE))
    return steepest / 255 / contrast


def _noise(view: PageView, paper: np.ndarray) -> float:
    smooth = cv2.medianBlur(view.grey, 3)
    return float(np.std(view.grey[paper].astype(np.float32) - smooth[paper])) / 255
