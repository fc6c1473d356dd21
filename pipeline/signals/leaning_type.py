"""Lines of type that lean on a straight page: dates and words that were stamped by hand.

Letters are chained to their nearest neighbour on the right. A chain that climbs or falls against the page's own lines
is turned level and cut into slices; of type, all slices begin and end at the same two heights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from pipeline.signals.view import VIEW_PX_PER_MM, Numbers, PageView

LETTER_MM: Final = (1.5, 12.0)
MOST_LETTER_ASPECT: Final = 8.0
"""Width by height: at this size letters of a word often touch."""

MOST_GAP: Final = 1.2
"""Letters of one line stand no further apart, in heights of the higher one, a space included."""

MOST_HEIGHT_RATIO: Final = 1.7
NEIGHBOURS: Final = 10

LEANS_DEG: Final = (4.0, 42.0)
"""Lines that lean less are seldom more than badly set; more than this is a label of an axis or a vertical text."""

LEAST_LETTERS: Final = 4
LEAST_LENGTH: Final = 5.0
"""In heights of the line."""

LENGTH_MM: Final = (15.0, 90.0)
"""Shorter leaning pieces are formulas and fragments; stamps are no longer."""

MOST_LEVEL: Final = 0.55
LEVEL: Final = 0.12
"""Where the lower ends of more slices than that lie on one level line, within this share of the height, the letters
are small and capital ones that stand straight: "Change:" falls from its C to its g."""

SLICE: Final = 0.5
UNEVEN: Final = 0.2
"""Wheels of a date stamp stand up to this much too high or low. Slices and this are in heights of the line."""

FILLED: Final = (0.2, 0.6)
LEAST_STROKES: Final = 0.9
"""Strokes that cross half the height, for each height of length: frames and bars have fewer."""

ALONE: Final = 0.8
"""Share of the ink in the line's band, drawn out by a height on both sides, that is its own."""

MOST_LINES: Final = 6
"""Of a stamp. More that lean the same way belong to a page that does not lie flat."""

SEARCH_DEG: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaningLine:
    """``lean_deg`` is clockwise against the page's own lines; ``evenness`` the share of slices, 0 to 1, that begin and
    end where the line does. The box is in view pixels."""

    lean_deg: float
    evenness: float
    left_px: int
    top_px: int
    right_px: int
    bottom_px: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letters:
    """Connected strokes of the size of letters; ``numbers`` are their labels."""

    labels: np.ndarray
    numbers: np.ndarray
    left: Numbers
    top: Numbers
    width: Numbers
    height: Numbers

    @property
    def middles(self) -> tuple[Numbers, Numbers]:
        return self.left + self.width / 2, self.top + self.height / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    members: np.ndarray
    slope_deg: float
    length_px: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterChains:
    """All letters of a page in their lines, straight or not. ``page_deg`` is the slope of the page's own lines: the
    median, weighted by length; 0 where there are none."""

    letters: _Letters
    chains: tuple[_Chain, ...]
    page_deg: float


def chain_letters(view: PageView) -> LetterChains:
    letters = _letters(view)
    chains = _chains(letters)
    return LetterChains(letters=letters, chains=chains, page_deg=_page_deg(chains))


def find_leaning_lines(view: PageView, on_page: LetterChains) -> tuple[LeaningLine, ...]:
    """The most even first. Type on its own, at least five times as long as it is high."""
    letters, page_deg = on_page.letters, on_page.page_deg
    found = []
    for chain in on_page.chains:
        lean_deg = abs(chain.slope_deg - page_deg)
        if len(chain.members) >= LEAST_LETTERS and LEANS_DEG[0] / 2 <= lean_deg <= LEANS_DEG[1]:
            line = _levelled(letters, chain, page_deg, view)
            if line is not None:
                found.append(line)
    if max((_alike(line, found) for line in found), default=0) > MOST_LINES:
        return ()
    return tuple(sorted(found, key=lambda line: -line.evenness))


def _alike(line: LeaningLine, lines: list[LeaningLine]) -> int:
    return sum(line.lean_deg * other.lean_deg > 0 for other in lines)


def _letters(view: PageView) -> _Letters:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(view.ink)
    least, most = (side * VIEW_PX_PER_MM for side in LETTER_MM)
    left, top, width, height, _ = stats.T.astype(np.float64)
    fits = (height >= least) & (height <= most) & (width <= MOST_LETTER_ASPECT * height)
    fits[0] = False  # the background
    numbers = np.flatnonzero(fits)
    return _Letters(
        labels=labels,
        numbers=numbers,
        left=left[numbers],
        top=top[numbers],
        width=width[numbers],
        height=height[numbers],
    )


def _chains(letters: _Letters) -> tuple[_Chain, ...]:
    if len(letters.numbers) < LEAST_LETTERS:
        return ()
    one, other = _right_neighbours(letters)
    size = len(letters.numbers)
    links = coo_matrix((np.ones(len(one)), (one, other)), shape=(size, size))
    _, owners = connected_components(links, directed=False)
    order = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    return tuple(_measured_chains(letters, np.split(order, starts[1:])))


def _right_neighbours(letters: _Letters) -> tuple[np.ndarray, np.ndarray]:
    """Pairs: a letter, and the nearest one of about its height on its right, if there is any."""
    x, y = letters.middles
    right = letters.left + letters.width
    tree = cKDTree(np.stack([letters.left, y], axis=1))
    _, near = tree.query(np.stack([right, y], axis=1), k=min(NEIGHBOURS, len(x)))
    one, other = np.repeat(np.arange(len(x)), near.shape[1]), near.ravel()
    higher = np.maximum(letters.height[one], letters.height[other])
    lower = np.minimum(letters.height[one], letters.height[other])
    gap, across, down = letters.left[other] - right[one], x[other] - x[one], np.abs(y[other] - y[one])
    is_next = (gap > -0.5 * higher) & (gap < MOST_GAP * higher) & (higher < MOST_HEIGHT_RATIO * lower)
    is_next &= (across > 0) & (down < np.tan(np.deg2rad(LEANS_DEG[1])) * across)
    one, other, cost = one[is_next], other[is_next], (np.maximum(gap, 0) + 2 * down)[is_next]
    order = np.lexsort((cost, one))
    _, firsts = np.unique(one[order], return_index=True)
    return one[order][firsts], other[order][firsts]


def _measured_chains(letters: _Letters, groups: list[np.ndarray]) -> Iterator[_Chain]:
    """Those that are long enough to have a slope."""
    x, y = letters.middles
    for members in groups:
        length = float((letters.left + letters.width)[members].max() - letters.left[members].min())
        if len(members) >= 2 and length >= LEAST_LENGTH / 2 * float(np.median(letters.height[members])):
            slope = np.polyfit(x[members], y[members], 1, w=letters.width[members])[0]
            yield _Chain(members=members, slope_deg=float(np.rad2deg(np.arctan(slope))), length_px=length)


def _page_deg(chains: tuple[_Chain, ...]) -> float:
    if not chains:
        return 0.0
    ordered = sorted(chains, key=lambda chain: chain.slope_deg)
    reached = np.cumsum([chain.length_px for chain in ordered])
    return ordered[int(np.searchsorted(reached, reached[-1] / 2))].slope_deg


def _levelled(letters: _Letters, chain: _Chain, page_deg: float, view: PageView) -> LeaningLine | None:
    """The chain as a line of type; None where it is none or does not stand alone."""
    members = chain.members
    left, top = int(letters.left[members].min()), int(letters.top[members].min())
    right = int((letters.left + letters.width)[members].max())
    bottom = int((letters.top + letters.height)[members].max())
    own = np.isin(letters.labels[top:bottom, left:right], letters.numbers[members])
    ys, xs = (positions.astype(np.float64) for positions in np.nonzero(own))
    turn_deg = _best_turn_deg(xs, ys, chain.slope_deg)
    along, across = turned_level(xs, ys, turn_deg)
    evenness, start, end = _evenness(along, across)
    lean_deg = turn_deg - page_deg
    if not (LEANS_DEG[0] <= abs(lean_deg) <= LEANS_DEG[1]) or not _is_type(along, across, start, end):
        return None
    if _level_share(*turned_level(xs, ys, page_deg), end - start + 1) > MOST_LEVEL:
        return None
    band = (float(along.min()), float(along.max()), start, end)
    if not _is_alone(view, (left, top, right, bottom), band, turn_deg, len(xs)):
        return None
    return LeaningLine(
        lean_deg=lean_deg, evenness=evenness, left_px=left, top_px=top, right_px=right, bottom_px=bottom
    )


def _best_turn_deg(xs: Numbers, ys: Numbers, slope_deg: float) -> float:
    """The turn near ``slope_deg`` at which the line is least high."""
    turns = slope_deg + np.arange(-SEARCH_DEG, SEARCH_DEG + 1)
    heights = [np.ptp(np.percentile(turned_level(xs, ys, turn)[1], [3, 97])) for turn in turns]
    return float(turns[int(np.argmin(heights))])


def turned_level(xs: Numbers, ys: Numbers, turn_deg: float) -> tuple[Numbers, Numbers]:
    """Positions along and across a line of that slope (clockwise), as if it were level."""
    cosine, sine = np.cos(np.deg2rad(turn_deg)), np.sin(np.deg2rad(turn_deg))
    return xs * cosine + ys * sine, ys * cosine - xs * sine


def _evenness(along: Numbers, across: Numbers) -> tuple[float, float, float]:
    """The share of slices that begin and end where most do, and those two heights."""
    tops, ends = _sliced(along, across, float(np.ptp(np.percentile(across, [3, 97]))))
    start, end = float(np.median(tops)), float(np.median(ends))
    tolerance = max(UNEVEN * (end - start + 1), 1.5)
    even = (np.abs(tops - start) <= tolerance) & (np.abs(ends - end) <= tolerance)
    return float(even.mean()), start, end


def _level_share(along: Numbers, across: Numbers, height: float) -> float:
    """The largest share of slices that end at one height."""
    _, ends = _sliced(along, across, height)
    near = np.abs(ends[:, None] - ends[None]) <= max(LEVEL * height, 1.0)
    return float(near.mean(axis=1).max())


def _sliced(along: Numbers, across: Numbers, height: float) -> tuple[Numbers, Numbers]:
    """Where the ink of each slice begins and ends, across the line; slices without ink are left out."""
    slices = max(2, int(np.ptp(along) / max(SLICE * height, 1.0)))
    owners = ((along - along.min()) / (np.ptp(along) + 1e-9) * slices).astype(int).clip(0, slices - 1)
    tops, ends = np.full(slices, np.inf), np.full(slices, -np.inf)
    np.minimum.at(tops, owners, across)
    np.maximum.at(ends, owners, across)
    filled = np.isfinite(tops)
    return tops[filled], ends[filled]


def _is_type(along: Numbers, across: Numbers, start: float, end: float) -> bool:
    height, length = end - start + 1, float(np.ptp(along))
    least_px, most_px = (side * VIEW_PX_PER_MM for side in LENGTH_MM)
    if (
        height < LETTER_MM[0] * VIEW_PX_PER_MM
        or not max(least_px, LEAST_LENGTH * height) <= length <= most_px
    ):
        return False
    crossing = np.zeros(int(length) + 2, np.int8)
    middle = np.abs(across - (start + end) / 2) <= max(1.0, height / 8)
    crossing[(along[middle] - along.min()).astype(int)] = 1
    strokes = int((np.diff(crossing, prepend=0) == 1).sum())
    return (
        FILLED[0] <= len(along) / (length * height) <= FILLED[1]
        and strokes >= LEAST_STROKES * length / height
    )


def _is_alone(
    view: PageView,
    bounds: tuple[int, int, int, int],
    band: tuple[float, float, float, float],
    turn_deg: float,
    own_px: int,
) -> bool:
    left, top, right, bottom = bounds
    first, last, start, end = band
    reach = end - start
    pad = round(reach) + 1
    y0, x0 = max(top - pad, 0), max(left - pad, 0)
    ys, xs = np.nonzero(view.ink[y0 : bottom + pad, x0 : right + pad])
    along, across = turned_level(
        (xs + (x0 - left)).astype(np.float64), (ys + (y0 - top)).astype(np.float64), turn_deg
    )
    inside = (along >= first - reach) & (along <= last + reach) & (across >= start) & (across <= end)
    return int(inside.sum()) * ALONE <= own_px
