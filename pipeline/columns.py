"""Where a page falls into columns: a recursive cut along gutters, with headings that span them kept in
place.

The input is fragments: stretches of words without a wide gap between them. A gutter is a vertical strip
that many rows leave free. Rows of a table leave strips free as well, so a strip counts only when both of
its sides are set like running text, or when the rows on both sides don't line up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rows import ROW_STEP_EM, Fragment

Boxes = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_FRAGMENTS: Final = 20_000
"""Beyond this a page is read row by row: no column layout has so many pieces."""
MAX_DEPTH: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """Lengths are in ems of the page's body text.

    ``min_rows``: rows that both sides of a gutter share. ``min_gutter_em``: a word space in justified
    text reaches 0.7. ``min_column_em``: about twenty letters, narrower than newspaper columns.
    ``full_row_share``: how much of a column's width a row of running text covers. ``full_rows_share``:
    how many rows of running text do. ``aligned_em``, ``aligned_pitch``: rows whose middles differ by less
    than this, in ems or in steps from row to row, line up (values of a form stand a little higher than
    their labels). ``aligned_rows_share``: how many do in a table.
    """

    min_rows: int = 3
    min_gutter_em: float = 0.7
    min_column_em: float = 9.0
    full_row_share: float = 0.7
    full_rows_share: float = 0.5
    aligned_em: float = 0.25
    aligned_pitch: float = 0.2
    aligned_rows_share: float = 0.6
    max_candidates: int = 48


RULES: Final = ColumnRules()


@dataclass(frozen=True, slots=True)
class _Cut:
    above: Indices
    left: Indices
    right: Indices
    below: Indices


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A strip that the rows on both sides leave free; ``rows`` is how many they share."""

    rows: int
    gutter_px: float
    left: Indices
    right: Indices


def fragment_regions(fragments: Sequence[Fragment], em_px: float) -> list[list[Fragment]]:
    """The fragments a region at a time, in reading order; see ``regions``."""
    if not fragments:
        return []
    boxes = np.array([[f.box.left, f.box.top, f.box.right, f.box.bottom] for f in fragments])
    return [[fragments[index] for index in region] for region in regions(boxes, em_px)]


def regions(boxes: Boxes, em_px: float, rules: ColumnRules = RULES) -> list[Indices]:
    """Fragment indices (rows of ``boxes``: left, top, right, bottom), a region at a time, in reading order.

    Every fragment is in exactly one region; within a region there is one column.
    """
    everything = np.arange(len(boxes))
    if len(boxes) > MAX_FRAGMENTS:
        return [everything]
    return list(_split(boxes, everything, em_px, rules, depth=0))


def _split(
    boxes: Boxes, members: Indices, em_px: float, rules: ColumnRules, *, depth: int
) -> Iterator[Indices]:
    if not len(members):
        return
    cut = _best_cut(boxes, members, em_px, rules) if depth < MAX_DEPTH else None
    if cut is None:
        yield members
        return
    for part in (cut.above, cut.left, cut.right, cut.below):
        yield from _split(boxes, part, em_px, rules, depth=depth + 1)


def _best_cut(boxes: Boxes, members: Indices, em_px: float, rules: ColumnRules) -> _Cut | None:
    """The cut whose sides share most rows; candidates are cheap, so columns are judged from the best one
    down."""
    if len(members) < 2 * rules.min_rows:
        return None
    found = [
        candidate
        for x in _left_edges(boxes[members], em_px, rules)
        for candidate in _candidates_at(boxes, members, x, em_px, rules)
    ]
    for candidate in sorted(found, key=lambda c: (-c.rows, -c.gutter_px)):
        if _are_columns(boxes[candidate.left], boxes[candidate.right], em_px, rules):
            return _cut(boxes, members, candidate)
    return None


def _cut(boxes: Boxes, members: Indices, candidate: _Candidate) -> _Cut:
    both = np.concatenate([candidate.left, candidate.right])
    rest = members[~np.isin(members, both)]
    middle = float(boxes[both, 1].min() + boxes[both, 3].max()) / 2
    is_above = (boxes[rest, 1] + boxes[rest, 3]) / 2 <= middle
    return _Cut(rest[is_above], candidate.left, candidate.right, rest[~is_above])


def _left_edges(part: Boxes, em_px: float, rules: ColumnRules) -> list[float]:
    """The left edges that most fragments share: where a column may begin."""
    bins = np.floor(part[:, 0] / (0.5 * em_px)).astype(np.int64)
    values, firsts, counts = np.unique(bins, return_index=True, return_counts=True)
    shared = counts + np.where(np.isin(values + 1, values), 1, 0) >= 2
    order = np.argsort(-counts[shared], kind="stable")[: rules.max_candidates]
    return [float(part[bins == value, 0].min()) for value in values[shared][order]] if len(firsts) else []


def _candidates_at(
    boxes: Boxes, members: Indices, x: float, em_px: float, rules: ColumnRules
) -> Iterator[_Candidate]:
    """One candidate for each stretch of the page that no fragment crosses at ``x``."""
    part = boxes[members]
    slack = 0.1 * em_px
    crosses = (part[:, 0] < x - slack) & (part[:, 2] > x + slack)
    centre = (part[:, 1] + part[:, 3]) / 2
    stretch = np.searchsorted(np.sort(centre[crosses]), centre)
    is_right = ~crosses & (part[:, 0] >= x - slack)
    is_left = ~crosses & ~is_right
    for number in np.flatnonzero(np.bincount(stretch[is_right]) >= rules.min_rows):
        left = members[is_left & (stretch == number)]
        right = members[is_right & (stretch == number)]
        if len(left) >= rules.min_rows:
            yield from _candidate(boxes, left, right, x, em_px, rules)


def _candidate(
    boxes: Boxes, left: Indices, right: Indices, x: float, em_px: float, rules: ColumnRules
) -> Iterator[_Candidate]:
    """One where both sides stand beside each other for enough rows, with a gutter between."""
    span = _shared_span(boxes[left], boxes[right])
    beside = _between(boxes[left], *span), _between(boxes[right], *span)
    rows = min(len(_row_starts(side, em_px)) for side in beside)
    if rows < rules.min_rows:
        return
    gutter_left = float(beside[0][:, 2].max())
    if x - gutter_left >= rules.min_gutter_em * em_px:
        clear = left[boxes[left, 2] <= gutter_left + 0.1 * em_px]
        yield _Candidate(rows, x - gutter_left, clear, right)


def _shared_span(left: Boxes, right: Boxes) -> tuple[float, float]:
    """The heights at which both sides stand beside each other; bottom above top where they never do."""
    return (
        float(max(left[:, 1].min(), right[:, 1].min())),
        float(min(left[:, 3].max(), right[:, 3].max())),
    )


def _between(side: Boxes, top: float, bottom: float) -> Boxes:
    """Fragments whose middle stands between two heights, by their lower edges."""
    centre = (side[:, 1] + side[:, 3]) / 2
    chosen = side[(centre >= top) & (centre <= bottom)]
    ordered: Boxes = chosen[np.argsort(chosen[:, 3], kind="stable")]
    return ordered


def _row_starts(ordered: Boxes, em_px: float) -> Indices:
    """Where a new row begins among fragments ordered by their lower edges."""
    if not len(ordered):
        return np.empty(0, np.intp)
    return np.concatenate([[0], np.flatnonzero(np.diff(ordered[:, 3]) > ROW_STEP_EM * em_px) + 1])


def _are_columns(left: Boxes, right: Boxes, em_px: float, rules: ColumnRules) -> bool:
    if _is_running_text(left, em_px, rules) and _is_running_text(right, em_px, rules):
        return True
    return _aligned_share(left, right, em_px, rules) < rules.aligned_rows_share


def _is_running_text(side: Boxes, em_px: float, rules: ColumnRules) -> bool:
    width = float(side[:, 2].max() - side[:, 0].min())
    if width < rules.min_column_em * em_px:
        return False
    ordered = _between(side, -np.inf, np.inf)
    covered = np.add.reduceat(ordered[:, 2] - ordered[:, 0], _row_starts(ordered, em_px))
    return float((covered >= rules.full_row_share * width).mean()) >= rules.full_rows_share


def _aligned_share(left: Boxes, right: Boxes, em_px: float, rules: ColumnRules) -> float:
    """Of the side with fewer rows, those that stand level with a row of the other side."""
    span = _shared_span(left, right)
    fewer, more = sorted((_row_middles(_between(side, *span), em_px) for side in (left, right)), key=len)
    if not len(fewer):
        return 1.0
    distance = np.abs(fewer[:, None] - more[None, :]).min(axis=1)
    pitch_px = float(np.median(np.diff(fewer))) if len(fewer) > 1 else 0.0
    return float((distance <= max(rules.aligned_em * em_px, rules.aligned_pitch * pitch_px)).mean())


def _row_middles(ordered: Boxes, em_px: float) -> NDArray[np.float64]:
    starts = _row_starts(ordered, em_px)
    if not len(starts):
        return np.empty(0)
    sizes = np.diff([*starts, len(ordered)])
    middles: NDArray[np.float64] = np.add.reduceat((ordered[:, 1] + ordered[:, 3]) / 2, starts) / sizes
    return middles
