"""What of a page is kept when its margins are trimmed: in doubt, more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from models.geometry import Box
from pipeline.margins import content_box, trimmed
from pipeline.ports import PageRaster
from pipeline.upright import turned
from tests.fakes.papers import paper, printed, punched, shadowed, shown_through, specks

DPI = 200
PX_PER_MM = DPI / 25.4
TEXT = "The ferry leaves the harbour at nine and comes back"


def letter(*, dpi: int = DPI, tone: int = 245, grain: float = 2.0) -> Image.Image:
    """Fifteen lines in the middle of A4, from 1.5 inches to 6 across and from 3 to 7.3 down."""
    page = paper(dpi, tone=tone, grain=grain)
    for number in range(15):
        printed(page, dpi, (1.5, 3 + number * 0.3), TEXT)
    return page


def content_of(image: Image.Image, *, rotation_deg: int = 0, skew_deg: float = 0.0, dpi: float = DPI) -> Box:
    raster = PageRaster(page_number=1, image=image, dpi=dpi)
    return content_box(image, turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg))


def whole(image: Image.Image) -> Box:
    return Box(0, 0, *image.size)


def kept_share(image: Image.Image) -> float:
    return content_of(image).area / whole(image).area


def holds(box: Box, left_in: float, top_in: float, right_in: float, bottom_in: float) -> bool:
    inner = Box(left_in * DPI, top_in * DPI, right_in * DPI, bottom_in * DPI)
    return box.intersection(inner) == inner.area


def test_the_margins_of_a_letter_go_and_its_lines_stay() -> None:
    page = letter()
    assert kept_share(page) < 0.35
    assert holds(content_of(page), 1.5, 3.05, 4.6, 7.3)


@pytest.mark.parametrize("dpi", [75, 100, 300, 400])
def test_it_is_the_same_part_at_any_resolution(dpi: int) -> None:
    box, reference = content_of(letter(dpi=dpi), dpi=dpi).scaled(DPI / dpi), content_of(letter())
    assert (box.left, box.top) == pytest.approx((reference.left, reference.top), abs=DPI / 20)
    assert (box.right, box.bottom) == pytest.approx((reference.right, reference.bottom), abs=DPI / 20)


def test_dirt_holds_no_margin() -> None:
    assert kept_share(specks(letter(), DPI, 30, 0.6)) < 0.35


@pytest.mark.parametrize("grey", [0, 150, 215])
@pytest.mark.parametrize("at_in", [(0.1, 0.1), (7.9, 11.45), (4.1, 11.4), (0.15, 5.0), (7.95, 0.2)])
def test_a_number_at_the_edge_is_kept_however_faint(at_in: tuple[float, float], grey: int) -> None:
    page = printed(letter(), DPI, at_in, "7", size_pt=8, grey=grey)
    assert holds(content_of(page), at_in[0] + 0.02, at_in[1] + 0.04, at_in[0] + 0.05, at_in[1] + 0.1)


@pytest.mark.parametrize("grey", [180, 210, 225])
def test_a_note_in_pencil_is_kept(grey: int) -> None:
    page = letter(tone=250)
    draw = ImageDraw.Draw(page)
    draw.line([(1_200, 2_050), (1_260, 2_020), (1_300, 2_060), (1_420, 2_010)], fill=grey, width=3)
    assert holds(content_of(page), 6.0, 10.1, 7.1, 10.3)


@pytest.mark.parametrize("colour", ["#ffd0d0", "#fff080", "#c8e0ff", "#d0f0d0", "#cc2222"])
def test_a_stamp_is_kept_in_whatever_colour(colour: str) -> None:
    page = letter().convert("RGB")
    ImageDraw.Draw(page).ellipse((1_300, 60, 1_560, 320), outline=colour, width=6)
    assert holds(content_of(page), 6.5, 0.3, 7.8, 1.6)


def test_what_may_be_content_is_kept() -> None:
    edge = content_of(shadowed(letter(), DPI))
    assert edge.left == 0
    assert edge.bottom == letter().height
    assert holds(content_of(punched(letter(), DPI, (3, 8.5))), 0.3, 2.8, 4.6, 8.7)
    tinted = letter()
    ImageDraw.Draw(tinted).rectangle((0, 0, tinted.width, 300), fill=190)
    assert content_of(tinted).top == 0


def test_a_picture_that_runs_off_the_page_is_kept() -> None:
    page = letter()
    picture = np.linspace(70, 180, 400 * page.width).reshape(400, page.width).astype(np.uint8)
    page.paste(Image.fromarray(picture), (0, page.height - 400))
    box = content_of(page)
    assert (box.left, box.right, box.bottom) == (0, page.width, page.height)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(paper(DPI), id="blank"),
        pytest.param(paper(DPI, tone=200, gradient=30), id="blank and darker to one side"),
        pytest.param(specks(paper(DPI), DPI, 12, 0.6), id="specks"),
        pytest.param(Image.new("RGB", (900, 600), "white"), id="white"),
        pytest.param(Image.new("L", (1, 1), 255), id="a pixel"),
        pytest.param(Image.eval(letter(), lambda grey: 255 - grey), id="white on black"),
        pytest.param(
            Image.fromarray(
                np.random.default_rng(1).normal(60, 20, (800, 600)).clip(0, 255).astype(np.uint8)
            ),
            id="a dark photograph",
        ),
    ],
)
def test_a_page_without_ink_and_one_on_dark_keep_all(page: Image.Image) -> None:
    assert content_of(page) == whole(page)


def test_black_and_white_scans_are_trimmed_as_grey_ones() -> None:
    page = letter(grain=0)
    fax = page.point(lambda grey: 255 if grey > 128 else 0)
    box, grey = content_of(fax), content_of(page)
    assert (box.left, box.top) == pytest.approx((grey.left, grey.top), abs=4)
    assert (box.right, box.bottom) == pytest.approx((grey.right, grey.bottom), abs=4)


@pytest.mark.parametrize("rotation_deg", [0, 90, 180, 270])
def test_the_box_turns_with_the_page(rotation_deg: int) -> None:
    """Whichever way it was delivered, the same part of the upright page is kept."""
    page = letter()
    delivered = page.rotate(rotation_deg, expand=True)
    box, upright = content_of(delivered, rotation_deg=rotation_deg), content_of(page)
    assert (box.left, box.top) == pytest.approx((upright.left, upright.top), abs=4)
    assert (box.right, box.bottom) == pytest.approx((upright.right, upright.bottom), abs=4)


@pytest.mark.parametrize("skew_deg", [-7.5, -1.3, 3.0])
@pytest.mark.parametrize("tone", [245, 190])
def test_the_corners_that_a_small_turn_leaves_are_no_ink(skew_deg: float, tone: int) -> None:
    leaning = letter(tone=tone).rotate(skew_deg, Image.Resampling.BICUBIC, fillcolor=tone)
    raster = PageRaster(page_number=1, image=leaning, dpi=DPI)
    upright = turned(raster, rotation_deg=0, skew_deg=skew_deg)
    box = content_box(leaning, upright)
    assert box.area < 0.35 * leaning.width * leaning.height
    dark = np.asarray(upright.raster.image) < 100
    assert dark.sum() == (np.asarray(trimmed(upright.raster.image, box)) < 100).sum()


def test_print_that_shows_through_may_stay_but_never_cuts_the_page_s_own() -> None:
    page = shown_through(DPI, contrast=23, blur_px=2)
    printed(page, DPI, (6.5, 11.2), "page 12")
    assert holds(content_of(page), 6.5, 11.25, 7.1, 11.35)


@settings(max_examples=60)
@given(data=st.data())
def test_no_mark_larger_than_a_speck_is_ever_cut_off(data: st.DataObject) -> None:
    """Strokes anywhere, of any tone that a reader sees, on paper of any tone: all of their pixels are in the box."""
    tone = data.draw(st.integers(150, 255))
    width_px, height_px = data.draw(st.integers(200, 900)), data.draw(st.integers(200, 900))
    page = Image.new("L", (width_px, height_px), tone)
    for _ in range(data.draw(st.integers(1, 5))):
        left, top = data.draw(st.integers(0, width_px - 20)), data.draw(st.integers(0, height_px - 20))
        right, bottom = left + data.draw(st.integers(10, 120)), top + data.draw(st.integers(10, 60))
        ink = data.draw(st.integers(0, round(0.85 * tone)))
        ImageDraw.Draw(page).line((left, top, right, bottom), fill=ink, width=data.draw(st.integers(2, 9)))
    raster = PageRaster(page_number=1, image=page, dpi=DPI)
    upright = turned(raster, rotation_deg=data.draw(st.sampled_from((0, 90, 180, 270))), skew_deg=0.0)
    box = content_box(page, upright)
    inked = np.asarray(upright.raster.image) < tone
    assert inked.sum() == (np.asarray(trimmed(upright.raster.image, box)) < tone).sum()


@settings(max_examples=40)
@given(
    width_px=st.integers(1, 700),
    height_px=st.integers(1, 700),
    rotation_deg=st.sampled_from((0, 90, 180, 270)),
    skew_deg=st.sampled_from((0.0, -3.21, 9.5)),
    dpi=st.sampled_from((70.0, 200.0, 613.5)),
    mode=st.sampled_from(("L", "RGB")),
)
def test_a_box_has_whole_pixels_and_lies_on_the_page(
    width_px: int, height_px: int, rotation_deg: int, skew_deg: float, dpi: float, mode: str
) -> None:
    page = Image.new(mode, (width_px, height_px), "white")
    ImageDraw.Draw(page).rectangle(
        (width_px // 3, height_px // 3, width_px // 2, height_px // 2), fill="black"
    )
    raster = PageRaster(page_number=1, image=page, dpi=dpi)
    upright = turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg)
    box = content_box(page, upright)
    assert 0 <= box.left < box.right <= upright.raster.image.width
    assert 0 <= box.top < box.bottom <= upright.raster.image.height
    assert trimmed(upright.raster.image, box).size == (box.width, box.height)
