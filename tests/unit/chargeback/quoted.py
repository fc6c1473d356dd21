"""Pages of a quote and entries of a bill, made up."""

from __future__ import annotations

from typing import Any

from models.page import Route
from pipeline.chargeback.call_estimate import CallEstimate, Estimate
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.quote import QuotedDocument
from pipeline.chargeback.quote_comparison import BilledEntry
from pipeline.chargeback.quote_pages import QuotedPage

NAME = "ab" * 32
"""A document's id."""

PRICES = UnitPrices(
    currency="USD",
    book_version="ours-1",
    prompt_micro_per_million=1_000_000,
    cached_micro_per_million=500_000,
    completion_micro_per_million=4_000_000,
    cpu_page_micro_per_million=30_000_000,
)
"""A micro-unit a prompt token, half a one a cached token, four a completion token, thirty a CPU page."""


def call(visual_tokens: int = 1_000) -> CallEstimate:
    return CallEstimate(
        visual_tokens=visual_tokens,
        text_tokens=Estimate(low=200, about=300, high=500),
        completion_tokens=Estimate(low=100, about=200, high=1_500),
        again_prompt_tokens=2_500,
        again_completion_tokens=3_000,
    )


def page(number: int, route: Route | None = Route.VLM, **changes: Any) -> QuotedPage:
    values: dict[str, Any] = {
        "page_number": number,
        "route": route,
        "call": None if route in (None, Route.BLANK) else call(),
        "is_due": route is Route.VLM,
        "was_read": False,
    }
    return QuotedPage(**(values | changes))


def document(name: str, *pages: QuotedPage, page_count: int | None = None) -> QuotedDocument:
    return QuotedDocument(
        document_id=name,
        sources=(f"{name}.pdf",),
        page_count=len(pages) if page_count is None else page_count,
        pages=pages,
    )


def read(page_number: int, route: str | None = None, **changes: Any) -> BilledEntry:
    """An entry for an attempt on the CPU; without a ``route`` the page was not done with it."""
    values: dict[str, Any] = {
        "document_id": NAME,
        "page_number": page_number,
        "is_call": False,
        "is_reversal": False,
        "is_wasted": False,
        "route": route,
        "pages": 1,
        "cpu_pages": 1,
        "predicted_visual_tokens": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "currency": "USD",
        "cost_micro": 30,
    }
    return BilledEntry(**(values | changes))


def called(
    page_number: int, *, route: str | None = "vlm", tokens: int = 1_000, **changes: Any
) -> BilledEntry:
    return read(
        page_number,
        route,
        **{
            "is_call": True,
            "pages": 0,
            "cpu_pages": 0,
            "predicted_visual_tokens": tokens,
            "prompt_tokens": tokens + 300,
            "completion_tokens": 200,
            "cost_micro": 2_100,
            **changes,
        },
    )
