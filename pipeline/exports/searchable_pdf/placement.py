"""Where each word's text runs on the page as delivered: over its print, turned by quarters as the print is.

On a skewed page each word lies level on its own skewed print. Poppler takes a word whose letters rise by more than half
a point for several, and would not find it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.exports.document import Json
from pipeline.exports.page_parts import is_followed_by_space, words_of
from pipeline.rows import is_right_to_left

_DIRECTIONS: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEAST_SIDE_PX: Final = 1.0
SIDEWAYS_RATIO: Final = 1.5
SIDEWAYS_CHARS: Final = 4
"""A line that is so much taller than wide, and of so many letters, runs up or down the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedText:
    """``text`` in the order in which it stands along the baseline, which begins at (``x``, ``y``) and runs over
    (``along_x``, ``along_y``); the letters rise over (``up_x``, ``up_y``). In pixels of the page as delivered, origin
    top left."""

    text: str
    x: float
    y: float
    along_x: float
    along_y: float
    up_x: float
    up_y: float


def placed_texts(page: Json) -> Iterator[PlacedText]:
    """Every word of the page, the spaces between words with them."""
    for line in page["lines"]:
        quarter_turns = _quarter_turns(page, line)
        words = list(zip(words_of(line), is_followed_by_space(line), strict=True))
        if is_right_to_left(line["text"]):
            words.reverse()
        for word, has_space in words:
            if word["text"]:
                yield _placed(word, has_space, quarter_turns, page["skew_deg"])


def _placed(word: Json, has_space: bool, quarter_turns: int, skew_deg: float) -> PlacedText:
    left, top, right, bottom = word["box"]
    width, height = _extents(right - left, bottom - top, quarter_turns, skew_deg)
    cos, sin = _DIRECTIONS[quarter_turns]
    along, up = (width * cos, width * sin), (height * sin, -height * cos)
    x = (left + right) / 2 - along[0] / 2 - up[0] / 2
    y = (top + bottom) / 2 - along[1] / 2 - up[1] / 2
    text = in_visual_order(word["text"])
    if has_space:
        share = 1 / len(text)
        if is_right_to_left(text):
            x, y, text = x - share * along[0], y - share * along[1], f" {text}"
        else:
            text = f"{text} "
        along = along[0] * (1 + share), along[1] * (1 + share)
    return PlacedText(text=text, x=x, y=y, along_x=along[0], along_y=along[1], up_x=up[0], up_y=up[1])


def _quarter_turns(page: Json, line: Json) -> int:
    """Clockwise turns of the line's reading direction from the one to the right."""
    turns = -int(page["rotation_deg"]) // 90
    left, top, right, bottom = line["box"]
    width, height = right - left, bottom - top
    if turns % 2:
        width, height = height, width
    if height <= SIDEWAYS_RATIO * width or len(line["text"]) < SIDEWAYS_CHARS:
        return turns % 4
    return (turns + (1 if _runs_down(page, line["words"], line["text"]) else -1)) % 4


def _runs_down(page: Json, words: Sequence[Json], text: str) -> bool:
    """On the upright page. A line of one word runs up, as on a book's spine, unless its letters are those of a script
    that is set in columns."""
    if len(words) < 2:
        wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
        return 2 * wide > len(text)
    first, last = (_centre(word["box"]) for word in (words[0], words[-1]))
    turn = math.radians(page["rotation_deg"])
    x, y = last[0] - first[0], last[1] - first[1]
    return x * math.sin(turn) + y * math.cos(turn) > 0


def _centre(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _extents(box_width: float, box_height: float, quarter_turns: int, skew_deg: float) -> tuple[float, float]:
    """Of the word itself, along and across its baseline, whose upright box is what is known of it."""
    if quarter_turns % 2:
        box_width, box_height = box_height, box_width
    skew = math.radians(abs(skew_deg))
    sin, cos = math.sin(skew), math.cos(skew)
    square = cos**2 - sin**2
    width = (box_width * cos - box_height * sin) / square
    height = (box_height * cos - box_width * sin) / square
    return max(width, LEAST_SIDE_PX), max(height, LEAST_SIDE_PX)


def in_visual_order(word: str) -> str:
    """The word's letters from left to right as they stand on the page: a PDF's text is placed so whatever its script,
    and readers put it back in order. Numbers and Latin letters within a Hebrew or Arabic word keep theirs."""
    if not is_right_to_left(word):
        return word
    runs: list[list[str]] = []
    was_forward = False
    for letter in word:
        is_forward = unicodedata.bidirectional(letter) in ("L", "EN", "AN")
        if is_forward and was_forward:
            runs[-1].append(letter)
        else:
            runs.append([letter])
        was_forward = is_forward
    return "".join("".join(run) for run in reversed(runs))
