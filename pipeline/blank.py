"""Whether a page carries nothing to read, told by its ink alone, so that no engine can invent text on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from models.page import Signal
from pipeline.ink import Marks, connected_marks, reduced_grey
from pipeline.letters import Letters, find_letters
from pipeline.ports import PageRaster

MM_PER_INCH = 25.4
MANY_MARKS = 1_500
"""Specks are never so many."""
LEAST_NEIGHBOURS = 2
"""Two specks meet by chance; three of a height in a row hardly ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankRules:
    """What is no text. Lengths in mm on paper, so that the scanner's resolution does not matter.

    Marks of ``neighbour_height_mm`` to ``most_height_mm`` are letters when others of about their height
    (``height_ratio``) stand beside them within ``gap_heights`` heights. A mark alone is a letter, such as a
    page's number, from ``alone_height_mm`` up when its strokes leave ``alone_fill`` or less of its box inked;
    specks and punch holes are solid. A page without letters is blank unless ink that does not come in from the
    edge covers ``least_picture_share`` of it: then it is a picture. Punch holes cover 0.002, scanner shadows
    touch the edge.

    Marks that are none of these but longer than ``doubtful_mm`` and not round (a page number's "1", a hair) leave a
    doubt, and so do letters as faint and blurred as print on the back of the sheet.
    """

    neighbour_height_mm: float = 0.9
    most_height_mm: float = 40.0
    height_ratio: float = 1.8
    gap_heights: float = 1.5
    alone_height_mm: float = 1.6
    alone_fill: float = 0.55
    alone_breadth: float = 0.13
    least_picture_share: float = 0.006
    dark_share_of_paper: float = 0.75
    view_dpi: float = 50.0
    doubtful_mm: float = 1.5
    round_elongation: float = 1.2
    round_fill: float = 0.7


RULES: Final = BlankRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankVerdict:
    """``is_doubtful``: ink alone cannot tell; the page is blank unless a reader finds legible words on it."""

    is_blank: bool
    is_doubtful: bool
    signals: tuple[Signal, ...]


def judge_blank(raster: PageRaster, *, rules: BlankRules = RULES) -> BlankVerdict:
    """Costs 5 ms for a page full of ink, about 25 ms more for others, whose letters are then looked for.
    ``raster`` may be any way up."""
    picture_share = _picture_share(raster.image, raster.dpi, rules)
    ink = Signal(name="picture_ink_share", measured=round(picture_share, 5))
    if picture_share >= rules.least_picture_share:
        return BlankVerdict(is_blank=False, is_doubtful=False, signals=(ink,))
    letters = find_letters(raster.image)
    count = _letter_count(raster.image, letters, raster.dpi, rules)
    is_doubtful = letters.is_show_through if count else _has_doubtful_mark(letters, raster.dpi, rules)
    return BlankVerdict(
        is_blank=not count and not is_doubtful,
        is_doubtful=is_doubtful,
        signals=(Signal(name="letter_marks", measured=count), ink),
    )


def _letter_count(image: Image.Image, letters: Letters, dpi: float, rules: BlankRules) -> int:
    marks = letters.marks
    height_mm = marks.height / letters.scale / dpi * MM_PER_INCH
    fits = (height_mm >= rules.neighbour_height_mm) & (height_mm <= rules.most_height_mm)
    count = int((fits & _has_neighbour(marks, fits, rules)).sum())
    if count:
        return count
    fill = marks.area / np.maximum(marks.width * marks.height, 1)
    alone = fits & (height_mm >= rules.alone_height_mm) & (fill <= rules.alone_fill) & _is_inside(letters)
    boxes = (_box_in_page(letters, number) for number in np.flatnonzero(alone))
    return sum(_breadth(image.crop(box)) >= rules.alone_breadth for box in boxes)


def _has_doubtful_mark(letters: Letters, dpi: float, rules: BlankRules) -> bool:
    """Whether a mark is too long and not round enough for a speck or a punch hole."""
    marks = letters.marks
    longer, shorter = np.maximum(marks.width, marks.height), np.minimum(marks.width, marks.height)
    is_long = longer / letters.scale / dpi * MM_PER_INCH >= rules.doubtful_mm
    is_round = (longer <= rules.round_elongation * shorter) & (
        marks.area >= rules.round_fill * marks.width * marks.height
    )
    return bool((is_long & ~is_round & _is_inside(letters)).any())


def _is_inside(letters: Letters) -> NDArray[np.bool_]:
    marks = letters.marks
    right, bottom = marks.left + marks.width, marks.top + marks.height
    off_sides = (marks.left > 0) & (right < letters.view_width_px)
    return np.asarray(off_sides & (marks.top > 0) & (bottom < letters.view_height_px))


def _box_in_page(letters: Letters, number: int) -> tuple[int, int, int, int]:
    marks, scale = letters.marks, letters.scale
    left, top = marks.left[number], marks.top[number]
    right, bottom = left + marks.width[number], top + marks.height[number]
    return round(left / scale), round(top / scale), round(right / scale), round(bottom / scale)


def _breadth(cut: Image.Image) -> float:
    """How broad the dark shape in ``cut`` is for its length (spread across its main axis by spread along it):
    0 for a straight stroke, 1 for a disc or a cross."""
    grey = np.asarray(cut.convert("L"), dtype=float)
    rows, columns = np.nonzero(grey < (grey.min() + grey.max()) / 2)
    if len(rows) < 3:
        return 0.0
    across, along = np.linalg.eigvalsh(np.cov(np.stack([rows, columns])))
    return float(np.sqrt(max(across, 0.0) / along)) if along > 0 else 0.0


def _has_neighbour(marks: Marks, fits: NDArray[np.bool_], rules: BlankRules) -> NDArray[np.bool_]:
    """Marks with another that fits beside them in a row, or above them (the page may lie on its side)."""
    chosen = np.flatnonzero(fits)
    found = np.zeros(len(marks), np.bool_)
    if len(chosen) > MANY_MARKS:
        found[chosen] = True
        return found
    left, top = marks.left[chosen].astype(float), marks.top[chosen].astype(float)
    width, height = marks.width[chosen].astype(float), marks.height[chosen].astype(float)
    size = np.maximum(width, height)
    alike = np.maximum(size[:, None], size) <= rules.height_ratio * np.minimum(size[:, None], size)
    reach = rules.gap_heights * np.minimum(size[:, None], size)
    gap_x = np.maximum(left[:, None], left) - np.minimum((left + width)[:, None], left + width)
    gap_y = np.maximum(top[:, None], top) - np.minimum((top + height)[:, None], top + height)
    beside = (gap_x <= reach) & (gap_y <= -0.5 * np.minimum(height[:, None], height))
    below = (gap_y <= reach) & (gap_x <= -0.5 * np.minimum(width[:, None], width))
    near = alike & (beside | below)
    np.fill_diagonal(near, False)
    found[chosen] = near.sum(axis=1) >= LEAST_NEIGHBOURS
    return found


def _picture_share(image: Image.Image, dpi: float, rules: BlankRules) -> float:
    """The share of the page that is clearly darker than its paper and not joined to its edge."""
    view = reduced_grey(image, rules.view_dpi / dpi)
    paper = float(np.median(view.pixels))
    dark = view.pixels < rules.dark_share_of_paper * paper
    framed = np.pad(dark, 1, constant_values=True)
    marks = connected_marks(framed)
    inside = int(framed.sum()) - _area_of_frame(marks, framed.shape)
    return float(inside / dark.size)


def _area_of_frame(marks: Marks, shape: tuple[int, ...]) -> int:
    """The mark that spans the whole padded page is the frame with all that touches it."""
    is_frame = (marks.width == shape[1]) & (marks.height == shape[0])
    return int(marks.area[is_frame].sum())
