"""What ``benchmarks.budgets`` measured, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.fit import Tier, page_fit
from pipeline.legibility import LEAST_TEXT_HEIGHT_PX, choose_tier
from pipeline.planning.planner import TIER_TOKENS
from pipeline.visual_tokens import VisualTokenBudget, model_family

FAMILY: Final = model_family("qwen2.5-vl")
LADDER: Final = tuple(TIER_TOKENS.values())
"""The tiers that ``doctriage plan`` gives a page, up to the fixed ceiling that they are compared with."""

SIZES: Final = (280, 400, *LADDER)
"""Budgets of the curve, in visual tokens."""

CEILING: Final = LADDER[-1]
BUDGET: Final = VisualTokenBudget(
    family=FAMILY,
    min_pixels=FAMILY.processor_min_pixels,
    max_pixels=CEILING * FAMILY.pixels_per_token,
)
HEIGHTS_PX: Final = (0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 17, 100)
LIMITS_PX: Final = (5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
SPOILED: Final = 0.02
"""A page that loses more of its words than this is spoiled."""

ENOUGH_FOUND: Final = 0.995
"""Share of the words found under the fixed ceiling that a limit, chosen on other sources, must keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A page read at one size. ``found`` is the share of its true words; ``edits`` of ``length`` characters are None
    where the truth has no one right order."""

    scale: float
    found: float
    edits: int | None
    length: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """How a page is sent: in which budget, and whether its margins are trimmed."""

    size: int
    is_trimmed: bool = True


FIXED: Final = Sent(size=CEILING, is_trimmed=False)
"""What all else is compared with: every page whole, under one ceiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPage:
    """A page, upright, in its own pixels, and what of it is left without its margins. ``own`` is the reading at its own
    size, None without known text. ``at`` has a reading of the trimmed page for each of ``SIZES``, and ``fixed`` is
    the one of the whole page as ``FIXED``; both are empty for a page that was read at its own size only."""

    page_id: str
    kind: str
    source: str
    needs_vlm: bool
    width_px: int
    height_px: int
    content_width_px: int
    content_height_px: int
    text_height_px: float | None
    own: Reading | None
    at: Mapping[int, Reading] = field(default_factory=dict)
    fixed: Reading | None = None

    def tokens(self, sent: Sent) -> int:
        """What the page costs."""
        width_px, height_px = self.width_px, self.height_px
        if sent.is_trimmed:
            width_px, height_px = self.content_width_px, self.content_height_px
        return sum(strip.visual_tokens for strip in page_fit(width_px, height_px, BUDGET, tier_of(sent.size)))

    def reading(self, sent: Sent) -> Reading:
        """Of a page in the sample."""
        if sent.is_trimmed:
            return self.at[sent.size]
        assert self.fixed is not None
        assert sent == FIXED
        return self.fixed

    def by_text(self, least_height_px: float) -> Sent:
        """Trimmed, in the tier of the ladder that its text needs."""
        tiers = [tier_of(size) for size in LADDER]
        chosen = choose_tier(
            self.text_height_px,
            self.content_width_px,
            self.content_height_px,
            tiers,
            BUDGET,
            least_height_px=least_height_px,
        )
        return Sent(size=chosen.visual_tokens)

    def kept(self, sent: Sent) -> float:
        """Of the words found at its own size, the share found as it is sent; over 1 where it is more."""
        assert self.own is not None
        return self.reading(sent).found / self.own.found


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """``kept`` is of the words found at the pages' own size, ``spoiled`` the share of pages that lose more than
    ``SPOILED`` of them; ``error_rate`` is that of characters, None where no page has an order."""

    pages: int
    tokens: float
    kept: float
    spoiled: float
    error_rate: float | None


Sending = Callable[[MeasuredPage], Sent]


def tier_of(size: int) -> Tier:
    return Tier(name=str(size), visual_tokens=size, max_pixels=size * FAMILY.pixels_per_token)


def fixed(page: MeasuredPage) -> Sent:
    return FIXED


def at(size: int) -> Sending:
    return lambda page: Sent(size=size)


def by_text(least_height_px: float = LEAST_TEXT_HEIGHT_PX) -> Sending:
    return lambda page: page.by_text(least_height_px)


def in_sample(pages: Sequence[MeasuredPage]) -> list[MeasuredPage]:
    return [page for page in pages if page.at]


def summary(pages: Sequence[MeasuredPage], sending: Sending) -> Summary:
    """Of pages in the sample, each sent as it is said."""
    pairs = [(page, sending(page)) for page in pages]
    kept = [page.kept(sent) for page, sent in pairs]
    return Summary(
        pages=len(pages),
        tokens=sum(page.tokens(sent) for page, sent in pairs) / len(pages),
        kept=sum(kept) / len(pages),
        spoiled=sum(one < 1 - SPOILED for one in kept) / len(pages),
        error_rate=error_rate(page.reading(sent) for page, sent in pairs),
    )


def error_rate(readings: Iterator[Reading]) -> float | None:
    counts = [(one.edits, one.length) for one in readings if one.edits is not None and one.length]
    return sum(edits for edits, _ in counts) / sum(length for _, length in counts) if counts else None


def heights_and_losses(pages: Sequence[MeasuredPage]) -> list[tuple[float, float]]:
    """For each page and size at which it is shrunk: the height of its small print then, and the share of the words
    found at its own size that is lost."""
    return [
        (page.text_height_px * reading.scale, 1 - min(1.0, page.kept(Sent(size=size))))
        for page in in_sample(pages)
        for size, reading in page.at.items()
        if page.text_height_px is not None and reading.scale < 1
    ]


def held_out(pages: Sequence[MeasuredPage]) -> tuple[Summary, list[int]]:
    """Each source's pages under the least whole limit that keeps ``ENOUGH_FOUND`` on all other sources; and these
    limits."""
    sources = defaultdict(list)
    for page in pages:
        sources[page.source].append(page)
    limits = {source: _limit_for([page for page in pages if page.source != source]) for source in sources}
    return summary(pages, lambda page: page.by_text(limits[page.source])), sorted(set(limits.values()))


def _limit_for(pages: Sequence[MeasuredPage]) -> int:
    enough = ENOUGH_FOUND * summary(pages, fixed).kept
    return next(
        (limit for limit in LIMITS_PX if summary(pages, by_text(limit)).kept >= enough), LIMITS_PX[-1]
    )
