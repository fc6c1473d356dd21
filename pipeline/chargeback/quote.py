"""A quote: what the pages of some documents cost before the VLM has seen any, against two other ways to read them.

Everything is a sum of whole numbers over pages. Where only a sample of the pages was read,
``pipeline.chargeback.sample`` says what the others may come to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.quote_pages import QuotedPage, Way
from pipeline.chargeback.quote_sums import (
    ROUTE_COUNTS,
    Amounts,
    Spread,
    Totals,
    page_amounts,
    total,
    totals_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedDocument:
    """``sources`` are the names of the files with these bytes; ``pages`` those that are known, in order: all of them,
    unless there is a sample."""

    document_id: str
    sources: tuple[str, ...]
    page_count: int
    pages: tuple[QuotedPage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A file that was not taken."""

    source: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteTerms:
    """Who would pay, at which prices, and for which model. Reading began at ``begun_at``; the prices are those of
    ``when``. Both have a time zone."""

    cost_centre: str
    model_id: str
    prices: UnitPrices
    begun_at: datetime
    when: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """``sampled_pages`` is None where every page was read. ``pages_by_route`` has every route, and ``failed``."""

    terms: QuoteTerms
    documents: tuple[QuotedDocument, ...]
    refusals: tuple[Refusal, ...]
    sampled_pages: int | None
    pages_by_route: Mapping[str, Estimate]
    ways: Mapping[Way, Totals]

    @property
    def page_count(self) -> int:
        return sum(document.page_count for document in self.documents)


AmountsOf = Callable[[QuotedPage], Amounts]
SpreadOver = Callable[[AmountsOf], Spread]
"""What something about each page comes to over all of them."""


def make_quote(
    documents: Sequence[QuotedDocument],
    refusals: Sequence[Refusal],
    terms: QuoteTerms,
    *,
    spread_over: SpreadOver,
    sampled_pages: int | None = None,
) -> Quote:
    spreads = {way: spread_over(partial(page_amounts, way=way, prices=terms.prices)) for way in Way}
    return Quote(
        terms=terms,
        documents=tuple(documents),
        refusals=tuple(refusals),
        sampled_pages=sampled_pages,
        pages_by_route={name: spreads[Way.TRIAGED].count(name) for name in ROUTE_COUNTS},
        ways={way: totals_of(spread, terms.prices) for way, spread in spreads.items()},
    )


def over_all_pages(documents: Sequence[QuotedDocument]) -> SpreadOver:
    """Every page was read, so nothing is left to chance."""

    def spread(amounts_of: AmountsOf) -> Spread:
        return Spread.exactly(total(amounts_of(page) for document in documents for page in document.pages))

    return spread
