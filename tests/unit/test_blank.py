"""Blank pages told by their ink, at any resolution: dirt is no text, and the least bit of text is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pipeline.blank import BlankVerdict, judge_blank
from pipeline.ports import PageRaster
from tests.fakes.papers import (
    as_jpeg,
    folded,
    paper,
    printed,
    punched,
    shadowed,
    shown_through,
    specks,
)

RESOLUTIONS = (100, 200, 400)


def verdict(image: Image.Image, dpi: float) -> BlankVerdict:
    return judge_blank(PageRaster(page_number=1, image=image, dpi=dpi))


BLANK: dict[str, Callable[[int], Image.Image]] = {
    "clean": lambda dpi: paper(dpi, tone=255, grain=0),
    "scanner grain": lambda dpi: paper(dpi, tone=240, grain=5),
    "grey to one side": lambda dpi: paper(dpi, gradient=90),
    "poor JPEG of cream paper": lambda dpi: as_jpeg(paper(dpi, tone=225, grain=6, gradient=30), 20),
    "specks": lambda dpi: specks(paper(dpi), dpi, 60, 0.8),
    "a few large specks": lambda dpi: specks(paper(dpi), dpi, 6, 1.4),
    "punch holes": lambda dpi: punched(paper(dpi), dpi, (2.0, 4.5, 7.2, 9.7)),
    "edge shadow": lambda dpi: shadowed(paper(dpi), dpi),
    "a fold": lambda dpi: folded(paper(dpi), contrast=80),
    "weak show-through": lambda dpi: shown_through(dpi, contrast=20, blur_px=2),
    "all black": lambda dpi: paper(dpi, tone=0, grain=0),
    "shadow, holes and specks": lambda dpi: as_jpeg(
        specks(punched(shadowed(paper(dpi, tone=235, grain=4), dpi), dpi, (3.0, 8.0)), dpi, 40, 0.8), 60
    ),
}


@pytest.mark.parametrize("dpi", RESOLUTIONS)
@pytest.mark.parametrize("kind", BLANK)
def test_dirt_is_no_text(kind: str, dpi: int) -> None:
    assert verdict(BLANK[kind](dpi), dpi).is_blank


TEXT: dict[str, Callable[[int], Image.Image]] = {
    "page number 7": lambda dpi: printed(paper(dpi), dpi, (4.1, 11), "7"),
    "page number 1": lambda dpi: printed(paper(dpi), dpi, (4.1, 11), "1"),
    "page number - 3 -": lambda dpi: printed(paper(dpi), dpi, (4, 11), "- 3 -", size_pt=9),
    "page number iv": lambda dpi: printed(paper(dpi), dpi, (4, 11), "iv", size_pt=9),
    "a number on its side": lambda dpi: printed(paper(dpi), dpi, (4.1, 11), "7").rotate(90, expand=True),
    "one word": lambda dpi: printed(paper(dpi), dpi, (2, 3), "Intentionally"),
    "a faint line": lambda dpi: printed(
        paper(dpi, tone=250, grain=1), dpi, (1, 4), "This page has been left for remarks", grey=210
    ),
    "one large letter": lambda dpi: printed(paper(dpi), dpi, (3, 4), "A", size_pt=120),
    "white on black": lambda dpi: printed(
        paper(dpi, tone=20, grain=1), dpi, (2, 4), "The end of it", size_pt=14, grey=250
    ),
    "a number among dirt": lambda dpi: printed(
        specks(punched(shadowed(paper(dpi), dpi), dpi, (3.0, 8.0)), dpi, 30, 0.6), dpi, (4.1, 10.9), "7"
    ),
    "strong show-through, for a reader to decide": lambda dpi: shown_through(dpi, contrast=45, blur_px=2),
}


@pytest.mark.parametrize("dpi", RESOLUTIONS)
@pytest.mark.parametrize("kind", TEXT)
def test_the_least_bit_of_text_is_not_blank(kind: str, dpi: int) -> None:
    assert not verdict(TEXT[kind](dpi), dpi).is_blank


@pytest.mark.parametrize("kind", ["one word", "a faint line"])
def test_plain_words_leave_no_doubt(kind: str) -> None:
    assert not verdict(TEXT[kind](200), 200).is_doubtful


def test_print_on_the_back_leaves_a_doubt() -> None:
    assert verdict(shown_through(200, contrast=45, blur_px=2), 200).is_doubtful


def test_a_picture_is_not_blank() -> None:
    image = paper(150)
    ImageDraw.Draw(image).ellipse((300, 300, 900, 900), fill=90)
    assert not verdict(image, 150).is_blank


def test_signals_say_what_was_seen() -> None:
    signals = {s.name: s.measured for s in verdict(TEXT["one word"](200), 200).signals}
    assert signals["letter_marks"] is not None
    assert signals["letter_marks"] >= 7


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (900, 2)])
def test_a_sliver_is_judged_without_a_crash(size: tuple[int, int]) -> None:
    assert verdict(Image.fromarray(np.zeros(size, np.uint8)), 200).is_blank
