import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ports import PageShape
from pipeline.resolution import (
    RULES,
    estimated_dpi,
    is_believable,
    page_resolution,
    pixel_size,
    plausible_dpi,
)

MAX_PIXELS = 25_000_000
sides_pt = st.floats(min_value=0.1, max_value=1e9)


def resolution_of(width_pt, height_pt, **seen):
    shape = PageShape(width_pt=width_pt, height_pt=height_pt, **seen)
    return page_resolution(shape, dpi=200, max_page_pixels=MAX_PIXELS)


@pytest.mark.parametrize(
    ("dpi", "size_px", "is_believed"),
    [
        (200, (1654, 2339), True),
        (600, (4960, 7016), True),
        (1, (1240, 1754), False),
        (69.9, (600, 800), False),
        (2400, (2480, 3508), False),
        (72, (762, 1000), True),
        (72, (3024, 4032), False),
        (96, (2480, 3508), False),
        (203, (400, 6140), True),
        (100, (9933, 14043), False),
    ],
)
def test_a_resolution_is_believed_where_a_scanner_could_have_made_the_page(dpi, size_px, is_believed):
    assert is_believable(dpi, *size_px) is is_believed


@pytest.mark.parametrize(
    ("size_px", "dpi"),
    [((1240, 1754), 150), ((1754, 1240), 150), ((2480, 3508), 300), ((400, 6140), 127), ((40, 40), 70)],
)
def test_an_unknown_resolution_is_estimated_from_the_pixels(size_px, dpi):
    assert estimated_dpi(*size_px) == dpi


@given(
    st.one_of(st.none(), st.floats(allow_nan=True)),
    st.integers(1, 100_000),
    st.integers(1, 100_000),
)
def test_what_an_engine_is_told_is_always_a_resolution_it_takes(dpi, width_px, height_px):
    assert RULES.min_dpi <= plausible_dpi(dpi, width_px, height_px) <= RULES.max_dpi


@given(
    sides_pt, sides_pt, st.one_of(st.none(), st.floats(1, 1e5)), st.one_of(st.none(), st.floats(0.01, 1e4))
)
def test_no_page_has_more_pixels_than_allowed(width_pt, height_pt, scan_dpi, text_size_pt):
    shape = PageShape(width_pt=width_pt, height_pt=height_pt, scan_dpi=scan_dpi, text_size_pt=text_size_pt)
    resolution = page_resolution(shape, dpi=200, max_page_pixels=MAX_PIXELS)
    width_px, height_px = pixel_size(shape, resolution.render_dpi)
    assert width_px >= 1
    assert height_px >= 1
    assert (width_px - 1) * (height_px - 1) <= MAX_PIXELS
    assert max(width_px, height_px) <= RULES.max_side_px + 1


def test_an_ordinary_page_gets_the_dpi_asked_for_whatever_is_on_it():
    assert resolution_of(595, 842, scan_dpi=600.0, text_size_pt=2.0).render_dpi == 200
    assert resolution_of(595, 842).ocr_dpi == 200


def test_a_scan_on_a_page_of_large_user_units_keeps_its_pixels():
    resolution = resolution_of(61.2, 79.2, scan_dpi=1700.0)
    assert resolution.render_dpi == 1700
    assert RULES.min_dpi <= resolution.ocr_dpi < 250


def test_a_fine_scan_on_a_tiny_page_is_bounded_to_a_letter_page():
    shape = PageShape(width_pt=61.2, height_pt=79.2, scan_dpi=10_000.0)
    resolution = page_resolution(shape, dpi=200, max_page_pixels=MAX_PIXELS)
    assert max(pixel_size(shape, resolution.render_dpi)) == 2200


def test_small_letters_on_a_tiny_page_are_enlarged_and_ordinary_ones_are_not():
    assert resolution_of(61.2, 79.2, text_size_pt=1.2).render_dpi == pytest.approx(1500)
    assert resolution_of(61.2, 79.2, text_size_pt=10.0).render_dpi == 200


def test_a_coarse_scan_on_a_poster_is_not_blown_up():
    resolution = resolution_of(1654, 2339, scan_dpi=72.0)
    assert resolution.render_dpi == 72
    assert resolution.ocr_dpi == 200


def test_an_enormous_page_is_scaled_down():
    resolution = resolution_of(14_400, 14_400)
    assert resolution.render_dpi == pytest.approx(25)
    assert math.isfinite(resolution.ocr_dpi)
