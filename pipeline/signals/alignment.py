"""Words that stand in columns without rules: rows cut at wide gaps, whose pieces line up from row to row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.signals.view import Numbers, PageView

GAP_TEXT_HEIGHTS: Final = 1.3
"""Words further apart than this are different cells; a word space is about 0.4 of a word's height."""

WIDEST_CELL_TEXT_HEIGHTS: Final = 22.0
"""About 35 characters. Wider pieces are lines of running text in newspaper columns."""

ROW_REACH: Final = 2
"""A piece is aligned with one at most this many rows above or below, so that a row may be empty in a
column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Neighbouring words of one row, in view pixels. ``is_number``: at least half of its characters are
    digits."""

    left_px: float
    top_px: float
    right_px: float
    bottom_px: float
    is_number: bool

    @property
    def width_px(self) -> float:
        return self.right_px - self.left_px


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedRun:
    """Consecutive rows with three or more aligned short pieces, and their bounds in view pixels."""

    rows: int
    columns: int
    number_share: float
    left_px: float
    top_px: float
    right_px: float
    bottom_px: float


def rows_of_pieces(view: PageView) -> tuple[tuple[Piece, ...], ...]:
    """Rows from top to bottom, each cut into pieces from left to right."""
    boxes = view.word_boxes
    if not len(boxes):
        return ()
    pieces = []
    for row in _rows(boxes, view.text_height_px):
        ordered = row[np.argsort(boxes[row, 0])]
        reach = np.maximum.accumulate(boxes[ordered, 2])
        cuts = np.flatnonzero(boxes[ordered[1:], 0] - reach[:-1] > GAP_TEXT_HEIGHTS * view.text_height_px) + 1
        pieces.append(tuple(_piece(view, part) for part in np.split(ordered, cuts)))
    return tuple(pieces)


def aligned_runs(
    rows: tuple[tuple[Piece, ...], ...], text_height_px: float, least_columns: int
) -> tuple[AlignedRun, ...]:
    """Maximal runs of rows that have ``least_columns`` aligned short pieces; one other row may interrupt a
    run."""
    aligned = [_aligned_pieces(rows, number, text_height_px) for number in range(len(rows))]
    runs: list[list[int]] = []
    for number, pieces in enumerate(aligned):
        if len(pieces) < least_columns:
            continue
        if runs and number - runs[-1][-1] <= ROW_REACH:
            runs[-1].append(number)
        else:
            runs.append([number])
    return tuple(_run([aligned[number] for number in run]) for run in runs if len(run) > 1)


def _rows(boxes: Numbers, text_height_px: float) -> list[np.ndarray]:
    """Indices of the words of each row: words whose middles are within half a text height of the row's
    first."""
    middles = (boxes[:, 1] + boxes[:, 3]) / 2
    order = np.argsort(middles, kind="stable")
    rows: list[list[int]] = []
    first = -np.inf
    for index in order:
        if middles[index] - first > 0.5 * text_height_px:
            rows.append([])
            first = middles[index]
        rows[-1].append(int(index))
    return [np.array(row) for row in rows]


def _piece(view: PageView, part: np.ndarray) -> Piece:
    boxes = view.word_boxes[part]
    characters = "".join(view.words[int(index)].text for index in part)
    digits = sum(character.isdigit() for character in characters)
    return Piece(
        left_px=float(boxes[:, 0].min()),
        top_px=float(boxes[:, 1].min()),
        right_px=float(boxes[:, 2].max()),
        bottom_px=float(boxes[:, 3].max()),
        is_number=2 * digits >= len(characters),
    )


def _aligned_pieces(rows: tuple[tuple[Piece, ...], ...], number: int, text_height_px: float) -> list[Piece]:
    others = [
        piece
        for other in range(max(0, number - ROW_REACH), min(len(rows), number + ROW_REACH + 1))
        if other != number and len(rows[other]) > 1
        for piece in rows[other]
    ]
    short = [piece for piece in rows[number] if piece.width_px <= WIDEST_CELL_TEXT_HEIGHTS * text_height_px]
    return [piece for piece in short if any(_line_up(piece, other, 0.4 * text_height_px) for other in others)]


def _line_up(one: Piece, other: Piece, tolerance_px: float) -> bool:
    return (
        abs(one.left_px - other.left_px) <= tolerance_px
        or abs(one.right_px - other.right_px) <= tolerance_px
        or abs(one.left_px + one.right_px - other.left_px - other.right_px) <= 2 * tolerance_px
    )


def _run(rows: list[list[Piece]]) -> AlignedRun:
    pieces = [piece for row in rows for piece in row]
    return AlignedRun(
        rows=len(rows),
        columns=int(np.median([len(row) for row in rows])),
        number_share=sum(piece.is_number for piece in pieces) / len(pieces),
        left_px=min(piece.left_px for piece in pieces),
        top_px=min(piece.top_px for piece in pieces),
        right_px=max(piece.right_px for piece in pieces),
        bottom_px=max(piece.bottom_px for piece in pieces),
    )
