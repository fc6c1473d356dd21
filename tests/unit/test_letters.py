"""Letter-like marks: how tall, which are uncovered, and where they stand together."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from models.geometry import Box
from models.text import Word
from pipeline.letters import clusters, find_letters, on_white, uncovered_letters
from tests.fakes.papers import paper, printed, shown_through


def word(box: Box) -> Word:
    return Word(text="word", box=box, confidence=0.9)


@pytest.mark.parametrize("dpi", [100, 200, 300])
def test_letter_height_is_in_pixels_of_the_page(dpi: int) -> None:
    page = printed(paper(dpi), dpi, (1, 3), "noon sonar sauces removes an amazon", size_pt=12)
    height_px = find_letters(page).height_px
    assert height_px is not None
    assert height_px == pytest.approx(12 * dpi / 72 * 0.55, rel=0.2)


def test_a_page_without_marks_has_no_letter_height() -> None:
    assert find_letters(paper(100)).height_px is None


def test_only_letters_outside_every_word_are_uncovered() -> None:
    page = printed(printed(paper(200), 200, (1, 3), "covered by a word"), 200, (1, 5), "missed")
    letters = find_letters(page)
    missed = uncovered_letters(letters, [word(Box(195, 602, 640, 632))])
    tops = missed.top / letters.scale
    assert len(missed) >= 2  # neighbours may run into one mark
    assert tops.min() > 980
    assert (
        len(uncovered_letters(letters, [word(Box(195, 602, 640, 632)), word(Box(195, 1002, 640, 1032))])) == 0
    )


def test_marks_far_apart_are_clusters_of_their_own() -> None:
    page = printed(printed(paper(200), 200, (1, 3), "here"), 200, (5, 9), "there")
    letters = find_letters(page)
    boxes = sorted(clusters(letters.marks, letters), key=lambda box: box[1])
    assert len(boxes) == 2
    assert boxes[0][0] < 200 < boxes[0][2]
    assert boxes[1][1] < 1_810 < boxes[1][3]


def test_white_is_all_that_is_left_around_the_ink() -> None:
    page = printed(paper(200, tone=235, grain=4), 200, (3, 3), "ink")
    clean = np.asarray(on_white(page, find_letters(page)))
    assert (clean == 255).mean() > 0.99
    assert clean.min() < 60


def test_a_negative_becomes_dark_on_white() -> None:
    page = printed(paper(200, tone=15, grain=2), 200, (3, 3), "ink", grey=250)
    letters = find_letters(page)
    assert letters.has_dark_area
    clean = np.asarray(on_white(page, letters))
    assert (clean == 255).mean() > 0.99


@pytest.mark.parametrize("dpi", [100, 200, 300])
@pytest.mark.parametrize("contrast", [45, 60])
def test_print_on_the_back_is_told_from_faint_print(dpi: int, contrast: int) -> None:
    back = shown_through(dpi, contrast=contrast, blur_px=2.5)
    front = shown_through(dpi, contrast=contrast, blur_px=0)
    assert find_letters(back).is_show_through
    assert not find_letters(front).is_show_through


def test_a_heading_band_is_a_dark_area_and_plain_print_is_none() -> None:
    page = printed(paper(200), 200, (1, 3), "Plain print on plain paper, a line of it", size_pt=14)
    assert not find_letters(page).has_dark_area
    page.paste(Image.new("L", (800, 50), 0), (200, 1_000))
    printed(page, 200, (1.1, 5.05), "OPENING HOURS", grey=255)
    assert find_letters(page).has_dark_area
