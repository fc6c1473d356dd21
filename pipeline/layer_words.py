"""Words out of a PDF's text layer: glyphs joined in the layer's logical order, boxes in pixels.

Everything is turned into the upright frame of the page: the frame in which most of the glyphs stand
upright. Text that runs along the other sides, or slantwise, is kept apart, so that it is never mixed into
the body's lines.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from models.geometry import Box, enclosing_box
from models.text import Word
from pipeline.ports import Glyph, TextLayer

QUARTER_TOLERANCE_DEG: Final = 5.0
"""A baseline within this of a whole quarter turn runs along the page's side; everything else is slanted."""
SPACE_EM: Final = 1.0
"""A gap along the baseline that ends a word although the layer has no space there, in font sizes. pdfium
puts a space wherever a gap is wider than about a third of this, so only table cells and columns need it."""
LINE_STEP_EM: Final = 0.9
"""A step across the baseline, between centres of neighbours, that ends a word (a hyphenated line end)."""

_BULLETS: Final = frozenset("\uf0b7\uf0a7\uf0d8\uf0a8\uf06c\uf06e\uf076\uf0fc\uf0de\uf02d")
"""Symbol and Wingdings bullets, which word processors leave in the private use area."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A clockwise quarter turn of a page of the given size: 0, 90, 180 or 270 degrees."""

    rotation_deg: int
    width_px: float
    height_px: float

    def box(self, box: Box) -> Box:
        match self.rotation_deg:
            case 90:
                return Box(self.height_px - box.bottom, box.left, self.height_px - box.top, box.right)
            case 180:
                return Box(
                    self.width_px - box.right,
                    self.height_px - box.bottom,
                    self.width_px - box.left,
                    self.height_px - box.top,
                )
            case 270:
                return Box(box.top, self.width_px - box.right, box.bottom, self.width_px - box.left)
            case _:
                return box


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWord:
    """A word with its glyphs. ``quarter_turns`` counts the clockwise quarter turns from the baseline of
    the page's body to its own, None for slanted text. ``run`` numbers the layer's own lines."""

    word: Word
    glyphs: tuple[Glyph, ...]
    quarter_turns: int | None
    run: int

    @property
    def is_painted(self) -> bool:
        return all(glyph.is_painted for glyph in self.glyphs)


@dataclass(frozen=True, slots=True, kw_only=True)
class UprightLayer:
    """The layer's words, in its own order. ``rotation_deg`` is the clockwise turn that makes the page
    upright; word and glyph boxes are in pixels of the turned page."""

    rotation_deg: int
    words: tuple[LayerWord, ...]


def upright_layer(layer: TextLayer, width_px: int, height_px: int) -> UprightLayer:
    """``width_px`` and ``height_px`` are those of the delivered page that the layer belongs to."""
    body_quarter = _body_quarter(layer.glyphs)
    rotation_deg = (360 - 90 * body_quarter) % 360
    turn = Turn(rotation_deg, width_px, height_px)
    x_px_per_pt, y_px_per_pt = width_px / layer.width_pt, height_px / layer.height_pt
    words = []
    for run, glyphs in _split(layer.glyphs):
        quarter = _quarter(glyphs[0])
        placed = tuple(_placed(glyph, x_px_per_pt, y_px_per_pt, turn) for glyph in glyphs)
        text = _clean("".join(glyph.text for glyph in glyphs))
        if not text:
            continue
        box = enclosing_box(glyph.box for glyph in placed)
        turns = None if quarter is None else (quarter - body_quarter) % 4
        word = Word(text=text, box=box, confidence=None)
        words.append(LayerWord(word=word, glyphs=placed, quarter_turns=turns, run=run))
    return UprightLayer(rotation_deg=rotation_deg, words=tuple(words))


def _quarter(glyph: Glyph) -> int | None:
    nearest = round(glyph.angle_deg / 90)
    return nearest % 4 if abs(glyph.angle_deg - 90 * nearest) <= QUARTER_TOLERANCE_DEG else None


def _body_quarter(glyphs: Sequence[Glyph]) -> int:
    quarters = Counter(_quarter(glyph) for glyph in glyphs if not glyph.is_generated)
    quarters.pop(None, None)
    return quarters.most_common(1)[0][0] or 0 if quarters else 0


def _placed(glyph: Glyph, x_px_per_pt: float, y_px_per_pt: float, turn: Turn) -> Glyph:
    box = glyph.box
    scaled = Box(
        box.left * x_px_per_pt, box.top * y_px_per_pt, box.right * x_px_per_pt, box.bottom * y_px_per_pt
    )
    return Glyph(
        text=glyph.text,
        box=turn.box(scaled),
        font_size_pt=glyph.font_size_pt,
        angle_deg=glyph.angle_deg,
        is_painted=glyph.is_painted,
        font_number=glyph.font_number,
    )


def _clean(text: str) -> str:
    """NFC, ligatures and Arabic presentation forms as their letters, bullets of symbol fonts as bullets."""
    if text.isascii():
        return text
    spelt = "".join(
        unicodedata.normalize("NFKC", c) if "\ufb00" <= c <= "\ufdff" or "\ufe70" <= c <= "\ufefe" else c
        for c in text
        if c not in "\u200b\u2060\ufeff\u00ad"
    )
    return "•" if spelt in _BULLETS else unicodedata.normalize("NFC", spelt)


def _split(glyphs: Sequence[Glyph]) -> Iterator[tuple[int, list[Glyph]]]:
    """Glyphs without a space, a line break, a turn or a jump between them, and the number of their line."""
    word: list[Glyph] = []
    run = 0
    for glyph in glyphs:
        if glyph.text.isspace():
            if word:
                yield run, word
                word = []
            run += glyph.text == "\n"
            continue
        if word and _breaks(word[-1], glyph):
            yield run, word
            word = []
        word.append(glyph)
    if word:
        yield run, word


def _breaks(before: Glyph, after: Glyph) -> bool:
    if before.angle_deg != after.angle_deg or before.is_painted != after.is_painted:
        return True
    quarter = _quarter(after)
    if quarter is None:
        return False
    one, two = before.box, after.box
    along = max(two.left - one.right, one.left - two.right)
    across = abs(two.top + two.bottom - one.top - one.bottom) / 2
    if quarter % 2:
        along, across = (
            max(two.top - one.bottom, one.top - two.bottom),
            abs(two.left + two.right - one.left - one.right) / 2,
        )
    size_pt = max(before.font_size_pt, after.font_size_pt, one.height, two.height)
    return along > SPACE_EM * size_pt or across > LINE_STEP_EM * size_pt
