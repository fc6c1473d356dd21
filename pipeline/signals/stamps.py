"""Stamps: coloured ink in a ring, an oval or a frame; of any colour rings, and frames and lines of type that lean.

Rings and colours are looked for at half the view (49 dpi on A4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from pipeline.signals.leaning_frames import LeaningFrame, find_leaning_frames
from pipeline.signals.leaning_type import LeaningLine, chain_letters, find_leaning_lines
from pipeline.signals.rules import Rules
from pipeline.signals.view import VIEW_PX_PER_MM, Numbers, PageView, Pixels

PX_PER_MM: Final = VIEW_PX_PER_MM / 2
DIRECTIONS: Final = 72
SIDES_MM: Final = (12.0, 90.0)
"""Smaller coloured rings are icons and bullets more often than seals."""

BLACK_RING_MM: Final = (15.0, 60.0)
LEAST_RULE_MM: Final = 20.0
"""A ring of 60 mm runs straight, within the thickness of a pen, for 18 mm."""

COLOUR_GAP_MM: Final = 5.0
"""Letters and rim of one stamp are closer to each other than this."""

MOST_FILLED: Final = 0.6
"""Stamps are strokes: logos, photographs and filled boxes cover more of their outline."""

MOST_FILLED_BLACK: Final = 0.5
"""The same for shapes without colour, where printed emblems with heavy strokes abound."""

MOST_OUTSIDE: Final = 0.15
"""Share of the ink that may lie beyond the ring: letters and signatures that cross it."""

MOST_OVAL: Final = 2.0
"""Oval seals are seldom longer than twice their width."""

OVAL_LEAST: Final = 0.8
"""Two coloured digits, stretched to a square, have ink in more than half of the directions."""

TILT_DEG: Final = 2.0
"""A frame that leans this much on a straightened page was put there by hand."""

LEAST_TILTED_MM: Final = 20.0

STRAIGHT_FRAME_LEAST: Final = 0.95
"""Printed boxes and logos are straight too, so a straight frame counts only when nearly whole on every
side."""

EVEN_LINE: Final = 0.8
EVEN_STRENGTH: Final = 0.9
"""No line of print or handwriting was this even at that lean; ``EVEN_STRENGTH`` is what such a line is worth."""

SLIGHT_LEAN_DEG: Final = 5.0
SLIGHT_LEAN_COST: Final = 0.15
"""Lines of a page that does not lie flat lean too, seldom more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """``strength`` is the share of the ring's or oval's 72 directions, or of the frame's weakest side, that carries
    ink; for a frame that leans, of all its sides; for a line of type that leans, twice as steep as its evenness.
    The box is in view pixels."""

    strength: float
    left_px: float
    top_px: float
    right_px: float
    bottom_px: float


@dataclass(frozen=True, slots=True)
class _Blob:
    """Ink that hangs together, with its pixels' coordinates within the half view."""

    left: int
    top: int
    width: int
    height: int
    xs: Numbers
    ys: Numbers

    @property
    def filled_share(self) -> float:
        return len(self.xs) / (self.width * self.height)


def find_stamps(view: PageView, rules: Rules) -> tuple[Stamp, ...]:
    """Everything at least faintly like a stamp, strongest first, each place once."""
    if min(view.width_px, view.height_px) < SIDES_MM[0] * VIEW_PX_PER_MM:
        return ()
    found = [_as_stamp(blob, ring_share(blob)) for blob in _black_blobs(view, rules)]
    if view.rgb is not None:
        for mask in coloured_inks(view.rgb):
            found += [
                _as_stamp(blob, max(ring_share(blob), oval_share(blob), frame_share(blob)))
                for blob in _coloured_blobs(mask)
            ]
    found += _leaning_stamps(view)
    kept: list[Stamp] = []
    for stamp in sorted(found, key=lambda stamp: -stamp.strength):
        if stamp.strength > 0 and not any(_same_place(stamp, stronger) for stronger in kept):
            kept.append(stamp)
    return tuple(kept)


def _leaning_stamps(view: PageView) -> list[Stamp]:
    on_page = chain_letters(view)
    lines = find_leaning_lines(view, on_page)
    frames = find_leaning_frames(view, on_page.page_deg)
    return [
        *(_as_leaning_stamp(line, _line_strength(line)) for line in lines),
        *(_as_leaning_stamp(frame, frame.wholeness) for frame in frames),
    ]


def _line_strength(line: LeaningLine) -> float:
    cost = SLIGHT_LEAN_COST if abs(line.lean_deg) < SLIGHT_LEAN_DEG else 0.0
    return min(1.0, max(0.0, EVEN_STRENGTH + 2 * (line.evenness - EVEN_LINE) - cost))


def _same_place(one: Stamp, other: Stamp) -> bool:
    """The middle of one lies within the other: the same ring seen as black and as coloured ink."""
    x, y = (one.left_px + one.right_px) / 2, (one.top_px + one.bottom_px) / 2
    return other.left_px <= x <= other.right_px and other.top_px <= y <= other.bottom_px


def coloured_inks(rgb: Pixels) -> tuple[Pixels, ...]:
    """Masks of red, blue-to-violet and green ink on the half view, measured against the paper's own colour
    (CIELAB)."""
    half = cv2.resize(rgb, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    lightness, a, b = cv2.split(cv2.cvtColor(half, cv2.COLOR_RGB2LAB))
    sample = np.s_[::4, ::4]
    paper = lightness[sample] >= np.percentile(lightness[sample], 60)
    dark = lightness < float(np.median(lightness[sample][paper])) - 12
    red_green = a.astype(np.int16) - int(np.median(a[sample][paper]))
    yellow_blue = b.astype(np.int16) - int(np.median(b[sample][paper]))
    masks = (
        dark & (red_green > 14) & (yellow_blue > -14),
        dark & (((yellow_blue < -12) & (red_green <= 14)) | ((yellow_blue < -10) & (red_green > 6))),
        dark & (red_green < -12) & (yellow_blue > -8),
    )
    return tuple(mask.astype(np.uint8) for mask in masks)


def ring_share(blob: _Blob) -> float:
    """The share of 72 directions in which ink lies on the circle that fits the blob's outline; 0 for other
    shapes."""
    if blob.filled_share > MOST_FILLED or not 0.7 <= blob.width / blob.height <= 1.43:
        return 0.0
    circle = _outline_circle(blob)
    if circle is None:
        return 0.0
    x, y, radius = circle
    distance = np.hypot(blob.xs - x, blob.ys - y)
    if (distance > 1.08 * radius + 1).mean() > MOST_OUTSIDE:
        return 0.0
    on_ring = np.abs(distance - radius) <= max(1.5, 0.06 * radius)
    return len(np.unique(_directions(blob.xs[on_ring] - x, blob.ys[on_ring] - y))) / DIRECTIONS


def oval_share(blob: _Blob) -> float:
    """The share of a ring once the smallest turned rectangle around the blob is stretched to a square; 0 below
    ``OVAL_LEAST``, and for longer and filled shapes."""
    points = np.stack([blob.xs, blob.ys], axis=1).astype(np.float32)
    (x, y), (width, height), turn_deg = cv2.minAreaRect(points)
    side = max(width, height)
    if side > MOST_OVAL * min(width, height) or len(blob.xs) > MOST_FILLED * width * height:
        return 0.0
    cosine, sine = np.cos(np.deg2rad(turn_deg)), np.sin(np.deg2rad(turn_deg))
    along = ((blob.xs - x) * cosine + (blob.ys - y) * sine) * side / width
    across = ((blob.ys - y) * cosine - (blob.xs - x) * sine) * side / height
    size = round(side)
    share = ring_share(_Blob(0, 0, size, size, along + side / 2, across + side / 2))
    return share if share >= OVAL_LEAST else 0.0


def frame_share(blob: _Blob) -> float:
    """How completely ink lines the sides of the smallest turned rectangle around the blob."""
    if blob.filled_share > MOST_FILLED:
        return 0.0
    points = np.stack([blob.xs, blob.ys], axis=1).astype(np.float32)
    (x, y), (width, height), turn_deg = cv2.minAreaRect(points)
    cosine, sine = np.cos(np.deg2rad(turn_deg)), np.sin(np.deg2rad(turn_deg))
    along = (blob.xs - x) * cosine + (blob.ys - y) * sine
    across = (blob.ys - y) * cosine - (blob.xs - x) * sine
    sides = [
        _side_share(along[distance > depth / 2 - 1.3 * PX_PER_MM], length)
        for distance, along, length, depth in (
            (across, along, width, height),
            (-across, along, width, height),
            (along, across, height, width),
            (-along, across, height, width),
        )
    ]
    tilt_deg = min(turn_deg % 90, 90 - turn_deg % 90)
    leans = tilt_deg >= TILT_DEG and max(blob.width, blob.height) >= LEAST_TILTED_MM * PX_PER_MM
    if leans:
        return float(np.mean(sides)) if min(sides) >= 0.6 else 0.0
    return float(min(sides)) if min(sides) >= STRAIGHT_FRAME_LEAST else 0.0


def _side_share(positions: Numbers, length: float) -> float:
    bins = max(6, int(length / PX_PER_MM))
    places = ((positions + length / 2) / max(length, 1.0) * bins).astype(int).clip(0, bins - 1)
    return len(np.unique(places)) / bins


def _outline_circle(blob: _Blob) -> tuple[float, float, float] | None:
    """Least-squares circle through the farthest ink in each direction, twice, the second time without
    outliers."""
    x0, y0 = blob.left + blob.width / 2, blob.top + blob.height / 2
    directions = _directions(blob.xs - x0, blob.ys - y0)
    distance = np.hypot(blob.xs - x0, blob.ys - y0)
    order = np.lexsort((distance, directions))
    last = np.flatnonzero(np.diff(directions[order], append=DIRECTIONS))
    xs, ys = blob.xs[order[last]], blob.ys[order[last]]
    if len(xs) < DIRECTIONS // 2:
        return None
    circle = _circle_through(xs, ys)
    if circle is None:
        return None
    off = np.abs(np.hypot(xs - circle[0], ys - circle[1]) - circle[2])
    near = off <= 2 * np.median(off) + 0.5
    return _circle_through(xs[near], ys[near])


def _circle_through(xs: Numbers, ys: Numbers) -> tuple[float, float, float] | None:
    """Kåsa's algebraic least-squares fit in closed form; None for points on one line."""
    u, v = xs - xs.mean(), ys - ys.mean()
    suu, svv, suv = float((u * u).sum()), float((v * v).sum()), float((u * v).sum())
    determinant = suu * svv - suv * suv
    if determinant <= 1e-9 * suu * svv:
        return None
    weights = u * u + v * v
    su, sv = float((u * weights).sum()) / 2, float((v * weights).sum()) / 2
    x, y = (su * svv - sv * suv) / determinant, (sv * suu - su * suv) / determinant
    radius = float(np.sqrt(x * x + y * y + (suu + svv) / len(u)))
    return x + float(xs.mean()), y + float(ys.mean()), radius


def _directions(xs: Numbers, ys: Numbers) -> Numbers:
    turns = (np.arctan2(ys, xs) + np.pi) / (2 * np.pi)
    return np.asarray((turns * DIRECTIONS).astype(int) % DIRECTIONS)


def _black_blobs(view: PageView, rules: Rules) -> list[_Blob]:
    """Large connected strokes once the rules are gone. Short rules stay: the flat parts of a ring look like
    them."""
    length_px = round(LEAST_RULE_MM * VIEW_PX_PER_MM)
    across = cv2.morphologyEx(rules.horizontal, cv2.MORPH_OPEN, np.ones((1, length_px), np.uint8))
    down = cv2.morphologyEx(rules.vertical, cv2.MORPH_OPEN, np.ones((length_px, 1), np.uint8))
    drawn = cv2.dilate(cv2.bitwise_or(across, down), np.ones((3, 3), np.uint8))
    half = cv2.resize(cv2.subtract(view.ink, drawn), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    ink = (half > 60).astype(np.uint8)
    grey = cv2.resize(view.grey, (ink.shape[1], ink.shape[0]), interpolation=cv2.INTER_AREA)
    return [
        blob
        for blob in _blobs(ink, ink, BLACK_RING_MM)
        if max(blob.filled_share, _dark_share(blob, grey)) <= MOST_FILLED_BLACK
    ]


def _dark_share(blob: _Blob, grey: np.ndarray) -> float:
    """How much of the blob's box is as dark as the blob: of solid shapes, the ink mask knows only the
    outline."""
    window = grey[blob.top : blob.top + blob.height, blob.left : blob.left + blob.width]
    own = float(np.median(grey[blob.ys.astype(int), blob.xs.astype(int)]))
    return float((window < (own + float(np.percentile(window, 95))) / 2).mean())


def _coloured_blobs(mask: Pixels) -> list[_Blob]:
    if int(mask.sum()) < 40:
        return []
    reach = 2 * round(COLOUR_GAP_MM * PX_PER_MM / 2) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
    return _blobs(np.asarray(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, kernel), dtype=np.uint8), mask, SIDES_MM)


def _blobs(joined: Pixels, ink: Pixels, sides_mm: tuple[float, float]) -> list[_Blob]:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(joined)
    least, most = (side * PX_PER_MM for side in sides_mm)
    sides = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]]
    fits = (sides.min(axis=1) >= 0.8 * least) & (sides.max(axis=1) >= least) & (sides.max(axis=1) <= most)
    blobs = []
    for label in np.flatnonzero(fits):
        if label == 0:
            continue
        left, top, width, height = (int(value) for value in stats[label, :4])
        window = np.s_[top : top + height, left : left + width]
        ys, xs = np.nonzero((labels[window] == label) & (ink[window] > 0))
        if len(xs) >= 40:
            blobs.append(
                _Blob(left, top, width, height, (xs + left).astype(np.float64), (ys + top).astype(np.float64))
            )
    return blobs


def _as_leaning_stamp(found: LeaningLine | LeaningFrame, strength: float) -> Stamp:
    return Stamp(
        strength=strength,
        left_px=float(found.left_px),
        top_px=float(found.top_px),
        right_px=float(found.right_px),
        bottom_px=float(found.bottom_px),
    )


def _as_stamp(blob: _Blob, strength: float) -> Stamp:
    return Stamp(
        strength=strength,
        left_px=2.0 * blob.left,
        top_px=2.0 * blob.top,
        right_px=2.0 * (blob.left + blob.width),
        bottom_px=2.0 * (blob.top + blob.height),
    )
