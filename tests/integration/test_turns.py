"""Which way up and how straight a page is, by the real detectors."""

from __future__ import annotations

import pytest
from PIL import Image

from pipeline.engines.orientation import RapidOrientationDetector
from pipeline.engines.skew import JdeskewDetector
from tests.fakes.papers import paper, printed

TEXT = (
    "The ferry leaves the harbour at nine and comes back",
    "when the last passenger has gone ashore. Tickets are",
    "sold on the upper deck, bicycles travel free of charge",
    "in winter, and dogs are welcome if they are on a lead.",
)


@pytest.fixture(scope="module")
def orientation() -> RapidOrientationDetector:
    return RapidOrientationDetector()


def letter(dpi: int = 100, *, rows: int = 24, top_in: float = 1.0, tone: int = 250) -> Image.Image:
    page = paper(dpi, tone=tone)
    for number in range(rows):
        printed(page, dpi, (1, top_in + number * 0.3), TEXT[number % len(TEXT)], size_pt=12)
    return page


PAGES = {
    "a full page": lambda: letter(),
    "a few lines at the top": lambda: letter(rows=4, top_in=0.7),
    "a few lines at the foot": lambda: letter(rows=4, top_in=10),
    "grey paper at 200 dpi": lambda: letter(200, tone=210),
}


@pytest.mark.parametrize("delivered_deg", [0, 90, 180, 270])
@pytest.mark.parametrize("kind", PAGES)
def test_the_turn_that_mends_a_page_is_found(
    orientation: RapidOrientationDetector, kind: str, delivered_deg: int
) -> None:
    page = PAGES[kind]().rotate(-delivered_deg, expand=True)
    turn_deg, confidence = orientation.quarter_turn(page)
    assert turn_deg == (360 - delivered_deg) % 360
    assert 0.5 < confidence <= 1


@pytest.mark.parametrize("size", [(1, 1), (2, 3_000), (3_000, 2), (50, 50)])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_sliver_gets_an_answer(
    orientation: RapidOrientationDetector, size: tuple[int, int], mode: str
) -> None:
    turn_deg, confidence = orientation.quarter_turn(Image.new(mode, size, 0))
    assert turn_deg in (0, 90, 180, 270)
    assert 0 <= confidence <= 1


@pytest.mark.parametrize("skew_deg", [-8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0])
def test_the_small_turn_that_straightens_is_found(skew_deg: float) -> None:
    crooked = letter(150).rotate(skew_deg, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    assert JdeskewDetector().skew_deg(crooked) == pytest.approx(skew_deg, abs=0.3)


@pytest.mark.parametrize("size", [(1, 1), (5, 2_000), (300, 300)])
def test_an_empty_image_is_straight(size: tuple[int, int]) -> None:
    assert abs(JdeskewDetector().skew_deg(Image.new("L", size, 255))) < 0.3
