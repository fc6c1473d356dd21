"""How far from straight a page's lines are, by jdeskew (the Fourier spectrum of the page; MIT)."""

from __future__ import annotations

import numpy as np
from PIL import Image

from models.errors import EngineError, EngineUnavailable

VIEW_PX = 768
"""On 30 real pages turned by known angles 2 of 60 answers were off by more than 0.4 degrees at this size, 16 at
512 pixels, 2 at 1,024; it takes 25 ms."""

LEAST_SIDE_PX = 32
MAX_SKEW_DEG = 15.0


class JdeskewDetector:
    def __init__(self) -> None:
        try:
            from jdeskew.estimator import get_angle
        except ImportError as error:
            raise EngineUnavailable(
                "jdeskew is missing; install it: pip install --no-deps -r requirements/nodeps.txt"
            ) from error
        self._angle_of = get_angle

    def skew_deg(self, image: Image.Image) -> float:
        """0 for an image too small to tell. Raises ``EngineError`` when jdeskew fails."""
        view = image.convert("L")
        view.thumbnail((VIEW_PX, VIEW_PX), Image.Resampling.BOX, reducing_gap=2.0)
        if min(view.size) < LEAST_SIDE_PX:
            return 0.0
        try:
            angle_deg = float(self._angle_of(np.asarray(view), angle_max=MAX_SKEW_DEG))
        except ValueError as error:
            raise EngineError(f"jdeskew failed: {error}") from error
        return -angle_deg
