"""Entries for what a test settles, where it does not matter what they say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from models.page import Route
from models.transcription import Call, CallOutcome
from pipeline.chargeback.entries import Account, LedgerEntry, Payer, call_entry, failed_page_entry
from pipeline.chargeback.price_book import load_price_book
from pipeline.store import ClosedCall, Store

DOCUMENT_ID = "ab" * 32
WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOOK = load_price_book()
PAYER = Payer(cost_centre="harbour/ferries", submitter="ada", submission_id=None)
ACCOUNT = Account(payer=PAYER, price_book=BOOK, model_id="qwen2.5-vl-7b-fp8")


def cpu_entry(reading_id: int, page_number: int = 1) -> LedgerEntry:
    return failed_page_entry(
        ACCOUNT,
        document_id=DOCUMENT_ID,
        reading_id=reading_id,
        page_number=page_number,
        code="read",
        is_final=True,
        cpu_s=0.5,
        when=WHEN,
    )


def new_call(reading_id: int, attempt: int = 1, **changes: Any) -> Call:
    """About page 1."""
    call = Call(
        reading_id=reading_id,
        page_number=1,
        attempt=attempt,
        submission_id=None,
        cost_centre=PAYER.cost_centre,
        request_id=f"r/{attempt}",
        model_id=ACCOUNT.model_id,
        tier="full",
        width_px=1120,
        height_px=1568,
        predicted_visual_tokens=2_240,
        predicted_prompt_tokens=2_455,
        temperature=0.1,
        started_at_s=WHEN.timestamp(),
        reserved_tokens=4_300,
        reserved_micro=1_200,
    )
    return replace(call, **changes)


def closed(call: Call, outcome: CallOutcome, route: Route | None = None) -> ClosedCall:
    entry = call_entry(
        PAYER, BOOK, call, outcome, document_id=DOCUMENT_ID, reasons=(), route=route, when=WHEN
    )
    return ClosedCall(call=call, outcome=outcome, entry=entry)


def open_call(store: Store, call: Call, owner: str = "vlm") -> None:
    assert store.transcriptions.open_call(call, owner=owner, currency=BOOK.currency)
