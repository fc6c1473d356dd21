"""Handwriting: ink whose shape is a hand's and which no word reads with confidence.

A small network (one hidden layer) judges each group of strokes by the numbers of ``pipeline.signals.ink_groups``;
groups that stand together are judged together. Its weights are in ``handwriting.json``; docs/handwriting.md says
what they were learned from and where they fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from pipeline.signals.confidence import ConfidenceSummary
from pipeline.signals.coverage import Coverage
from pipeline.signals.ink_groups import SHAPE_NAMES, InkGroup, ShapeMeter, find_groups, find_strokes
from pipeline.signals.rules import Rules
from pipeline.signals.stamps import Stamp
from pipeline.signals.view import Numbers, PageView

WEIGHTS_FILE: Final = Path(__file__).with_name("handwriting.json")
SURE_CONFIDENCE: Final = 0.85
"""Words read with this confidence need no second look, whoever wrote them."""

MOST_SURE_SHARE: Final = 0.5
"""Groups with more of their ink in such words are not judged; that also spares nearly all the cost on print."""

MOST_JUDGED: Final = 400
"""The largest groups are judged; only noise and pictures have more."""

AREA_GAP: Final = 0.7
"""Groups of one area stand no further apart, in text heights: the words of a note, the strokes of a drawing."""

LEAST_AREA_INK: Final = 1.2
"""Areas with less ink than this, in squares of the text height, are ticks and specks."""

LEAST_PROBABILITY: Final = 0.5
CERTAIN_STAMP: Final = 0.8

TYPE_IRREGULARITY: Final = 0.2
"""Stroke heights of type seldom spread further than this (median absolute deviation over median)."""

HAND_IRREGULARITY: Final = 0.4
"""From here on strokes are written, not set: notarial hands of 1914 measure 0.3 to 0.6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """``mean`` and ``scale``: what the shape's numbers are standardised by, an entry a name. ``hidden`` and
    ``hidden_bias``: (names, units) and (units). ``output`` and ``output_bias``: (units) and a number."""

    mean: Numbers
    scale: Numbers
    hidden: Numbers
    hidden_bias: Numbers
    output: Numbers
    output_bias: float

    def probabilities(self, shapes: Numbers) -> Numbers:
        """That each row of ``shapes`` is handwriting."""
        units = np.maximum((shapes - self.mean) / self.scale @ self.hidden + self.hidden_bias, 0.0)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(units @ self.output + self.output_bias, -30, 30))))


@dataclass(frozen=True, slots=True, kw_only=True)
class HandwrittenArea:
    """Groups of ink that stand together. ``probability`` that a hand wrote them, weighted by ink; ``ink`` in squares
    of the text height (a printed letter has about 0.2); the box is in view pixels."""

    probability: float
    ink: float
    left_px: int
    top_px: int
    right_px: int
    bottom_px: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handwriting:
    """``areas`` likely written by hand, most likely first, and those that are ``unlikely`` to be. ``probability`` is
    that of the page's likeliest area, written or not; ``ink`` is what ``areas`` have together."""

    probability: float
    ink: float
    areas: tuple[HandwrittenArea, ...]
    unlikely: tuple[HandwrittenArea, ...] = ()


NO_HANDWRITING: Final = Handwriting(probability=0.0, ink=0.0, areas=())


def find_handwriting(view: PageView, rules: Rules, stamps: Sequence[Stamp] = ()) -> Handwriting:
    """Looks only at ink that was not read with confidence: clean print costs next to nothing, and a note that
    Tesseract reads well is no reason to look again. What lies within a certain stamp is the stamp's."""
    picture = find_strokes(view, rules)
    sure = _sure_mask(view)
    for stamp in stamps:
        if stamp.strength >= CERTAIN_STAMP:
            sure[
                round(stamp.top_px) : round(stamp.bottom_px) + 1,
                round(stamp.left_px) : round(stamp.right_px) + 1,
            ] = True
    doubtful = [group for group in find_groups(picture, view) if not _is_sure(group, picture.ink, sure)]
    largest = sorted(doubtful, key=lambda group: -group.ink_px)[:MOST_JUDGED]
    if not largest:
        return NO_HANDWRITING
    meter = ShapeMeter(picture, view)
    probabilities = network().probabilities(np.array([meter.shape(group) for group in largest]))
    return handwriting_of(area for area in _areas(largest, probabilities, view) if area.ink >= LEAST_AREA_INK)


def handwriting_of(areas: Iterable[HandwrittenArea]) -> Handwriting:
    ordered = sorted(areas, key=lambda area: -area.probability)
    written = [area for area in ordered if area.probability >= LEAST_PROBABILITY]
    return Handwriting(
        probability=max((area.probability for area in ordered), default=0.0),
        ink=sum(area.ink for area in written),
        areas=tuple(written),
        unlikely=tuple(ordered[len(written) :]),
    )


@cache
def network() -> Network:
    stored = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    if tuple(stored["names"]) != SHAPE_NAMES:
        raise ValueError(f"{WEIGHTS_FILE.name} was trained on other shapes; train it again")
    return Network(
        mean=np.array(stored["mean"]),
        scale=np.array(stored["scale"]),
        hidden=np.array(stored["hidden"]),
        hidden_bias=np.array(stored["hidden_bias"]),
        output=np.array(stored["output"]),
        output_bias=float(stored["output_bias"]),
    )


def _sure_mask(view: PageView) -> np.ndarray:
    """True within words read with confidence; those of a text layer have none and are sure."""
    mask = np.zeros(view.ink.shape, np.bool_)
    for word, box in zip(view.words, view.word_boxes, strict=True):
        if word.confidence is None or word.confidence >= SURE_CONFIDENCE:
            left, top, right, bottom = np.rint(box).astype(int).clip(0).tolist()
            mask[top:bottom, left:right] = True
    return mask


def _is_sure(group: InkGroup, ink: np.ndarray, sure: np.ndarray) -> bool:
    own = ink[group.window] > 0
    return bool((own & sure[group.window]).sum() > MOST_SURE_SHARE * own.sum())


def _areas(groups: Sequence[InkGroup], probabilities: Numbers, view: PageView) -> list[HandwrittenArea]:
    reach = AREA_GAP * view.text_height_px / 2
    canvas = np.zeros((view.height_px, view.width_px), np.uint8)
    for group in groups:
        top, left = int(max(group.top_px - reach, 0)), int(max(group.left_px - reach, 0))
        canvas[top : int(group.bottom_px + reach) + 1, left : int(group.right_px + reach) + 1] = 1
    _, labels = cv2.connectedComponents(canvas)
    middles = [((g.top_px + g.bottom_px) // 2, (g.left_px + g.right_px) // 2) for g in groups]
    owners = np.array([labels[y, x] for y, x in middles])
    ink_px = np.array([group.ink_px for group in groups], dtype=np.float64)
    return [
        _area([groups[index] for index in members], probabilities[members], ink_px[members], view)
        for members in (np.flatnonzero(owners == owner) for owner in np.unique(owners))
    ]


def _area(
    groups: Sequence[InkGroup], probabilities: Numbers, ink_px: Numbers, view: PageView
) -> HandwrittenArea:
    return HandwrittenArea(
        probability=float((probabilities * ink_px).sum() / ink_px.sum()),
        ink=float(ink_px.sum()) / view.text_height_px**2,
        left_px=min(group.left_px for group in groups),
        top_px=min(group.top_px for group in groups),
        right_px=max(group.right_px for group in groups),
        bottom_px=max(group.bottom_px for group in groups),
    )


def handwriting_likeness(coverage: Coverage, confidence: ConfidenceSummary | None) -> float | None:
    """0 to 1: the geometric mean of how badly the ink was read and of how far its strokes are from type.

    Badly read: the share of unsure characters, or of text-like ink without a word, whichever is larger. None
    where there are too few strokes to tell.
    """
    if coverage.uncovered_share is None or coverage.irregularity is None:
        return None
    badly_read = max(confidence.unsure_share if confidence is not None else 0.0, coverage.uncovered_share)
    unlike_type = (coverage.irregularity - TYPE_IRREGULARITY) / (HAND_IRREGULARITY - TYPE_IRREGULARITY)
    return sqrt(badly_read * min(1.0, max(0.0, unlike_type)))
