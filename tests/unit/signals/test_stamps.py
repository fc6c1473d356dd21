from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from pipeline.signals.rules import find_rules
from pipeline.signals.stamps import Stamp, find_stamps
from pipeline.signals.view import view_page
from tests.unit.signals.pages import blank_page, rule, write, write_lines

COLOURS = {"red": (200, 30, 40), "blue": (40, 50, 170), "violet": (110, 50, 160), "green": (20, 130, 60)}


def stamps_on(page: Image.Image) -> tuple[Stamp, ...]:
    view = view_page(page, ())
    return find_stamps(view, find_rules(view))


def strength(page: Image.Image) -> float:
    return max((stamp.strength for stamp in stamps_on(page)), default=0.0)


def ring(
    page: Image.Image,
    colour: tuple[int, int, int] | str,
    *,
    centre: tuple[int, int] = (520, 600),
    radius: int = 75,
) -> None:
    draw = ImageDraw.Draw(page)
    x, y = centre
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=3)
    draw.text((x - 40, y - 8), "CITY OFFICE", fill=colour)


def oval(page: Image.Image, colour: tuple[int, int, int], degrees: float) -> None:
    patch = Image.new("RGBA", (260, 170), (0, 0, 0, 0))
    draw = ImageDraw.Draw(patch)
    draw.ellipse((3, 3, 256, 166), outline=(*colour, 255), width=4)
    draw.text((70, 76), "DISTRICT REGISTRY", fill=(*colour, 255))
    turned = patch.rotate(degrees, expand=True, resample=Image.Resampling.BICUBIC)
    page.paste(turned, (380, 540), turned)


def tilted_frame(page: Image.Image, colour: tuple[int, int, int], degrees: float) -> None:
    patch = Image.new("RGBA", (260, 110), (0, 0, 0, 0))
    draw = ImageDraw.Draw(patch)
    draw.rectangle((3, 3, 256, 106), outline=(*colour, 255), width=4)
    draw.text((60, 40), "RECEIVED 14 MAY", fill=(*colour, 255))
    turned = patch.rotate(degrees, expand=True, resample=Image.Resampling.BICUBIC)
    page.paste(turned, (380, 540), turned)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("paper", ["white", (238, 226, 196)])
def test_a_coloured_ring_across_printed_lines_is_a_stamp(colour: str, paper: str) -> None:
    page = Image.new("RGB", (827, 1169), paper)
    write_lines(page, 40)
    ring(page, COLOURS[colour])

    [first, *_] = stamps_on(page)

    assert first.strength >= 0.9
    assert first.left_px == pytest.approx(445, abs=15)
    assert first.bottom_px == pytest.approx(675, abs=15)


@pytest.mark.parametrize("degrees", [4, -7, 15])
def test_a_leaning_coloured_frame_across_printed_lines_is_a_stamp(degrees: float) -> None:
    page = blank_page("RGB")
    write_lines(page, 40)
    tilted_frame(page, COLOURS["red"], degrees)

    assert strength(page) >= 0.8


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("degrees", [0, 7, -20, 45, 90])
def test_a_coloured_oval_at_any_angle_is_a_stamp(colour: str, degrees: float) -> None:
    page = blank_page("RGB")
    write_lines(page, 40)
    oval(page, COLOURS[colour], degrees)

    assert strength(page) >= 0.9


def test_coloured_numbers_and_filled_ovals_are_none() -> None:
    page = blank_page("RGB")
    for n, price in enumerate(("47", "8.90", "16", "00")):
        write(page, price, 120, 150 + 200 * n, size=72, fill="#c01828")
        ImageDraw.Draw(page).ellipse((420, 150 + 200 * n, 560, 240 + 200 * n), fill="#c01828")

    assert strength(page) < 0.8


def test_a_black_ring_in_the_open_is_a_stamp_on_a_grey_page() -> None:
    page = blank_page("L")
    write_lines(page, 12)
    ring(page, "black")

    assert strength(page) >= 0.9


def test_coloured_headings_links_and_lists_are_none() -> None:
    page = blank_page("RGB")
    write(page, "Annual report of the committee", 90, 80, size=34, fill="#1050c0")
    for n in range(12):
        write(page, "https://example.org/report/annual", 120, 200 + 26 * n, fill="#1050c0")

    assert strength(page) < 0.7


def test_a_filled_disc_and_a_small_icon_are_none() -> None:
    page = blank_page("RGB")
    draw = ImageDraw.Draw(page)
    draw.ellipse((100, 100, 240, 240), fill=COLOURS["red"])
    draw.ellipse((600, 100, 630, 130), outline=COLOURS["blue"], width=3)

    assert strength(page) < 0.6


def test_print_and_a_ruled_grid_are_none() -> None:
    page = blank_page("L")
    write_lines(page, 30)
    for x in range(100, 700, 100):
        rule(page, (x, 850), (x, 1000))
    for y in range(850, 1001, 50):
        rule(page, (100, y), (600, y))

    assert strength(page) < 0.6


def test_yellow_paper_with_brown_ink_has_no_colour_of_its_own() -> None:
    page = Image.new("RGB", (827, 1169), (236, 214, 160))
    for n in range(20):
        write(page, "Ceci est mon testament fait a Paris", 90, 90 + 40 * n, size=22, fill="#4a3a24")

    assert strength(page) < 0.6
