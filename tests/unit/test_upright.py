"""Boxes of a page turned upright, brought back to the page as delivered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from models.geometry import Box
from pipeline.ports import PageRaster
from pipeline.upright import as_delivered, turned, turned_size

TURNS = st.sampled_from((0, 90, 180, 270))
SKEWS = st.one_of(st.just(0.0), st.floats(-12, 12))


def raster(width: int, height: int) -> PageRaster:
    return PageRaster(page_number=1, image=Image.new("L", (width, height), 255), dpi=200)


@given(width=st.integers(20, 300), height=st.integers(20, 300), rotation=TURNS, skew=SKEWS, data=st.data())
@settings(max_examples=200)
def test_a_dot_is_found_where_it_was_delivered(
    width: int, height: int, rotation: int, skew: float, data: st.DataObject
) -> None:
    x, y = data.draw(st.integers(4, width - 5)), data.draw(st.integers(4, height - 5))
    page = raster(width, height)
    page.image.paste(0, (x - 1, y - 1, x + 2, y + 2))
    upright = turned(page, rotation_deg=rotation, skew_deg=skew)
    rows, columns = np.nonzero(np.asarray(upright.raster.image) < 128)
    seen = Box(columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    back = upright.to_delivered(seen)
    assert abs((back.left + back.right) / 2 - (x + 0.5)) <= 1.0
    assert abs((back.top + back.bottom) / 2 - (y + 0.5)) <= 1.0


@given(
    width=st.integers(1, 500),
    height=st.integers(1, 500),
    rotation=TURNS,
    skew=SKEWS,
    left=st.floats(-50, 600),
    top=st.floats(-50, 600),
    size=st.floats(0, 700),
)
def test_a_box_brought_back_lies_on_the_page(
    width: int, height: int, rotation: int, skew: float, left: float, top: float, size: float
) -> None:
    upright = turned(raster(width, height), rotation_deg=rotation, skew_deg=skew)
    back = upright.to_delivered(Box(left, top, left + size, top + size))
    if rotation or skew:
        assert 0 <= back.left <= back.right <= width
        assert 0 <= back.top <= back.bottom <= height
    else:
        assert back == Box(left, top, left + size, top + size)


@given(width=st.integers(1, 400), height=st.integers(1, 400), rotation=TURNS)
def test_quarter_turns_are_exact(width: int, height: int, rotation: int) -> None:
    upright = turned(raster(width, height), rotation_deg=rotation, skew_deg=0.0)
    whole = upright.to_delivered(Box(0, 0, upright.raster.image.width, upright.raster.image.height))
    for measured, expected in zip(
        (whole.left, whole.top, whole.right, whole.bottom), (0, 0, width, height), strict=True
    ):
        assert math.isclose(measured, expected, abs_tol=1e-6)


def test_the_turn_is_clockwise() -> None:
    page = raster(40, 20)
    page.image.paste(0, (0, 0, 4, 4))  # top left
    image = turned(page, rotation_deg=90, skew_deg=0.0).raster.image
    assert image.size == (20, 40)
    assert image.getpixel((19, 0)) == 0


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_what_a_small_turn_uncovers_is_white(mode: str) -> None:
    page = PageRaster(page_number=1, image=Image.new(mode, (200, 100), "black"), dpi=200)
    image = turned(page, rotation_deg=0, skew_deg=5.0).raster.image
    assert image.mode == mode
    assert image.convert("L").getpixel((0, 0)) == 255


def test_an_unturned_page_is_the_same_image() -> None:
    page = raster(30, 30)
    assert as_delivered(page).raster.image is page.image


@given(width=st.integers(1, 500), height=st.integers(1, 500), rotation=TURNS, skew=SKEWS)
@settings(max_examples=200)
def test_the_size_of_a_turned_page_is_known_without_turning_it(
    width: int, height: int, rotation: int, skew: float
) -> None:
    image = turned(raster(width, height), rotation_deg=rotation, skew_deg=skew).raster.image
    assert turned_size(width, height, rotation_deg=rotation, skew_deg=skew) == image.size
