"""What one entry of the ledger, or many at the same prices, is made of: quantities, each with its price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Final

from pipeline.chargeback.amounts import half_even
from pipeline.chargeback.price_book import UnitPrices


class ChargeKind(StrEnum):
    CPU_PAGES = "cpu_pages"
    """Attempts to read a page on the CPU."""
    CACHED_PAGES = "cached_pages"
    """Pages taken as an earlier run had finished them, for nothing."""
    PROMPT_TOKENS = "prompt_tokens"
    """Those that the VLM's service did not have in its cache."""
    CACHED_PROMPT_TOKENS = "cached_prompt_tokens"
    COMPLETION_TOKENS = "completion_tokens"


KINDS_OF_PAGES: Final = frozenset({ChargeKind.CPU_PAGES, ChargeKind.CACHED_PAGES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """What was used. ``cached_tokens`` are part of ``prompt_tokens``. All are below 0 in a reversal."""

    cpu_pages: int
    cached_pages: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """``micro_per_million`` is micro-units of the currency for a million tokens or pages, None for unpriced."""

    kind: ChargeKind
    quantity: int
    micro_per_million: int | None

    @property
    def exact_cost(self) -> int | None:
        """In millionths of a micro-unit, so not rounded."""
        return None if self.micro_per_million is None else self.quantity * self.micro_per_million


def charges_of(quantities: Quantities, prices: UnitPrices) -> tuple[Charge, ...]:
    """Without what was not used."""
    uncached_tokens = quantities.prompt_tokens - quantities.cached_tokens
    charges = (
        (ChargeKind.CPU_PAGES, quantities.cpu_pages, prices.cpu_page_micro_per_million),
        (ChargeKind.CACHED_PAGES, quantities.cached_pages, 0),
        (ChargeKind.PROMPT_TOKENS, uncached_tokens, prices.prompt_micro_per_million),
        (ChargeKind.CACHED_PROMPT_TOKENS, quantities.cached_tokens, prices.cached_micro_per_million),
        (ChargeKind.COMPLETION_TOKENS, quantities.completion_tokens, prices.completion_micro_per_million),
    )
    return tuple(
        Charge(kind=kind, quantity=quantity, micro_per_million=price)
        for kind, quantity, price in charges
        if quantity
    )


def shared_cost(charges: Sequence[Charge], cost_micro: int) -> tuple[int, ...]:
    """What was billed for all the charges together, divided among them in proportion to their exact costs: whole
    micro-units, of the same sign, that add up to it. At least one charge; all are priced."""
    exact = [charge.exact_cost or 0 for charge in charges]
    if not sum(exact):
        return (cost_micro, *(0 for _ in exact[1:]))
    return tuple(_shares(exact, cost_micro))


def _shares(exact: Sequence[int], cost_micro: int) -> Iterator[int]:
    """Rounding what is reached so far, not each share, leaves nothing over."""
    whole = abs(sum(exact))
    sign = 1 if sum(exact) > 0 else -1
    reached = (half_even(cost_micro * sign * part, whole) for part in accumulate(exact, initial=0))
    for before, after in pairwise(reached):
        yield after - before
