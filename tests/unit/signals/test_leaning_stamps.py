"""Black stamps without a ring: type and frames that lean on a straight page."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from pipeline.signals.rules import find_rules
from pipeline.signals.stamps import find_stamps
from pipeline.signals.view import view_page
from tests.unit.signals.pages import blank_page, rule, write, write_lines

FONTS = ("DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif-Bold")
CERTAIN = 0.9
HARMLESS = 0.7


def strength(page: Image.Image) -> float:
    view = view_page(page, ())
    return max((stamp.strength for stamp in find_stamps(view, find_rules(view))), default=0.0)


def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}.ttf", size)


def stamped(page: Image.Image, patch: Image.Image, degrees: float, *, ink: int = 0) -> Image.Image:
    """``patch`` (white on black) pressed onto the page, turned clockwise."""
    turned = patch.rotate(-degrees, expand=True, resample=Image.Resampling.BICUBIC)
    page.paste(ink, (430, 880), turned)
    return page


def text_patch(text: str, name: str, size: int) -> Image.Image:
    letters = font(name, size)
    patch = Image.new("L", (round(letters.getlength(text)) + 20, size * 2), 0)
    ImageDraw.Draw(patch).text((10, size // 3), text, font=letters, fill=255)
    return patch


def frame_patch(*, width: int = 220, height: int = 100, line: int = 4, worn: bool = False) -> Image.Image:
    patch = Image.new("L", (width + 10, height + 10), 0)
    draw = ImageDraw.Draw(patch)
    draw.rectangle((5, 5, width + 4, height + 4), outline=255, width=line)
    draw.text((30, 16), "RECEIVED", font=font("DejaVuSans-Bold", 26), fill=255)
    draw.text((60, 62), "JAN 15 1997", font=font("DejaVuSansMono", 18), fill=255)
    if worn:
        for place in range(20, width, 55):
            draw.rectangle((place, 0, place + 4, 12), fill=0)
            draw.rectangle((place + 20, height - 4, place + 24, height + 10), fill=0)
    return patch


def printed(lines: int = 28) -> Image.Image:
    page = blank_page()
    write_lines(page, lines)
    return page


@pytest.mark.parametrize("degrees", [-24, -11, -7, 7, 12, 20])
@pytest.mark.parametrize("name", FONTS)
def test_a_date_that_leans_is_a_stamp(name: str, degrees: float) -> None:
    page = stamped(printed(), text_patch("FEB 23 1982", name, 20), degrees)

    assert strength(page) >= CERTAIN


@pytest.mark.parametrize("size", [15, 28, 40])
def test_a_word_and_a_date_that_lean_are_a_stamp_at_any_size(size: int) -> None:
    page = stamped(printed(), text_patch("MAR 08 RECD", "DejaVuSans", size), -14)

    assert strength(page) >= CERTAIN


def test_a_faint_date_that_leans_is_a_stamp() -> None:
    page = stamped(printed(), text_patch("RELEASED 14 JAN", "DejaVuSans-Bold", 22), 9, ink=150)

    assert strength(page) >= CERTAIN


@pytest.mark.parametrize("degrees", [-16, -5, 2.5, 8, 25])
@pytest.mark.parametrize("worn", [False, True])
def test_a_black_frame_that_leans_is_a_stamp(degrees: float, worn: bool) -> None:
    page = stamped(printed(), frame_patch(worn=worn), degrees)

    assert strength(page) >= 0.8


def test_a_whole_frame_that_leans_by_little_is_a_stamp() -> None:
    assert strength(stamped(printed(), frame_patch(), 1.5)) >= CERTAIN


def test_the_same_frame_straight_is_a_printed_box() -> None:
    assert strength(stamped(printed(), frame_patch(), 0)) < HARMLESS


@pytest.mark.parametrize("degrees", [-3, 6, 10])
def test_a_page_that_leans_as_a_whole_has_no_stamp(degrees: float) -> None:
    page = stamped(printed(), frame_patch(), 0)

    assert strength(page.rotate(degrees, fillcolor=255, resample=Image.Resampling.BICUBIC)) < HARMLESS


def test_straight_words_with_letters_of_all_heights_do_not_lean() -> None:
    page = printed(20)
    for row, word in enumerate(("Change:", "Burley fines", "typography", "bdkhl gpqjy", "Total amount")):
        write(page, word, 500, 640 + 70 * row, size=30)

    assert strength(page) < HARMLESS


def test_a_plot_with_lines_that_climb_is_none() -> None:
    page = printed(16)
    rule(page, (150, 560), (150, 900))
    rule(page, (150, 900), (600, 900))
    rule(page, (150, 880), (380, 760), (600, 600), width=3)
    for x in range(160, 600, 16):
        rule(page, (x, 870 - x * 0.2), (x + 8, 866 - x * 0.2))

    assert strength(page) < HARMLESS


def test_hatching_and_a_drawn_house_are_none() -> None:
    page = printed(16)
    rule(page, (200, 700), (320, 560), (440, 700), (440, 850), (200, 850), (200, 700))
    for x in range(210, 430, 9):
        rule(page, (x, 840), (x + 30, 720), width=1)

    assert strength(page) < HARMLESS


def test_scattered_specks_are_none() -> None:
    page = printed(10)
    draw, drawn = ImageDraw.Draw(page), np.random.default_rng(7)
    for x, y in drawn.integers((80, 400), (740, 1100), (400, 2)):
        draw.rectangle((x, y, x + 4, y + 6), fill="black")

    assert strength(page) < HARMLESS
