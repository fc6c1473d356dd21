"""Whether a PDF page's own text can be delivered, and its lines.

Every reason against it is a measured signal, so that the page's result shows why its pixels were read
instead. Words that the page doesn't show (content switched off, white on white, under a black bar) are
dropped one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from models.geometry import Box
from models.page import Signal
from models.text import Line, Word
from pipeline.hidden_layer import hidden_fit_share, hidden_shape_share
from pipeline.layer_ink import (
    PageInk,
    page_ink,
    uncovered_ink,
    uncovered_scan_share,
    uncovered_text_share,
)
from pipeline.layer_signals import (
    bad_character_share,
    is_bad,
    letter_share,
    plausible_word_share,
    shape_agreement,
    vowelless_share,
)
from pipeline.layer_words import LayerWord, Turn, upright_layer
from pipeline.ports import PageRaster, TextLayer
from pipeline.reading_order import lines_from_words
from pipeline.rows import is_right_to_left, line_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundnessLimits:
    """Where a text layer stops being sound. Sound layers of 40 real pages lie far on the good side of each.

    ``min_letters``: letters and digits on ink. ``max_unmapped_share``: glyphs whose font has no map to
    Unicode. ``max_bad_share``: replacement, private use and control characters. ``min_letter_share``:
    letters among all characters (code has 0.6, a cipher of signs 0.4). ``min_shape_agreement``: glyphs of
    fonts that draw what they say. ``max_vowelless_share``: long words without a vowel.
    ``max_uncovered_text_share``: text-like rows without words. ``max_uncovered_scan_share``: ink of a
    scanned picture without words. ``max_colliding_share``: words printed over other words. The hidden
    limits apply to words that the page doesn't paint itself: ``min_hidden_fit`` for their places,
    ``min_hidden_plausible`` for their spelling; they are strict, as such layers were made by some earlier
    OCR, and reading the pixels again costs little. ``max_frame_error``: how far the sides' ratio of
    pixels and points may differ.
    """

    min_letters: int = 1
    max_unmapped_share: float = 0.05
    max_bad_share: float = 0.02
    min_letter_share: float = 0.5
    min_shape_agreement: float = 0.9
    max_vowelless_share: float = 0.35
    max_uncovered_text_share: float = 0.15
    max_uncovered_scan_share: float = 0.2
    max_colliding_share: float = 0.1
    min_hidden_fit: float = 0.7
    min_hidden_shape: float = 0.7
    min_hidden_plausible: float = 0.8
    max_frame_error: float = 0.02


LIMITS: Final = SoundnessLimits()
MOST_TWINS: Final = 50
"""Words of one spelling that are compared in search of a shadow, which follows its word closely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLayerVerdict:
    """``lines`` are in the upright page: the delivered one turned clockwise by ``rotation_deg``. They are
    given in reading order, also when the layer is not sound. ``signals`` hold every measure, ``failed``
    the names of those beyond their limits."""

    is_sound: bool
    lines: tuple[Line, ...]
    rotation_deg: int
    signals: tuple[Signal, ...]
    failed: tuple[str, ...] = ()


def judge_text_layer(
    layer: TextLayer, raster: PageRaster, *, limits: SoundnessLimits = LIMITS
) -> TextLayerVerdict:
    """Compare a layer with the page it belongs to. Costs 30 to 80 ms, nothing to speak of without a
    layer."""
    if not any(not glyph.text.isspace() for glyph in layer.glyphs):
        return TextLayerVerdict(
            is_sound=False,
            lines=(),
            rotation_deg=0,
            signals=(Signal(name="text_layer_letters", measured=0),),
            failed=("text_layer_letters",),
        )
    width_px, height_px = raster.image.size
    upright = upright_layer(layer, width_px, height_px)
    turn = Turn(upright.rotation_deg, width_px, height_px)
    ink = page_ink(raster.image, upright.rotation_deg)
    words = _reaching([word for word in upright.words if _is_shown(word, ink)], ink)
    measures = _measures(layer, upright.words, words, ink, [turn.box(b) for b in _scaled(layer, raster)])
    measures["text_layer_frame_error"] = abs(width_px / layer.width_pt * layer.height_pt / height_px - 1)
    failed = _failed(measures, limits)
    return TextLayerVerdict(
        is_sound=not failed,
        lines=_lines(words, turn),
        rotation_deg=upright.rotation_deg,
        signals=tuple(Signal(name=name, measured=measured) for name, measured in measures.items()),
        failed=failed,
    )


def _is_shown(word: LayerWord, ink: PageInk) -> bool:
    """Slanted words have loose boxes, so their glyphs are asked."""
    if word.quarter_turns is None:
        return sum(ink.shows(glyph.box) for glyph in word.glyphs) > len(word.glyphs) / 2
    return ink.shows(word.word.box)


def _reaching(words: Sequence[LayerWord], ink: PageInk) -> list[LayerWord]:
    """Hidden words with boxes up to the end of their ink: Tesseract's own layers leave out the last
    letter."""
    result = list(words)
    for index, word in enumerate(words):
        if word.is_painted or word.quarter_turns != 0 or is_right_to_left(word.word.text):
            continue
        box = word.word.box
        letter_px = box.width / len(word.word.text)
        limit_px = box.right + letter_px + 0.1 * box.height
        if index + 1 < len(words) and words[index + 1].run == word.run:
            limit_px = min(limit_px, words[index + 1].word.box.left)
        reach = replace(box, right=ink.reach(box, limit_px))
        result[index] = replace(word, word=replace(word.word, box=reach))
    return result


def _scaled(layer: TextLayer, raster: PageRaster) -> list[Box]:
    x, y = raster.image.width / layer.width_pt, raster.image.height / layer.height_pt
    return [Box(b.left * x, b.top * y, b.right * x, b.bottom * y) for b in layer.images]


def _measures(
    layer: TextLayer,
    all_words: Sequence[LayerWord],
    words: Sequence[LayerWord],
    ink: PageInk,
    images: Sequence[Box],
) -> dict[str, float | None]:
    rest = uncovered_ink(ink, words)
    hidden = [word for word in words if not word.is_painted]
    return {
        "text_layer_letters": sum(c.isalnum() for word in words for c in word.word.text),
        "text_layer_words_on_ink": len(words) / len(all_words) if all_words else None,
        "text_layer_unmapped_share": layer.unmapped_glyph_share,
        "text_layer_bad_share": bad_character_share(words),
        "text_layer_letter_share": letter_share(words),
        "text_layer_shape_agreement": shape_agreement(words),
        "text_layer_vowelless_share": vowelless_share(words),
        "text_layer_colliding_share": _colliding_share(words),
        "text_layer_uncovered_text_share": uncovered_text_share(ink, words, rest),
        "text_layer_uncovered_scan_share": uncovered_scan_share(ink, images, rest),
        "text_layer_hidden_fit": hidden_fit_share(ink, [w for w in all_words if not w.is_painted]),
        "text_layer_hidden_shape": hidden_shape_share(ink, words),
        "text_layer_hidden_plausible": plausible_word_share(hidden) if hidden else None,
    }


def _failed(measures: dict[str, float | None], limits: SoundnessLimits) -> tuple[str, ...]:
    least = {
        "text_layer_letters": limits.min_letters,
        "text_layer_letter_share": limits.min_letter_share,
        "text_layer_shape_agreement": limits.min_shape_agreement,
        "text_layer_hidden_fit": limits.min_hidden_fit,
        "text_layer_hidden_shape": limits.min_hidden_shape,
        "text_layer_hidden_plausible": limits.min_hidden_plausible,
    }
    most = {
        "text_layer_unmapped_share": limits.max_unmapped_share,
        "text_layer_bad_share": limits.max_bad_share,
        "text_layer_vowelless_share": limits.max_vowelless_share,
        "text_layer_uncovered_text_share": limits.max_uncovered_text_share,
        "text_layer_uncovered_scan_share": limits.max_uncovered_scan_share,
        "text_layer_colliding_share": limits.max_colliding_share,
        "text_layer_frame_error": limits.max_frame_error,
    }
    return tuple(
        name
        for name, measured in measures.items()
        if measured is not None
        and ((name in least and measured < least[name]) or (name in most and measured > most[name]))
    )


def _colliding_share(words: Sequence[LayerWord]) -> float:
    """Words printed over a different word: one of them is likely not what is seen. Neighbours in the
    layer's order and in the page's are compared, which is where such words are."""
    upright = [word for word in words if word.quarter_turns == 0]
    by_place = sorted(upright, key=lambda word: (round(word.word.box.bottom / 8), word.word.box.left))
    colliding = sum(_collide(one.word, two.word) for one, two in pairwise(by_place))
    return colliding / len(upright) if upright else 0.0


def _collide(one: Word, two: Word) -> bool:
    smaller = min(one.box.area, two.box.area)
    return one.text != two.text and smaller > 0 and one.box.intersection(two.box) > 0.5 * smaller


def _lines(words: Sequence[LayerWord], turn: Turn) -> tuple[Line, ...]:
    """The body's lines in reading order, then text along the other sides, then slanted text in its own
    order."""
    sound = [cleaned for word in words if (cleaned := _without_bad(word)) is not None]
    lines = list(lines_from_words(_once([word.word for word in sound if word.quarter_turns == 0])))
    for quarter in (1, 2, 3):
        lines.extend(_turned_lines([w.word for w in sound if w.quarter_turns == quarter], quarter, turn))
    slanted = [word for word in sound if word.quarter_turns is None]
    for _, group in groupby(slanted, key=lambda word: word.run):
        lines.append(line_of([word.word for word in group]))
    return tuple(lines)


def _turned_lines(words: Sequence[Word], quarter: int, turn: Turn) -> list[Line]:
    """Lines whose baseline is ``quarter`` clockwise quarter turns away: found in their own frame, turned
    back."""
    if turn.rotation_deg % 180:
        width_px, height_px = turn.height_px, turn.width_px
    else:
        width_px, height_px = turn.width_px, turn.height_px
    there = Turn((360 - 90 * quarter) % 360, width_px, height_px)
    across = quarter % 2
    back = Turn(90 * quarter, height_px if across else width_px, width_px if across else height_px)
    turned = [replace(word, box=there.box(word.box)) for word in words]
    return [
        line_of([replace(word, box=back.box(word.box)) for word in line.words])
        for line in lines_from_words(turned)
    ]


def _without_bad(word: LayerWord) -> LayerWord | None:
    text = "".join(c for c in word.word.text if not is_bad(c)).strip()
    if text == word.word.text:
        return word
    return replace(word, word=replace(word.word, text=text)) if text else None


def _once(words: Sequence[Word]) -> list[Word]:
    """Words without their shadows: the same text drawn again a hair away, for a bold or a shadowed look."""
    kept: list[Word] = []
    latest: dict[str, list[Word]] = {}
    for word in words:
        twins = latest.setdefault(word.text, [])
        if any(
            t.box.intersection(word.box) > 0.6 * min(t.box.area, word.box.area) for t in twins[-MOST_TWINS:]
        ):
            continue
        twins.append(word)
        kept.append(word)
    return kept
