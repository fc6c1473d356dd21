"""The part of a page with the most text, for readers that only want a taste of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from PIL import Image

from pipeline.letters import Letters, find_letters

SAMPLE_LETTERS: Final = (40, 8)
"""Width and height of a sample in letter heights: some five lines of forty to eighty letters."""
SMALL_LETTER_PX: Final = 14.0
WANTED_LETTER_PX: Final = 20.0
MOST_ENLARGEMENT: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSample:
    """``dpi`` is that of ``image``, which is enlarged where letters are small."""

    image: Image.Image
    dpi: float


def text_sample(image: Image.Image, *, dpi: float) -> TextSample | None:
    """None for an image without letters."""
    letters = find_letters(image)
    height_px = letters.height_px
    if height_px is None:
        return None
    sample = image.crop(_busiest_box(image, letters, height_px))
    if height_px >= SMALL_LETTER_PX:
        return TextSample(image=sample, dpi=dpi)
    factor = min(WANTED_LETTER_PX / height_px, MOST_ENLARGEMENT)
    size = (round(sample.width * factor), round(sample.height * factor))
    return TextSample(image=sample.resize(size, Image.Resampling.BICUBIC), dpi=dpi * factor)


def _busiest_box(image: Image.Image, letters: Letters, height_px: float) -> tuple[int, int, int, int]:
    """Cells of a letter's height count the width of the marks in them, up to three cells' worth."""
    columns, rows = max(1, int(image.width / height_px)), max(1, int(image.height / height_px))
    marks = letters.marks
    counted, left_edges, top_edges = np.histogram2d(
        (marks.left + marks.width / 2) / letters.scale,
        (marks.top + marks.height / 2) / letters.scale,
        bins=(columns, rows),
        range=((0, image.width), (0, image.height)),
        weights=marks.width / letters.scale,
    )
    sums = np.pad(np.minimum(counted, 3 * height_px).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    wide, high = min(SAMPLE_LETTERS[0], columns), min(SAMPLE_LETTERS[1], rows)
    inside = sums[wide:, high:] - sums[:-wide, high:] - sums[wide:, :-high] + sums[:-wide, :-high]
    column, row = np.unravel_index(int(inside.argmax()), inside.shape)
    return (
        int(left_edges[column]),
        int(top_edges[row]),
        int(left_edges[column + wide]),
        int(top_edges[row + high]),
    )
