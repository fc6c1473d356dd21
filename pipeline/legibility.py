"""Which tier a page needs: the smallest at which its text stays legible. Large print costs less, small print more.

The figures were measured by ``python -m benchmarks.budgets``; ``docs/budgets.md`` has the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from models.text import Line, Word
from pipeline.fit import Tier, page_fit
from pipeline.visual_tokens import VisualTokenBudget

LEAST_TEXT_HEIGHT_PX: Final = 11.0
"""Height of the page's small print after the fit, as ``text_height_px`` measures it. It is the least whole limit under
which an OCR engine finds as many words, 99.1 % of those that it finds at the page's own size, as where every whole page
may take 2,240 tokens; at 8 to 9 px one in twenty is lost, at 5 to 6 one in four. Chosen without one source of pages it
is 9 or 11. The model itself was not measured."""

SMALL_PRINT_QUANTILE: Final = 0.25
"""A quarter of the characters stands in words that are no taller. This told pages that lose words from pages that
do not a little better than the median and clearly better than the smallest twentieth, which is all dashes
and lower-case words."""

IDEOGRAPH_SHARE: Final = 0.75
"""Chinese, Japanese and Korean words count for so much of their height: with more strokes in a letter they need 12 to
13 px where Latin needs 10."""

_IDEOGRAPH: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")

LEAST_CONFIDENCE: Final = 0.6
LEAST_CHARACTERS: Final = 20
LEAST_TRUSTED_SHARE: Final = 0.5
"""Boxes of garbage say nothing of the text's height: only words read with confidence count, and only where they
make up half of all characters, and some words of them."""


def text_height_px(lines: Iterable[Line]) -> float | None:
    """The height of the page's small print in pixels, from the boxes of its words on the page turned upright, in
    Latin letters as legible as they are. None where too little of it was read with confidence: handwriting,
    photographs, bad scans."""
    words = [word for line in lines for word in line.words if _characters(word)]
    trusted = sorted((_height_px(word), _characters(word)) for word in words if _is_trusted(word))
    trusted_characters = sum(count for _, count in trusted)
    least_characters = LEAST_TRUSTED_SHARE * sum(map(_characters, words))
    if trusted_characters < max(LEAST_CHARACTERS, least_characters):
        return None
    seen = accumulate(count for _, count in trusted)
    small = SMALL_PRINT_QUANTILE * trusted_characters
    return next(height_px for (height_px, _), count in zip(trusted, seen, strict=True) if count >= small)


def choose_tier(
    text_height_px: float | None,
    page_width_px: int,
    page_height_px: int,
    tiers: Sequence[Tier],
    budget: VisualTokenBudget,
    *,
    least_height_px: float = LEAST_TEXT_HEIGHT_PX,
) -> Tier:
    """The cheapest tier in which text of this height, in pixels of the page, comes out at ``least_height_px`` or
    more; where none does so, or nothing is known of the text (None), the cheapest that shows the page as large as
    any. ``budget`` bounds the server's own resize."""
    rising = sorted(tiers, key=lambda tier: tier.visual_tokens)
    scales = [_scale(page_width_px, page_height_px, tier, budget) for tier in rising]
    needed = max(scales)
    if text_height_px is not None:
        needed = min(needed, least_height_px / text_height_px)
    return next(tier for tier, scale in zip(rising, scales, strict=True) if scale >= needed)


def _scale(page_width_px: int, page_height_px: int, tier: Tier, budget: VisualTokenBudget) -> float:
    return min(strip.scale for strip in page_fit(page_width_px, page_height_px, budget, tier))


def _height_px(word: Word) -> float:
    return word.box.height * (IDEOGRAPH_SHARE if _IDEOGRAPH.search(word.text) else 1.0)


def _characters(word: Word) -> int:
    """Letters and digits: a dash has a box, but no height to speak of."""
    return sum(character.isalnum() for character in word.text)


def _is_trusted(word: Word) -> bool:
    return word.confidence is None or word.confidence >= LEAST_CONFIDENCE
