"""A quote as a JSON object: what ``doctriage quote --json`` prints and ``--save`` keeps. ``docs/chargeback.md``
documents its keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from models.errors import SettingsError
from models.page import Route
from pipeline.chargeback.amounts import CPU_PRICE_DECIMALS, TOKEN_PRICE_DECIMALS, amount_text
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.currencies import CURRENCY_CODES
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.quote import Quote, QuotedDocument
from pipeline.chargeback.quote_pages import QuotedPage, Way
from pipeline.chargeback.quote_sums import ROUTE_COUNTS, Totals
from pipeline.chargeback.sample_size import CONFIDENCE_PERCENT

SCHEMA_VERSION: Final = 1
CLOCKS_APART: Final = timedelta(minutes=5)
"""A quote may come from a machine whose clock is that much ahead."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SavedEstimate(_Part):
    low: int = Field(ge=0)
    about: int = Field(ge=0)
    high: int = Field(ge=0)


class SavedPrices(_Part):
    """Amounts are text, as in the price book; None where it has no price."""

    per_million_prompt_tokens: str | None
    per_million_cached_tokens: str | None
    per_million_completion_tokens: str | None
    per_cpu_page: str | None


class SavedSample(_Part):
    pages: int = Field(ge=1)
    confidence_percent: int


class SavedTotals(_Part):
    calls: SavedEstimate
    cpu_pages: SavedEstimate
    visual_tokens: SavedEstimate
    prompt_tokens: SavedEstimate
    completion_tokens: SavedEstimate
    cpu_micro: SavedEstimate | None
    vlm_micro: SavedEstimate | None
    total_micro: SavedEstimate | None


class SavedPage(_Part):
    """``route`` is None for a page that could not be read. What follows ``was_read`` is None for a page that is not
    sent."""

    page_number: int = Field(ge=1)
    route: Route | None = Field(strict=False)
    was_read: bool
    visual_tokens: Annotated[int, Field(ge=0)] | None
    prompt_tokens: SavedEstimate | None
    completion_tokens: SavedEstimate | None


class SavedDocument(_Part):
    document_id: str = Field(pattern=r"^[0-9a-f]{64}$")
    sources: tuple[str, ...] = Field(strict=False)
    page_count: int = Field(ge=1)
    pages: tuple[SavedPage, ...] = Field(strict=False)


class SavedRefusal(_Part):
    source: str
    code: str
    message: str


class SavedQuote(_Part):
    schema_version: Literal[1]
    begun_at: AwareDatetime = Field(strict=False)
    created_at: AwareDatetime = Field(strict=False)
    cost_centre: str
    model_id: str
    currency: str
    price_book_version: str
    prices: SavedPrices
    page_count: int
    sample: SavedSample | None
    pages_by_route: Mapping[str, SavedEstimate]
    ways: Mapping[str, SavedTotals]
    documents: tuple[SavedDocument, ...] = Field(strict=False)
    refusals: tuple[SavedRefusal, ...] = Field(strict=False)


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
