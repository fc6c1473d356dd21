"""What becomes of words that a second look at a page finds, and what that second look is given to see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from PIL import Image, ImageDraw

from models.geometry import Box
from models.text import Line, Word
from pipeline.reading_order import lines_from_words


def mean_confidence(lines: Sequence[Line]) -> float:
    """Mean word confidence, 0 to 1; 0 where nothing was read."""
    known = [w.confidence for line in lines for w in line.words if w.confidence is not None]
    return fmean(known) if known else 0.0


def without_words(grey: Image.Image, words: Iterable[Word]) -> Image.Image:
    """A copy in which the words are painted over with the paper's tone."""
    copy = grey.copy()
    paper = copy.reduce(max(1, min(16, min(copy.size)))).getextrema()[1]
    draw = ImageDraw.Draw(copy)
    for word in words:
        box = word.box
        draw.rectangle((box.left - 1, box.top - 1, box.right + 1, box.bottom + 1), fill=paper)
    return copy


def sure_words(lines: Iterable[Line], least_confidence: float, *, left: int, top: int) -> list[Word]:
    """Words with a letter or digit and enough confidence, moved from a crop at (``left``, ``top``) to the
    page."""
    return [
        replace(word, box=_moved(word.box, left, top))
        for line in lines
        for word in line.words
        if word.confidence is not None and word.confidence >= least_confidence
        if any(character.isalnum() for character in word.text)
    ]


def merged(lines: Sequence[Line], found: Sequence[Word]) -> tuple[Line, ...]:
    """Found words as lines of their own behind ``lines``; no paragraph numbers, so that geometry orders
    all."""
    if not found:
        return tuple(lines)
    own = [replace(line, paragraph_number=None) for line in lines]
    return (*own, *lines_from_words(found))


def scaled(line: Line, factor: float) -> Line:
    words = tuple(replace(word, box=word.box.scaled(factor)) for word in line.words)
    return replace(line, box=line.box.scaled(factor), words=words)


def _moved(box: Box, dx: float, dy: float) -> Box:
    return Box(box.left + dx, box.top + dy, box.right + dx, box.bottom + dy)
