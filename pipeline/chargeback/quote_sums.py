"""What pages come to, in whole numbers, and how sums that are not all known are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final, Self

from models.page import Route
from models.transcription import TokenUsage
from pipeline.chargeback.amounts import half_even
from pipeline.chargeback.call_estimate import CallEstimate, Estimate
from pipeline.chargeback.price_book import UnitPrices, cost_of
from pipeline.chargeback.quote_pages import QuotedPage, Way

CALLED_AGAIN_ONE_IN: Final = 10
"""The upper end allows for one page in so many to be called a second time, at the most that such a call takes."""

FAILED: Final = "failed"
ROUTE_COUNTS: Final = (*(route.value for route in Route), FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Sums over pages. Pages by route, ``failed`` being those that could not be read; ``calls`` are pages sent,
    ``cpu_pages`` those that the CPU reads for it. Costs are micro-units, 0 where a price is missing."""

    text_layer: int = 0
    ocr: int = 0
    blank: int = 0
    vlm: int = 0
    ocr_degraded: int = 0
    failed: int = 0
    calls: int = 0
    cpu_pages: int = 0
    visual_tokens: int = 0
    prompt_tokens_low: int = 0
    prompt_tokens_about: int = 0
    prompt_tokens_high: int = 0
    completion_tokens_low: int = 0
    completion_tokens_about: int = 0
    completion_tokens_high: int = 0
    cpu_micro: int = 0
    vlm_micro_low: int = 0
    vlm_micro_about: int = 0
    vlm_micro_high: int = 0
    total_micro_low: int = 0
    total_micro_about: int = 0
    total_micro_high: int = 0

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Self:
        return cls(**dict(zip(AMOUNTS, numbers, strict=True)))

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in AMOUNTS)


AMOUNTS: Final = tuple(field.name for field in fields(Amounts))


def total(amounts: Iterable[Amounts]) -> Amounts:
    sums = [sum(column) for column in zip(*(one.numbers for one in amounts), strict=True)]
    return Amounts.of(sums) if sums else Amounts()


def page_amounts(page: QuotedPage, way: Way, prices: UnitPrices) -> Amounts:
    """One page's. Each cost is rounded as the bill rounds it."""
    cpu_pages = int(not page.was_read)
    cpu_micro = cost_of(prices, cpu_pages=cpu_pages) or 0
    route = FAILED if page.route is None else page.route.value
    counts = {route: 1, "cpu_pages": cpu_pages, "cpu_micro": cpu_micro}
    if page.call is None or not page.is_called(way):
        return Amounts(**counts, **_range("total_micro", Estimate.exactly(cpu_micro)))
    prompt, completion, cost = _calls(page.call, prices)
    return Amounts(
        **counts,
        calls=1,
        visual_tokens=page.call.visual_tokens,
        **_range("prompt_tokens", prompt),
        **_range("completion_tokens", completion),
        **_range("vlm_micro", cost),
        **_range("total_micro", cost + Estimate.exactly(cpu_micro)),
    )


def _range(name: str, estimate: Estimate) -> dict[str, int]:
    return {f"{name}_low": estimate.low, f"{name}_about": estimate.about, f"{name}_high": estimate.high}


def _calls(call: CallEstimate, prices: UnitPrices) -> tuple[Estimate, Estimate, Estimate]:
    """Prompt and completion tokens of the page's calls, and what they cost. The least that a call costs is with the
    shortest answer, and all text of the prompt in the service's cache."""
    prompt, completion = call.prompt_tokens, call.completion_tokens
    again = TokenUsage(prompt_tokens=call.again_prompt_tokens, completion_tokens=call.again_completion_tokens)
    least = TokenUsage(
        prompt_tokens=prompt.low, completion_tokens=completion.low, cached_tokens=call.text_tokens.low
    )
    likely = TokenUsage(prompt_tokens=prompt.about, completion_tokens=completion.about)
    most = TokenUsage(prompt_tokens=prompt.high, completion_tokens=completion.high)
    cost = Estimate(low=_cost(prices, least), about=_cost(prices, likely), high=_cost(prices, most))
    return (
        prompt + _perhaps_again(again.prompt_tokens),
        completion + _perhaps_again(again.completion_tokens),
        cost + _perhaps_again(_cost(prices, again)),
    )


def _cost(prices: UnitPrices, usage: TokenUsage) -> int:
    return cost_of(prices, usage) or 0


def _perhaps_again(most: int) -> Estimate:
    return Estimate(low=0, about=0, high=half_even(most, CALLED_AGAIN_ONE_IN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Sums that are not all known: each number expected, with the ends of its interval. All three are the same where
    every page was read."""

    low: Amounts
    about: Amounts
    high: Amounts

    @classmethod
    def exactly(cls, amounts: Amounts) -> Self:
        return cls(low=amounts, about=amounts, high=amounts)

    def count(self, name: str) -> Estimate:
        """A number that is exact page by page."""
        return Estimate(
            low=getattr(self.low, name), about=getattr(self.about, name), high=getattr(self.high, name)
        )

    def range(self, name: str) -> Estimate:
        """One that is a range page by page: the low end of the least, the high end of the most."""
        return Estimate(
            low=getattr(self.low, f"{name}_low"),
            about=getattr(self.about, f"{name}_about"),
            high=getattr(self.high, f"{name}_high"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one way of reading comes to. A cost is None, for unpriced, where something is used that has no price."""

    calls: Estimate
    cpu_pages: Estimate
    visual_tokens: Estimate
    prompt_tokens: Estimate
    completion_tokens: Estimate
    cpu_micro: Estimate | None
    vlm_micro: Estimate | None
    total_micro: Estimate | None


def totals_of(spread: Spread, prices: UnitPrices) -> Totals:
    calls, cpu_pages = spread.count("calls"), spread.count("cpu_pages")
    token_prices = (prices.prompt_micro_per_million, prices.completion_micro_per_million)
    has_cpu_cost = not cpu_pages.high or prices.cpu_page_micro_per_million is not None
    has_vlm_cost = not calls.high or None not in token_prices
    return Totals(
        calls=calls,
        cpu_pages=cpu_pages,
        visual_tokens=spread.count("visual_tokens"),
        prompt_tokens=spread.range("prompt_tokens"),
        completion_tokens=spread.range("completion_tokens"),
        cpu_micro=spread.count("cpu_micro") if has_cpu_cost else None,
        vlm_micro=spread.range("vlm_micro") if has_vlm_cost else None,
        total_micro=spread.range("total_micro") if has_cpu_cost and has_vlm_cost else None,
    )
