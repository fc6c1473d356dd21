"""Whether the characters of a text layer can be the text of the page, judged without its pixels.

No dictionary and no language is assumed. A font without a usable map to Unicode turns text into a cipher:
signs in place of letters, which :func:`letter_share` sees, or other letters, which
:func:`shape_agreement` sees, because a drawn "d" rises above its neighbours whatever the map calls it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from pipeline.layer_words import LayerWord
from pipeline.letter_shapes import Top, base_letter, descends, is_square, top_of
from pipeline.ports import Glyph

MIN_PAIRS: Final = 12
"""Neighbouring letters of a font that must be seen before their shapes say anything."""
SAME_TOP: Final = 0.14
"""Tops of letters of one height differ by less than this share of the font's reach (round letters
overshoot)."""
HIGHER_TOP: Final = 0.06
"""Ascenders rise above the x-height by more than this share; in text faces 0.2 to 0.3."""
SQUARE_SIDE: Final = 0.55
"""The longer side of an ideograph's shape, in font sizes; 0.8 to 1 in real fonts."""
FONT_AGREEMENT: Final = 0.62
"""Share of neighbouring letters whose heights fit their names: above 0.9 in sound fonts, about 0.45 by
chance, 0.7 for small capitals."""

_BAD_CATEGORIES: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
_VOWELS: Final = frozenset("aeiouyæœøıwаеиоуыэюяіїєαεηιουω")
_LEADERS: Final = re.compile(r"([^\w\s])\1{2,}")
_NUMBER: Final = re.compile(r"^[\W_]*[\d.,:/%'’\-–−+°²³$€£¥()\s]*\d[\d.,:/%'’\-–−+°²³$€£¥()\s]*\W*$")


def is_bad(character: str) -> bool:
    """A replacement, control, private use or unassigned character."""
    return character == "\ufffd" or unicodedata.category(character) in _BAD_CATEGORIES


def bad_character_share(words: Sequence[LayerWord]) -> float:
    text = "".join(word.word.text for word in words)
    return sum(map(is_bad, text)) / len(text) if text else 0.0


def letter_share(words: Sequence[LayerWord]) -> float:
    """Letters, digits and their marks among all characters; leader dots and rules of one sign count once."""
    text = _LEADERS.sub(r"\1", " ".join(word.word.text for word in words)).replace(" ", "")
    return sum(_is_letter(character) for character in text) / len(text) if text else 0.0


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def plausible_word_share(words: Sequence[LayerWord]) -> float | None:
    """Words made like words or numbers of some language, among those of three and more characters; None
    for none."""
    long = [word.word.text for word in words if len(word.word.text) >= 3]
    return sum(map(_is_plausible, long)) / len(long) if long else None


def _is_plausible(text: str) -> bool:
    core = text.strip("".join(c for c in set(text) if not _is_letter(c)))
    if not core:
        return len(set(text)) == 1
    if _NUMBER.match(text):
        return True
    parts = [part for part in re.split(r"[-‐'’./·]", core) if part]
    return all(_is_plausible_part(part) for part in parts)


def _is_plausible_part(part: str) -> bool:
    if not all(map(_is_letter, part)):
        return False
    letters = [c for c in part if c.isalpha()]
    if not letters or len({_script(c) for c in letters}) > 1:
        return not letters or all(_script(c) in ("CJK", "HIRAGANA", "KATAKANA", "LATIN") for c in letters)
    cased = "".join(letters)
    has_sane_case = cased.islower() or cased.isupper() or cased[1:].islower() or not cased.isascii()
    return has_sane_case and (len(letters) < 4 or _has_vowel(cased))


def _has_vowel(letters: str) -> bool:
    if _script(letters[0]) not in ("LATIN", "CYRILLIC", "GREEK"):
        return True
    return any(base_letter(c) in _VOWELS for c in letters.lower())


def _script(character: str) -> str:
    return unicodedata.name(character, "UNKNOWN").split(" ", 1)[0]


def vowelless_share(words: Sequence[LayerWord]) -> float | None:
    """Among words of four and more letters and nothing else, those without a vowel; None below twenty
    such words."""
    spelt = [word.word.text.strip(".,;:!?()\"'") for word in words]
    pure = [text for text in spelt if len(text) >= 4 and text.isalpha() and not any(map(is_square, text))]
    if len(pure) < 20:
        return None
    return sum(not _has_vowel(text) for text in pure) / len(pure)


@dataclass(slots=True)
class _FontTally:
    glyphs: int = 0
    pairs: int = 0
    fitting: int = 0

    @property
    def is_ciphered(self) -> bool:
        return self.pairs >= MIN_PAIRS and self.fitting < FONT_AGREEMENT * self.pairs

    @property
    def is_judged(self) -> bool:
        return self.pairs >= MIN_PAIRS


def shape_agreement(words: Sequence[LayerWord]) -> float | None:
    """The share of glyphs whose font draws letters as high as their names say, among glyphs of fonts that
    can be judged; None where none can. Slanted and unpainted words are left out."""
    tallies: dict[int | None, _FontTally] = {}
    upright = [word for word in words if word.quarter_turns is not None and word.is_painted]
    for font, glyphs in _by_font(upright):
        tally = tallies.setdefault(font, _FontTally())
        tally.glyphs += len(glyphs)
        for fits in _judged_pairs(glyphs):
            tally.pairs += 1
            tally.fitting += fits
    judged = [tally for tally in tallies.values() if tally.is_judged]
    if not judged:
        return None
    return sum(t.glyphs for t in judged if not t.is_ciphered) / sum(t.glyphs for t in judged)


def _by_font(words: Sequence[LayerWord]) -> Iterator[tuple[int | None, list[Glyph]]]:
    for word in words:
        if word.quarter_turns:
            continue
        for font, group in groupby(word.glyphs, key=lambda glyph: glyph.font_number):
            yield font, list(group)


def _judged_pairs(glyphs: Sequence[Glyph]) -> Iterator[bool]:
    for glyph in glyphs:
        if is_square(glyph.text[0]) and glyph.text not in "一丨丶ー二口ロニへ":
            reach = max(glyph.box.width, glyph.box.height)
            yield reach >= SQUARE_SIDE * max(other.box.height for other in glyphs)
    heights = [glyph.box.height for glyph in glyphs]
    reach_px = max(heights, default=0.0)
    if len(set(heights)) == 1 and len({glyph.text for glyph in glyphs}) > 3:
        return
    for one, two in pairwise(glyphs):
        fits = _fits(one, two, reach_px)
        if fits is not None:
            yield fits


def _fits(one: Glyph, two: Glyph, reach_px: float) -> bool | None:
    """Whether two neighbours stand as high against each other as their names say; None where names don't
    tell."""
    first, second = top_of(one.text[0]), top_of(two.text[0])
    if first is None or second is None or not reach_px:
        return None
    rise = (two.box.top - one.box.top) / reach_px
    if first is second:
        tops_fit = abs(rise) <= SAME_TOP
    else:
        tops_fit = (rise if second is Top.LOW else -rise) >= HIGHER_TOP
    if descends(one.text[0]) == descends(two.text[0]):
        return tops_fit
    drop = (two.box.bottom - one.box.bottom) / reach_px
    return tops_fit and (drop if descends(two.text[0]) else -drop) >= HIGHER_TOP
