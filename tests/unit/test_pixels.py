import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipeline.pixels import bounded_size, page_pixels, upright_by_exif

MAX_PIXELS = 1_000_000


def grey_of(samples, **options):
    return np.asarray(page_pixels(Image.fromarray(samples), max_pixels=MAX_PIXELS, **options))


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**8))
def test_a_bounded_size_stays_in_its_bounds(width_px, height_px, max_pixels):
    width, height = bounded_size(width_px, height_px, max_pixels)
    assert width * height <= max_pixels
    assert 1 <= width <= width_px
    assert 1 <= height <= height_px


def test_sixteen_bit_grey_is_scaled_by_its_range_not_clipped():
    samples = np.full((40, 40), 61_000, np.uint16)
    samples[10:20] = 3_000
    grey = grey_of(samples)
    assert grey[0, 0] == 237
    assert grey[15, 15] == 12


@pytest.mark.parametrize("white", [255, 1_023, 4_095, 16_383, 65_535])
def test_white_is_that_of_the_bit_depth_in_use(white):
    grey = grey_of(np.array([[0, white // 2, white]], np.uint16))
    assert grey[0, 0] == 0
    assert grey[0, 1] in (127, 128)
    assert grey[0, 2] == 255


def test_blank_sixteen_bit_paper_stays_blank():
    noise = np.random.default_rng(0).integers(60_000, 62_000, (50, 50)).astype(np.uint16)
    grey = grey_of(noise)
    assert grey.min() > 230


def test_signed_samples_keep_their_order():
    grey = grey_of(np.array([[-32_768, 0, 32_767]], np.int32))
    assert list(grey[0]) == [0, 128, 255]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 128.0, 255.0], [0, 128, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
    ],
)
def test_floating_point_samples_are_scaled(samples, expected):
    assert list(grey_of(np.array([samples], np.float32))[0]) == expected


def test_samples_that_are_no_number_are_paper():
    assert list(grey_of(np.array([[0.0, np.nan, np.inf, 1.0]], np.float32))[0]) == [0, 255, 255, 255]


def test_min_is_white_is_turned_round():
    assert list(grey_of(np.array([[0, 65_535]], np.uint16), is_min_white=True)[0]) == [255, 0]


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha_is_put_on_white(mode):
    black_but_clear = Image.new(mode, (8, 8), (0,) * len(mode))
    page = page_pixels(black_but_clear, max_pixels=MAX_PIXELS)
    assert page.mode == ("L" if mode == "LA" else "RGB")
    assert page.convert("L").getextrema() == (255, 255)


def test_a_transparent_palette_colour_is_put_on_white():
    image = Image.new("P", (8, 8), 0)
    image.putpalette([0, 0, 0, 255, 0, 0])
    image.info["transparency"] = 0
    assert page_pixels(image, max_pixels=MAX_PIXELS).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("mode", "colour", "wanted_mode", "wanted"),
    [
        ("1", 1, "L", 255),
        ("L", 9, "L", 9),
        ("CMYK", (0, 0, 0, 255), "RGB", (0, 0, 0)),
        ("CMYK", (0, 0, 0, 0), "RGB", (255, 255, 255)),
        ("YCbCr", (255, 128, 128), "RGB", (255, 255, 255)),
        ("HSV", (0, 255, 255), "RGB", (255, 0, 0)),
        ("RGB", (1, 2, 3), "RGB", (1, 2, 3)),
    ],
)
def test_every_mode_becomes_grey_or_colour(mode, colour, wanted_mode, wanted):
    page = page_pixels(Image.new(mode, (4, 4), colour), max_pixels=MAX_PIXELS)
    assert (page.mode, page.getpixel((0, 0))) == (wanted_mode, wanted)


def test_lab_white_is_white():
    page = page_pixels(Image.new("LAB", (4, 4), (255, 128, 128)), max_pixels=MAX_PIXELS)
    assert min(page.getpixel((0, 0))) >= 250


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_large_images_are_reduced_and_keep_their_picture(mode):
    picture = Image.new("L", (3000, 2000), 255)
    picture.paste(0, (1500, 0, 3000, 2000))
    wide = Image.fromarray(np.asarray(picture, np.uint16) * 257)
    image = wide if mode == "I;16" else picture.convert(mode)
    page = page_pixels(image, max_pixels=60_000)
    assert page.width * page.height <= 60_000
    assert page.width / page.height == pytest.approx(1.5, rel=0.02)
    grey = page.convert("L")
    assert grey.getpixel((5, page.height - 3)) == 255
    assert grey.getpixel((page.width - 5, page.height - 3)) == 0


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientations_undo_what_the_camera_did(orientation):
    upright = Image.new("L", (4, 3), 255)
    upright.putpixel((0, 0), 0)
    upright.putpixel((3, 0), 100)
    stored = upright
    inverse = {6: 8, 8: 6}.get(orientation, orientation)
    stored = upright_by_exif(upright, inverse)
    assert upright_by_exif(stored, orientation).tobytes() == upright.tobytes()


def test_an_unknown_orientation_is_none():
    image = Image.new("L", (4, 3))
    assert upright_by_exif(image, 99) is image
