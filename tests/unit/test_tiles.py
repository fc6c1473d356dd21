"""Strips cut into tiles and joined again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from models.geometry import Box
from models.text import Word
from pipeline.rows import line_of
from pipeline.tiles import Tile, TileRules, joined_lines, tiles_of

RULES = TileRules(
    max_side_px=2_000, max_aspect=3.0, min_strip_px=600, tile_aspect=2.0, min_tile_px=300, overlap_px=60
)


def word(text: str, box: Box) -> Word:
    return Word(text=text, box=box, confidence=0.9)


@given(breadth=st.integers(8, 300), length=st.integers(8, 6_000), is_vertical=st.booleans())
def test_every_pixel_of_a_strip_is_kept_by_exactly_one_tile(
    breadth: int, length: int, is_vertical: bool
) -> None:
    image = Image.new("L", (breadth, length) if is_vertical else (length, breadth), 255)
    tiles = tiles_of(image, RULES)
    assert tiles[0].keep_from_px == 0
    assert tiles[-1].keep_to_px == max(image.size)
    for before, after in pairwise(tiles):
        assert before.keep_to_px == after.keep_from_px
    for tile in tiles:
        assert tile.start_px <= tile.keep_from_px < tile.keep_to_px <= tile.end_px <= max(image.size)
        assert tile.end_px - tile.start_px <= RULES.max_side_px


def test_an_ordinary_page_is_one_tile() -> None:
    assert len(tiles_of(Image.new("L", (800, 1_100), 255), RULES)) == 1


def test_a_seam_runs_where_no_ink_is() -> None:
    image = Image.new("L", (200, 3_000), 255)
    draw = ImageDraw.Draw(image)
    for top in range(5, 3_000, 30):
        draw.rectangle((10, top, 190, top + 21), fill=0)
    pixels = np.asarray(image)
    seams = [tile.keep_to_px for tile in tiles_of(image, RULES)[:-1]]
    assert len(seams) >= 5
    assert all(pixels[seam].min() == 255 for seam in seams)


@pytest.mark.parametrize("is_vertical", [True, False])
def test_a_word_seen_by_two_tiles_is_kept_once_and_in_its_place(is_vertical: bool) -> None:
    def tile(start: int, end: int, keep_from: int, keep_to: int) -> Tile:
        return Tile(
            start_px=start, end_px=end, keep_from_px=keep_from, keep_to_px=keep_to, is_vertical=is_vertical
        )

    def at(along: float) -> Box:
        return Box(5, along, 45, along + 20) if is_vertical else Box(along, 5, along + 20, 25)

    first, second = tile(0, 100, 0, 90), tile(80, 180, 90, 180)
    parts = [
        (first, [line_of([word("early", at(10))]), line_of([word("seam", at(70))])]),
        (second, [line_of([word("seam", at(-10))]), line_of([word("late", at(50))])]),
    ]
    lines = joined_lines(parts)
    assert [line.text for line in lines] == ["early", "seam", "late"]
    assert lines[2].box == at(130)
