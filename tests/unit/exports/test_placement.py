"""Where text runs on a page: over its print, whatever its turn, and in the order in which it stands there."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.geometry import Box
from pipeline.exports.searchable_pdf.placement import PlacedText, in_visual_order, placed_texts
from pipeline.ports import PageRaster
from pipeline.upright import turned
from tests.unit.exports.documents import HEIGHT_PX, WIDTH_PX

WORD = Box(200, 300, 360, 340)
"""On the upright page."""


def delivered_page(
    text: str, *, rotation_deg: int = 0, skew_deg: float = 0.0, word: Box = WORD
) -> dict[str, object]:
    """The page's JSON, as far as it is looked at, when ``word`` was read on the page turned upright."""
    raster = PageRaster(page_number=1, image=Image.new("L", (WIDTH_PX, HEIGHT_PX)), dpi=100.0)
    box = turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg).to_delivered(word)
    edges = [box.left, box.top, box.right, box.bottom]
    words = [{"text": text, "box": edges, "confidence": 0.9}]
    line = {"text": text, "box": edges, "confidence": 0.9, "words": words}
    return {"rotation_deg": rotation_deg, "skew_deg": skew_deg, "lines": [line]}


def placed(page: dict[str, object]) -> PlacedText:
    [text] = placed_texts(page)
    return text


def centre(text: PlacedText) -> tuple[float, float]:
    return text.x + (text.along_x + text.up_x) / 2, text.y + (text.along_y + text.up_y) / 2


@pytest.mark.parametrize(
    ("rotation_deg", "along", "up"),
    [
        (0, (160, 0), (0, -40)),
        (90, (0, -160), (-40, 0)),
        (180, (-160, 0), (0, 40)),
        (270, (0, 160), (40, 0)),
    ],
)
def test_text_runs_as_the_print_does(
    rotation_deg: int, along: tuple[float, float], up: tuple[float, float]
) -> None:
    text = placed(delivered_page("ferries", rotation_deg=rotation_deg))
    assert (text.along_x, text.along_y) == pytest.approx(along)
    assert (text.up_x, text.up_y) == pytest.approx(up)


@given(st.sampled_from([0, 90, 180, 270]), st.floats(-12, 12))
def test_a_skewed_word_keeps_its_own_size_and_place(rotation_deg: int, skew_deg: float) -> None:
    page = delivered_page("ferries", rotation_deg=rotation_deg, skew_deg=skew_deg)
    text = placed(page)
    assert math.hypot(text.along_x, text.along_y) == pytest.approx(160, abs=0.01)
    assert math.hypot(text.up_x, text.up_y) == pytest.approx(40, abs=0.01)
    left, top, right, bottom = page["lines"][0]["box"]  # type: ignore[index]
    assert centre(text) == pytest.approx(((left + right) / 2, (top + bottom) / 2))


def test_a_line_up_the_page_is_text_up_the_page() -> None:
    text = placed(delivered_page("Copyright", word=Box(20, 100, 50, 400)))
    assert (text.along_x, text.along_y) == pytest.approx((0, -300))


def test_a_line_whose_words_go_down_is_text_down_the_page() -> None:
    page = delivered_page("first second", word=Box(20, 100, 50, 400))
    line = page["lines"][0]  # type: ignore[index]
    line["words"] = [
        {"text": "first", "box": [20, 100, 50, 200], "confidence": 0.9},
        {"text": "second", "box": [20, 220, 50, 400], "confidence": 0.9},
    ]
    assert [text.along_y > 0 for text in placed_texts(page)] == [True, True]


def test_a_column_of_ideographs_runs_down() -> None:
    text = placed(delivered_page("日本語文", word=Box(20, 100, 50, 220)))
    assert (text.along_x, text.along_y) == pytest.approx((0, 120))


def test_a_space_follows_a_word_where_the_line_has_one() -> None:
    page = delivered_page("one twothree", word=Box(0, 0, 300, 30))
    page["lines"][0]["words"] = [  # type: ignore[index]
        {"text": word, "box": [left, 0, right, 30], "confidence": 0.9}
        for word, left, right in (("one", 0, 60), ("two", 80, 140), ("three", 140, 240))
    ]
    texts = list(placed_texts(page))
    assert [text.text for text in texts] == ["one ", "two", "three"]
    assert texts[0].along_x == pytest.approx(80)
    assert texts[1].along_x == pytest.approx(60)


@pytest.mark.parametrize(
    ("word", "standing"),
    [
        ("harbour", "harbour"),
        ("שלום", "םולש"),
        ("(שלום)", ")םולש("),
        ("שנת1948", "1948תנש"),
        ("порт", "порт"),
        ("日本", "日本"),
        ("1948", "1948"),
    ],
)
def test_letters_stand_in_visual_order(word: str, standing: str) -> None:
    assert in_visual_order(word) == standing


def test_a_page_of_nothing_has_no_text() -> None:
    assert list(placed_texts({"rotation_deg": 0, "skew_deg": 0.0, "lines": []})) == []
