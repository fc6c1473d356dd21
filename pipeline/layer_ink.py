"""Whether a text layer and the pixels of its page agree: words lie on ink, and ink that looks like text
has words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from models.geometry import Box
from pipeline.layer_words import LayerWord

Grey = NDArray[np.uint8]
Mask = NDArray[np.bool_]

VIEW_PX: Final = 1_200
"""The longer side of the small picture in which ink is looked for: an A4 page at about 100 dpi."""
CONTRAST: Final = 16
"""Grey levels between a word's letters and what they stand on; rendered pages are exact, so a little is
enough."""
INKED_COLUMNS: Final = 0.25
"""The least share of a word's columns with contrast; "i . i" spaced wide still has more."""
INK_DEPTH: Final = 40
"""Grey levels by which ink is darker than the paper around it."""
PAPER_PX: Final = 25
"""The side of the neighbourhood that must hold some paper, in the small picture: wider than a stroke of a
title."""
PAPER_GREY: Final = 150
"""Paper is brighter than this; a picture that is mostly darker is no scanned page."""
SCAN_SHARE: Final = 0.25
"""Images that cover less of the page than this, all together, are no scanned page."""
LETTER_PX: Final = (4, 45)
"""Heights of letters in the small picture: 3 to 32 points."""
WIDEST_PX: Final = 220
"""A word whose letters touch; rules and frames are wider."""
LETTER_GAP_PX: Final = 9
SPECK_PX: Final = 6
"""Fewer pixels are dirt."""
RULE_PX: Final = 3
"""Rules and dashes are no thicker."""
LINE_ASPECT: Final = 5.0
LINE_PIECES: Final = 4
"""A row of text is this much wider than high and has so many pieces."""
PAPER_SPREAD: Final = 22
"""Grey levels between the brighter pixels of a row of text; photographs spread wider."""
MAX_PIECES: Final = 20_000
"""More pieces of ink than letters on any page: a halftone or noise."""


@dataclass(frozen=True, slots=True)
class PageInk:
    """``grey`` is the upright page at full size, ``view`` and ``ink`` the small picture and where it is
    inked."""

    grey: Grey
    view: Grey
    ink: Mask
    view_px_per_px: float

    def shows(self, box: Box) -> bool:
        """Whether something is drawn within a tight box: contrast in enough of its columns, or rows where
        it is higher than wide."""
        height, width = self.grey.shape
        top, bottom = max(int(box.top) - 2, 0), min(int(box.bottom) + 3, height)
        left, right = max(int(box.left), 0), min(int(box.right) + 1, width)
        part = self.grey[top:bottom, left:right]
        if not part.size:
            return False
        axis = 0 if box.width >= box.height else 1
        contrast = part.max(axis=axis).astype(np.int16) - part.min(axis=axis)
        return float((contrast > CONTRAST).mean()) >= INKED_COLUMNS

    def reach(self, box: Box, limit_px: float) -> float:
        """How far right of a box, at most to ``limit_px``, its ink goes on without a gap between words."""
        rows, columns = self.slices(box)
        last = int(limit_px * self.view_px_per_px)
        inked = np.any(self.ink[rows, columns.stop : max(last, columns.stop)], axis=0).tolist()
        gap = max(2, round(0.15 * (rows.stop - rows.start)))
        end = 0
        for column, has_ink in enumerate(inked, start=1):
            if has_ink:
                end = column
            elif column - end >= gap:
                break
        return max(box.right, (columns.stop + end) / self.view_px_per_px) if end else box.right

    def slices(self, box: Box, grow_px: int = 0) -> tuple[slice, slice]:
        """The rows and columns of the small picture that a box covers."""
        small = box.scaled(self.view_px_per_px)
        return (
            slice(max(int(small.top) - grow_px, 0), max(int(np.ceil(small.bottom)) + grow_px, 0)),
            slice(max(int(small.left) - grow_px, 0), max(int(np.ceil(small.right)) + grow_px, 0)),
        )


def page_ink(image: Image.Image, rotation_deg: int) -> PageInk:
    """``image`` is the page as delivered; ``rotation_deg`` the clockwise turn that makes it upright."""
    whole = image.convert("L")
    factor = max(1, round(max(whole.size) / VIEW_PX))
    grey = np.rot90(np.asarray(whole), k=-rotation_deg // 90)
    view = np.rot90(np.asarray(whole.reduce(factor)), k=-rotation_deg // 90)
    paper = ndimage.grey_closing(view, size=(PAPER_PX, PAPER_PX))
    ink = paper.astype(np.int16) - view > INK_DEPTH
    return PageInk(grey, view, ink, 1 / factor)


def uncovered_ink(page: PageInk, words: Iterable[LayerWord]) -> Mask:
    """Ink outside all words; slanted words count glyph by glyph."""
    rest = page.ink.copy()
    for word in words:
        boxes = [word.word.box] if word.quarter_turns is not None else [glyph.box for glyph in word.glyphs]
        for box in boxes:
            rest[page.slices(box, grow_px=2)] = False
    return rest


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Connected pieces of ink of a letter's or a word's size, as (top, left, bottom, right), and their
    pixels."""

    boxes: NDArray[np.int64]
    pixels: NDArray[np.int64]


def _letter_pieces(ink: Mask) -> _Pieces:
    labels, count = ndimage.label(ink, structure=np.ones((3, 3)))
    if not count or count > MAX_PIECES:
        return _Pieces(np.empty((0, 4), np.int64), np.empty(0, np.int64))
    slices = ndimage.find_objects(labels)
    boxes = np.array([[rows.start, columns.start, rows.stop, columns.stop] for rows, columns in slices])
    pixels = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    height, width = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    kept = (height >= LETTER_PX[0]) & (height <= LETTER_PX[1]) & (width <= WIDEST_PX) & (pixels >= SPECK_PX)
    return _Pieces(boxes[kept], pixels[kept])


def uncovered_text_share(page: PageInk, words: Sequence[LayerWord], rest: Mask) -> float:
    """The area of rows that look like text and have no words, in that of all text."""
    covered_px2 = sum(word.word.box.area for word in words) * page.view_px_per_px**2
    uncovered_px2 = _text_row_area(page, _letter_pieces(rest))
    return uncovered_px2 / (uncovered_px2 + covered_px2) if uncovered_px2 else 0.0


def _text_row_area(page: PageInk, pieces: _Pieces) -> float:
    """Pieces that stand in a row on flat paper, a letter's gap apart, in square pixels of the small
    picture."""
    rows = np.zeros(page.ink.shape, dtype=bool)
    for top, left, bottom, right in pieces.boxes:
        rows[top:bottom, max(left - LETTER_GAP_PX, 0) : right + LETTER_GAP_PX] = True
    labels, count = ndimage.label(rows)
    if not count:
        return 0.0
    centres = (pieces.boxes[:, :2] + pieces.boxes[:, 2:]) // 2
    members = np.bincount(labels[centres[:, 0], centres[:, 1]], minlength=count + 1)
    area = 0.0
    for number, (vertical, horizontal) in enumerate(ndimage.find_objects(labels), start=1):
        height = vertical.stop - vertical.start
        width = horizontal.stop - horizontal.start - 2 * LETTER_GAP_PX
        is_row = width >= LINE_ASPECT * height and members[number] >= LINE_PIECES
        if is_row and _is_on_paper(page.view[vertical, horizontal]):
            area += width * height
    return area


def _is_on_paper(part: Grey) -> bool:
    bright, brightest = np.percentile(part, (65, 95))
    return bool(brightest - bright <= PAPER_SPREAD)


def uncovered_scan_share(page: PageInk, images: Sequence[Box], rest: Mask) -> float | None:
    """Within images that look like scanned paper: ink without words, in all ink; rules and frames left out.

    Unlike :func:`uncovered_text_share` this counts handwriting as well. None where no image, nor the strips
    of one together, looks like a scanned page.
    """
    scanned = np.zeros(page.ink.shape, dtype=bool)
    for box in images:
        part = page.view[page.slices(box)]
        if part.size and np.median(part) >= PAPER_GREY:
            scanned[page.slices(box)] = True
    if scanned.mean() < SCAN_SHARE:
        return None
    total = _written_px(page.ink & scanned)
    return min(_written_px(rest & scanned) / total, 1.0) if total else 0.0


def _written_px(ink: Mask) -> int:
    """The area of ink in pieces of a word's size."""
    labels, count = ndimage.label(ink, structure=np.ones((3, 3)))
    pixels = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    sides = np.array([[r.stop - r.start, c.stop - c.start] for r, c in ndimage.find_objects(labels)]).reshape(
        count, 2
    )
    is_written = (pixels >= SPECK_PX) & (sides.max(axis=1) <= WIDEST_PX) & (sides.min(axis=1) > RULE_PX)
    return int(pixels[is_written].sum())
