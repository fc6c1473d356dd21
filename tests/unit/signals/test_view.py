from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from models.geometry import Box
from models.text import Word
from pipeline.signals.view import VIEW_SIDE_PX, view_page
from tests.unit.signals.pages import blank_page, write


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_never_enlarged_and_never_much_above_the_working_size(width: int, height: int) -> None:
    view = view_page(Image.new("L", (width, height), 255), ())

    assert view.width_px <= width
    assert view.height_px <= height
    assert view.width_px * view.height_px <= 1.25 * VIEW_SIDE_PX**2 + width + height


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("factor", [1, 2, 3.3])
def test_a_box_of_the_view_lies_on_the_same_ink_of_the_page(mode: str, factor: float) -> None:
    page = Image.new(mode, (round(827 * factor), round(1169 * factor)), "white")
    page.paste("black", tuple(round(v * factor) for v in (200, 300, 208, 308)))

    view = view_page(page, ())
    rows, columns = np.nonzero(view.ink)
    box = view.page_box(columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)

    near = 3 * factor
    assert (box.left, box.top) == pytest.approx((200 * factor, 300 * factor), abs=near)
    assert (box.right, box.bottom) == pytest.approx((208 * factor, 308 * factor), abs=near)


def test_grey_pages_have_no_colour_picture() -> None:
    assert view_page(blank_page("L"), ()).rgb is None
    assert view_page(blank_page("RGB"), ()).rgb is not None


def test_tinted_and_shadowed_paper_is_no_ink() -> None:
    page = Image.linear_gradient("L").resize((800, 1100)).point(lambda value: 90 + value // 2)
    words = write(page, "Only these words are ink", 100, 500)

    view = view_page(page, tuple(words))
    outside = view.ink.copy()
    for left, top, right, bottom in view.word_boxes.astype(int):
        outside[top - 2 : bottom + 3, left - 2 : right + 3] = 0

    assert view.ink.any()
    assert not outside.any()


def test_text_height_is_the_median_word_height_in_view_pixels() -> None:
    words = tuple(
        Word(text="x", box=Box(0, 0, 9, height), confidence=None) for height in (20, 20, 20, 20, 90)
    )

    view = view_page(Image.new("L", (1654, 2338), 255), words)

    assert view.text_height_px == pytest.approx(20 * view.scale)
