"""A quote as a JSON object: what ``doctriage quote --json`` prints and ``--save`` keeps. ``docs/chargeback.md``
documents its keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from models.errors import SettingsError
from pipeline.chargeback.amounts import CPU_PRICE_DECIMALS, TOKEN_PRICE_DECIMALS, amount_text
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.currencies import CURRENCY_CODES
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.quote import Quote, QuotedDocument
from pipeline.chargeback.quote_pages import QuotedPage, Way
from pipeline.chargeback.quote_sums import ROUTE_COUNTS, Totals
from pipeline.chargeback.sample_size import CONFIDENCE_PERCENT
from pipeline.chargeback.saved_quote import (
    SavedDocument,
    SavedEstimate,
    SavedPage,
    SavedPrices,
    SavedQuote,
    SavedRefusal,
    SavedSample,
    SavedTotals,
)

SCHEMA_VERSION: Final = 1
CLOCKS_APART: Final = timedelta(minutes=5)
"""A quote may come from a machine whose clock is that much ahead."""


def saved(quote: Quote) -> SavedQuote:
    terms = quote.terms
    return SavedQuote(
        schema_version=SCHEMA_VERSION,
        begun_at=terms.begun_at,
        created_at=terms.when,
        cost_centre=terms.cost_centre,
        model_id=terms.model_id,
        currency=terms.prices.currency,
        price_book_version=terms.prices.book_version,
        prices=_prices(terms.prices),
        page_count=quote.page_count,
        sample=_sample(quote.sampled_pages),
        pages_by_route={name: _estimate(count) for name, count in quote.pages_by_route.items()},
        ways={way.value: _totals(totals) for way, totals in quote.ways.items()},
        documents=tuple(_document(document) for document in quote.documents),
        refusals=tuple(
            SavedRefusal(source=one.source, code=one.code, message=one.message) for one in quote.refusals
        ),
    )


def read_quote(path: Path) -> SavedQuote:
    """The quote in the file. Raises SettingsError for a file that holds none, or one that no quote can be."""
    advice = "name a file that doctriage quote --save wrote"
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; {advice}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: no text in UTF-8; {advice}") from error
    try:
        quote = SavedQuote.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "file"
        raise SettingsError(f"{path}: no quote ({place}: {first['msg']}); {advice}") from error
    for complaint in _complaints(quote):
        raise SettingsError(f"{path}: no quote ({complaint}); {advice}")
    return quote


def _complaints(quote: SavedQuote) -> Iterator[str]:
    """Why doctriage did not write this."""
    if quote.begun_at > datetime.now(UTC) + CLOCKS_APART:
        yield f"begun_at: {quote.begun_at.isoformat()} is in the future"
    if quote.currency not in CURRENCY_CODES:
        yield f"currency: {quote.currency!r} is no ISO 4217 code"
    yield from (f"ways: {way.value} is missing" for way in Way if way.value not in quote.ways)
    yield from (
        f"pages_by_route: {name} is missing" for name in ROUTE_COUNTS if name not in quote.pages_by_route
    )
    yield from _repeated((document.document_id for document in quote.documents), "documents: document")
    for document in quote.documents:
        pages = (page.page_number for page in document.pages)
        yield from _repeated(pages, f"documents: document {document.document_id}: page")
    for name, estimate in _estimates(quote):
        if not estimate.low <= estimate.about <= estimate.high:
            yield (
                f"{name}: low {estimate.low}, about {estimate.about} and high {estimate.high} are out of order"
            )


def _repeated(names: Iterable[object], what: str) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name} is there {count} times"


def _estimates(quote: SavedQuote) -> Iterator[tuple[str, SavedEstimate]]:
    """With their places in the file."""
    yield from ((f"pages_by_route.{route}", estimate) for route, estimate in quote.pages_by_route.items())
    for way, totals in quote.ways.items():
        yield from ((f"ways.{way}.{name}", one) for name, one in totals if one is not None)
    for document in quote.documents:
        for page in document.pages:
            place = f"documents: document {document.document_id}: page {page.page_number}"
            for name in ("prompt_tokens", "completion_tokens"):
                estimate = getattr(page, name)
                if estimate is not None:
                    yield f"{place}: {name}", estimate


def _prices(prices: UnitPrices) -> SavedPrices:
    return SavedPrices(
        per_million_prompt_tokens=_amount(prices.prompt_micro_per_million, TOKEN_PRICE_DECIMALS),
        per_million_cached_tokens=_amount(prices.cached_micro_per_million, TOKEN_PRICE_DECIMALS),
        per_million_completion_tokens=_amount(prices.completion_micro_per_million, TOKEN_PRICE_DECIMALS),
        per_cpu_page=_amount(prices.cpu_page_micro_per_million, CPU_PRICE_DECIMALS),
    )


def _amount(micro: int | None, decimals: int) -> str | None:
    return None if micro is None else amount_text(micro, decimals)


def _sample(sampled_pages: int | None) -> SavedSample | None:
    if sampled_pages is None:
        return None
    return SavedSample(pages=sampled_pages, confidence_percent=CONFIDENCE_PERCENT)


def _estimate(estimate: Estimate) -> SavedEstimate:
    return SavedEstimate(low=estimate.low, about=estimate.about, high=estimate.high)


def _cost(estimate: Estimate | None) -> SavedEstimate | None:
    return None if estimate is None else _estimate(estimate)


def _totals(totals: Totals) -> SavedTotals:
    return SavedTotals(
        calls=_estimate(totals.calls),
        cpu_pages=_estimate(totals.cpu_pages),
        visual_tokens=_estimate(totals.visual_tokens),
        prompt_tokens=_estimate(totals.prompt_tokens),
        completion_tokens=_estimate(totals.completion_tokens),
        cpu_micro=_cost(totals.cpu_micro),
        vlm_micro=_cost(totals.vlm_micro),
        total_micro=_cost(totals.total_micro),
    )


def _document(document: QuotedDocument) -> SavedDocument:
    return SavedDocument(
        document_id=document.document_id,
        sources=document.sources,
        page_count=document.page_count,
        pages=tuple(_page(page) for page in document.pages),
    )


def _page(page: QuotedPage) -> SavedPage:
    call = page.call if page.is_called(Way.TRIAGED) else None
    return SavedPage(
        page_number=page.page_number,
        route=page.route,
        was_read=page.was_read,
        visual_tokens=None if call is None else call.visual_tokens,
        prompt_tokens=None if call is None else _estimate(call.prompt_tokens),
        completion_tokens=None if call is None else _estimate(call.completion_tokens),
    )
