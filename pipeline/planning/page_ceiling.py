"""The most visual tokens a page may have: the least of what each of five reasons allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from models.errors import PlanImpossible
from pipeline.planning.model_profiles import ModelProfile
from pipeline.planning.plan_wishes import IMAGE_MARK_TOKENS, PlanWishes, PromptShape
from pipeline.planning.serving_plan import KvDtype

FULL_PAGE_TOKENS: Final = 2_240
"""A page of A4 in small print: 1120 × 1568 pixels at cells of 28."""

LEGIBLE_PAGE_TOKENS: Final = 1_024
"""The least ceiling that is planned for unasked: A4 at 91 dpi at cells of 28, where 10 points are 13 pixels."""

LEAST_PAGE_TOKENS: Final = 200
"""Under it whole cells can exceed ``max_pixels``, and the count is no ceiling (``visual_tokens.resized``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCeiling:
    """What one reason allows. ``advice`` says which wishes to change for a page of ``needed_tokens``."""

    reason: str
    how: str
    visual_tokens: int
    advice: str


def page_ceilings(
    profile: ModelProfile, wishes: PlanWishes, shape: PromptShape, kv_tokens: int
) -> tuple[PageCeiling, ...]:
    """Raises PlanImpossible with the arithmetic where a page would get fewer tokens than it needs."""
    needed_tokens = wishes.visual_tokens or LEGIBLE_PAGE_TOKENS
    if needed_tokens < LEAST_PAGE_TOKENS:
        raise PlanImpossible(
            f"{needed_tokens} visual tokens a page are under the {LEAST_PAGE_TOKENS} from which the budget is a "
            f"ceiling at all; use --visual-tokens {LEAST_PAGE_TOKENS} or more"
        )
    ceilings = tuple(_ceilings(profile, wishes, shape, kv_tokens, needed_tokens))
    too_low = [ceiling for ceiling in ceilings if ceiling.visual_tokens < needed_tokens]
    if too_low:
        raise PlanImpossible(_refusal(wishes, shape, too_low, needed_tokens))
    return ceilings


def _refusal(wishes: PlanWishes, shape: PromptShape, too_low: list[PageCeiling], needed_tokens: int) -> str:
    wished_tokens = wishes.visual_tokens or FULL_PAGE_TOKENS
    pages = f"{shape.page_count} page{'s' if shape.page_count > 1 else ''}"
    need = "asked for" if wishes.visual_tokens else "without which small print is not legible"
    reasons = "; ".join(
        f"{ceiling.reason}: {ceiling.how} = {ceiling.visual_tokens:,} visual tokens a page, under the "
        f"{needed_tokens:,} {need}: use {ceiling.advice}"
        for ceiling in too_low
    )
    return (
        f"{pages} of {wished_tokens:,} visual tokens a prompt: {shape.page_count} × {wished_tokens:,} + "
        f"{shape.text_tokens:,} of text + {shape.output_tokens:,} of output = "
        f"{shape.longest_tokens(wished_tokens):,} tokens, in a context of {shape.context_tokens:,}; {reasons}"
    )


def _ceilings(
    profile: ModelProfile, wishes: PlanWishes, shape: PromptShape, kv_tokens: int, needed_tokens: int
) -> Iterator[PageCeiling]:
    yield _from_context(profile, shape, needed_tokens)
    if wishes.concurrency is not None:
        yield _from_kv_cache(wishes, shape, kv_tokens, wishes.concurrency, needed_tokens)
    if wishes.ttft_s is not None and wishes.prefill_tokens_per_s is not None:
        yield _from_ttft(shape, wishes.ttft_s, wishes.prefill_tokens_per_s, needed_tokens)
    family = profile.family
    processor_tokens = family.processor_max_pixels // family.pixels_per_token
    yield PageCeiling(
        reason="image processor",
        how=f"{family.processor_max_pixels:,} px / {family.pixels_per_token:,} px a token",
        visual_tokens=processor_tokens,
        advice=f"--visual-tokens {processor_tokens}",
    )
    yield PageCeiling(
        reason="legibility",
        how="asked for" if wishes.visual_tokens else "a full page of small print",
        visual_tokens=wishes.visual_tokens or FULL_PAGE_TOKENS,
        advice="",
    )


def _from_context(profile: ModelProfile, shape: PromptShape, needed_tokens: int) -> PageCeiling:
    left = shape.context_tokens - shape.output_tokens
    pages = (left - shape.fixed_text_tokens) // (needed_tokens + IMAGE_MARK_TOKENS)
    output_tokens = shape.context_tokens - shape.longest_tokens(needed_tokens) + shape.output_tokens
    longer = _rounded_up(shape.longest_tokens(needed_tokens), 1_024)
    return PageCeiling(
        reason="context",
        how=f"({shape.context_tokens:,} − {shape.output_tokens:,} output − {shape.text_tokens:,} text) / "
        f"{shape.page_count}",
        visual_tokens=(left - shape.text_tokens) // shape.page_count,
        advice=_one_of(
            ("--pages-per-prompt", pages),
            ("--max-output-tokens", output_tokens),
            ("--context-tokens", longer if longer <= profile.context_tokens else 0),
        ),
    )


def _from_kv_cache(
    wishes: PlanWishes, shape: PromptShape, kv_tokens: int, concurrency: int, needed_tokens: int
) -> PageCeiling:
    share = kv_tokens // concurrency
    longest = shape.longest_tokens(needed_tokens)
    narrower = wishes.kv_dtype is KvDtype.AUTO and 2 * kv_tokens // concurrency >= longest
    advice = _one_of(
        ("--concurrency", kv_tokens // longest),
        ("--max-output-tokens", share - longest + shape.output_tokens),
    )
    return PageCeiling(
        reason="KV cache",
        how=f"({kv_tokens:,} / {concurrency:,} requests − {shape.output_tokens:,} output − "
        f"{shape.text_tokens:,} text) / {shape.page_count}",
        visual_tokens=(share - shape.output_tokens - shape.text_tokens) // shape.page_count,
        advice=f"{advice} or --kv-dtype fp8" if narrower else advice,
    )


def _from_ttft(
    shape: PromptShape, ttft_s: float, prefill_tokens_per_s: float, needed_tokens: int
) -> PageCeiling:
    prompt_tokens = math.floor(ttft_s * prefill_tokens_per_s + 1e-6)
    needed_s = (shape.text_tokens + shape.page_count * needed_tokens) / prefill_tokens_per_s
    pages = (prompt_tokens - shape.fixed_text_tokens) // (needed_tokens + IMAGE_MARK_TOKENS)
    return PageCeiling(
        reason="time to first token",
        how=f"({ttft_s:g} s × {prefill_tokens_per_s:,.0f} tokens/s − {shape.text_tokens:,} text) / "
        f"{shape.page_count}",
        visual_tokens=(prompt_tokens - shape.text_tokens) // shape.page_count,
        advice=_one_of(("--pages-per-prompt", pages), ("--ttft-s", math.ceil(needed_s * 100) / 100)),
    )


def _one_of(*options: tuple[str, float]) -> str:
    """The options that are possible, joined with "or"."""
    possible = [f"{flag} {value:.12g}" for flag, value in options if value > 0]
    return " or ".join(possible) or "fewer pages with a shorter answer"


def _rounded_up(count: int, step: int) -> int:
    return -(-count // step) * step
