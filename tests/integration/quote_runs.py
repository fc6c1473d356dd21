"""Quotes of documents that cost nothing to read, and the ingest after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.chargeback.quote import Quote
from pipeline.chargeback.sample_size import SampleSize
from pipeline.settings import Settings
from tests.fakes.wordy_ocr import WordyEngines
from tests.integration.vlm_runs import VlmBench
from workers.events import Event
from workers.quoting import QuoteRequest, quote


def quote_of(
    bench: VlmBench,
    *,
    sample: int | None = None,
    cost_centre: str | None = None,
    on_event: Callable[[Event], None] | None = None,
    **changes: Any,
) -> Quote | None:
    """With the settings of the bench's ingest, but for the VLM's address."""
    bench.events.clear()
    settings = Settings(
        **{
            "home": bench.home,
            "route": bench.route,
            "executor": {"jobs": 1, "page_timeout_s": 60},
            **changes,
        }
    )
    request = QuoteRequest(
        paths=(bench.inputs,),
        cost_centre=cost_centre,
        sample=None if sample is None else SampleSize(pages=sample),
    )
    return quote(
        request,
        settings=settings,
        on_event=on_event or bench.events.append,
        engine_builder=WordyEngines(ocr=bench.ocr),
    )


def whole_quote(bench: VlmBench, **changes: Any) -> Quote:
    made = quote_of(bench, **changes)
    assert made is not None
    return made


def tokens_by_page(made: Quote) -> dict[tuple[str, int], int]:
    """Visual tokens of each page that a run would send, by document id and page number."""
    return {
        (document.document_id, page.page_number): page.call.visual_tokens
        for document in made.documents
        for page in document.pages
        if page.call is not None and page.is_due
    }


def billed_by_page(bench: VlmBench) -> dict[tuple[str, int], int]:
    """Predicted visual tokens of each page's first call, as the ledger has them."""
    rows = bench.query(
        "SELECT document_id, page_number, predicted_visual_tokens FROM ledger "
        "WHERE kind = 'vlm_call' AND attempt = 1"
    )
    return {(document_id, number): tokens for document_id, number, tokens in rows}
