"""Long strips cut into overlapping tiles, and the tiles' lines joined without losing or doubling any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from PIL import Image

from models.geometry import Box
from models.text import Line, Word
from pipeline.rows import line_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRules:
    """When an image is a strip and how it is cut; each engine has its own.

    An image is cut along its longer side when that is over ``max_side_px``, or over ``max_aspect`` times the
    shorter side and over ``min_strip_px``. A tile is ``tile_aspect`` times the shorter side long, within
    ``min_tile_px`` and ``max_side_px``. Neighbours share ``overlap_px``, more than the tallest line.
    """

    max_side_px: int
    max_aspect: float
    min_strip_px: int
    tile_aspect: float
    min_tile_px: int
    overlap_px: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Pixels [``start_px``, ``end_px``) along the longer side are read; words whose centre lies in
    [``keep_from_px``, ``keep_to_px``) are kept. The kept stretches of all tiles cover the strip once."""

    start_px: int
    end_px: int
    keep_from_px: int
    keep_to_px: int
    is_vertical: bool

    def crop(self, image: Image.Image) -> Image.Image:
        if self.is_vertical:
            return image.crop((0, self.start_px, image.width, self.end_px))
        return image.crop((self.start_px, 0, self.end_px, image.height))


def tiles_of(image: Image.Image, rules: TileRules) -> tuple[Tile, ...]:
    """One tile for an ordinary page. Seams are put where the least ink crosses them within the overlap."""
    length, breadth = max(image.size), min(image.size)
    is_vertical = image.height >= image.width
    is_strip = length > rules.max_aspect * breadth and length > rules.min_strip_px
    if not is_strip and length <= rules.max_side_px:
        return (Tile(start_px=0, end_px=length, keep_from_px=0, keep_to_px=length, is_vertical=is_vertical),)
    size = min(max(round(rules.tile_aspect * breadth), rules.min_tile_px), rules.max_side_px)
    overlap = min(rules.overlap_px, size // 2)
    starts = _even_starts(length, size, overlap)
    seams = [
        _quietest_px(image, start, previous + size, is_vertical=is_vertical)
        for previous, start in pairwise(starts)
    ]
    bounds = [0, *seams, length]
    return tuple(
        Tile(
            start_px=start,
            end_px=min(start + size, length),
            keep_from_px=bounds[index],
            keep_to_px=bounds[index + 1],
            is_vertical=is_vertical,
        )
        for index, start in enumerate(starts)
    )


def _even_starts(length: int, size: int, overlap: int) -> list[int]:
    """Starts of the fewest tiles of ``size`` that cover ``length`` with at least ``overlap`` in common."""
    count = max(1, -(-(length - overlap) // (size - overlap)))
    last = max(0, length - size)
    return [round(last * index / max(1, count - 1)) for index in range(count)]


def _quietest_px(image: Image.Image, start: int, end: int, *, is_vertical: bool) -> int:
    """The middle of the widest stretch without ink (or with the least) between ``start`` and ``end``."""
    box = (0, start, image.width, end) if is_vertical else (start, 0, end, image.height)
    pixels = np.asarray(image.crop(box).convert("L")).astype(np.float32)
    spread = pixels.std(axis=1 if is_vertical else 0)
    quiet = spread <= spread.min() + 2.0
    edges = np.flatnonzero(np.diff(np.concatenate(([0], quiet.astype(np.int8), [0]))))
    runs = edges.reshape(-1, 2)
    best = runs[np.argmax(runs[:, 1] - runs[:, 0])]
    return start + int(best.sum()) // 2


def joined_lines(parts: Sequence[tuple[Tile, Sequence[Line]]]) -> tuple[Line, ...]:
    """The lines of all tiles (boxes in pixels of their tile) in pixels of the strip, a word from one tile
    only."""
    if len(parts) == 1:
        return tuple(parts[0][1])
    joined: list[Line] = []
    for tile, lines in parts:
        for line in lines:
            kept = [word for word in (_placed(w, tile) for w in line.words) if _is_kept(word, tile)]
            if kept:
                joined.append(line_of(kept))
    return tuple(joined)


def _placed(word: Word, tile: Tile) -> Word:
    dx, dy = (0, tile.start_px) if tile.is_vertical else (tile.start_px, 0)
    box = word.box
    return replace(word, box=Box(box.left + dx, box.top + dy, box.right + dx, box.bottom + dy))


def _is_kept(word: Word, tile: Tile) -> bool:
    box = word.box
    centre = (box.top + box.bottom) / 2 if tile.is_vertical else (box.left + box.right) / 2
    return tile.keep_from_px <= centre < tile.keep_to_px
