"""The picture's quality: each number moves with the fault it is named for, and little with the others."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from pipeline.signals.picture import PictureQuality, measure_picture
from pipeline.signals.view import view_page

SIDE_PX = 800


def written(*, paper: int = 255, ink: int = 0) -> np.ndarray:
    page = np.full((SIDE_PX, SIDE_PX), paper, np.uint8)
    for top in range(60, 740, 40):
        cv2.putText(page, "the quick brown fox jumps over", (40, top), cv2.FONT_HERSHEY_SIMPLEX, 1.0, ink, 2)
    return page


def quality(page: np.ndarray) -> PictureQuality:
    return measure_picture(view_page(Image.fromarray(page), ()))


def test_contrast_falls_with_faint_ink_and_dark_paper() -> None:
    assert quality(written()).contrast == pytest.approx(1.0, abs=0.1)
    assert quality(written(ink=170)).contrast == pytest.approx(85 / 255, abs=0.05)
    assert quality(written(paper=120, ink=20)).contrast == pytest.approx(100 / 255, abs=0.05)


def test_sharpness_falls_with_blur_and_not_with_contrast() -> None:
    sharp = quality(written()).sharpness
    faint = quality(written(ink=150)).sharpness
    blurred = [quality(cv2.GaussianBlur(written(), (0, 0), sigma)).sharpness for sigma in (1.5, 3.0)]
    assert sharp is not None
    assert faint == pytest.approx(sharp, rel=0.15)
    assert sharp > 1.2 * (blurred[0] or 0) > 1.2 * (blurred[1] or 0)


def test_noise_is_measured_on_the_paper() -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(0, 8, (SIDE_PX, SIDE_PX))
    noisy = np.clip(written(paper=200).astype(float) + noise, 0, 255).astype(np.uint8)
    assert quality(written()).noise == 0
    assert 0.01 < (quality(noisy).noise or 0) < 0.05


def test_ink_share_counts_the_page_that_is_inked() -> None:
    assert 0.02 < quality(written()).ink_share < 0.2
    assert quality(written(ink=255)).ink_share == 0


def test_without_ink_nothing_is_said_of_it() -> None:
    empty = quality(np.full((SIDE_PX, SIDE_PX), 255, np.uint8))
    assert (empty.contrast, empty.sharpness, empty.noise) == (None, None, 0.0)
