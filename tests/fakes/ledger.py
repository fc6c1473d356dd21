"""Entries of a ledger that nobody ran pages for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any, Final

from models.tables import LedgerKind, LedgerRow
from models.transcription import TokenUsage
from pipeline.chargeback.price_book import UnitPrices, cost_of
from pipeline.store import Store

QWEN: Final = "qwen2.5-vl-7b-fp8"
UNPRICED_MODEL: Final = "new-model"
INVOICE: Final = "ab" * 32
LETTER: Final = "cd" * 32

DOLLARS: Final = UnitPrices(
    currency="USD",
    book_version="ours-000000000001",
    prompt_micro_per_million=125_718,
    cached_micro_per_million=62_859,
    completion_micro_per_million=502_874,
    cpu_page_micro_per_million=27_777_778,
)
EUROS: Final = replace(DOLLARS, currency="EUR", book_version="eu-000000000002")
FREE: Final = UnitPrices(
    currency="USD",
    book_version="free-000000000003",
    prompt_micro_per_million=0,
    cached_micro_per_million=0,
    completion_micro_per_million=0,
    cpu_page_micro_per_million=0,
)
NOTHING: Final = UnitPrices(currency="USD", book_version="ours-000000000001")


def cpu_page(day: str, prices: UnitPrices = DOLLARS, **changes: Any) -> LedgerRow:
    """A page read on the CPU, which avoided a call."""
    values = {
        "kind": LedgerKind.CPU_PAGE,
        "outcome": "read",
        "route": "ocr",
        "pages": 1,
        "cpu_pages": 1,
        "cpu_s": 1.5,
        "avoided_tokens": 1_800,
        "avoided_micro": 528,
        "cost_micro": cost_of(prices, cpu_pages=1),
    }
    return _row(day, prices, values | changes)


def vlm_call(day: str, prices: UnitPrices = DOLLARS, **changes: Any) -> LedgerRow:
    """A call that gave the page its text; its cost follows from its tokens unless one is given."""
    values = {
        "kind": LedgerKind.VLM_CALL,
        "outcome": "accepted",
        "route": "vlm",
        "model_id": QWEN,
        "reason": "table_ruled_cells",
        "vlm_pages": 1,
        "predicted_visual_tokens": 2_240,
        "predicted_prompt_tokens": 2_300,
        "prompt_tokens": 2_330,
        "cached_tokens": 90,
        "completion_tokens": 410,
    } | changes
    usage = TokenUsage(
        prompt_tokens=values["prompt_tokens"],
        cached_tokens=values["cached_tokens"],
        completion_tokens=values["completion_tokens"],
    )
    return _row(day, prices, {"cost_micro": cost_of(prices, usage)} | values)


def cache_hit(day: str, cached_pages: int, prices: UnitPrices = DOLLARS, **changes: Any) -> LedgerRow:
    values = {
        "kind": LedgerKind.CACHE_HIT,
        "outcome": "cache_hit",
        "cached_pages": cached_pages,
        "page_number": None,
        "attempt": None,
        "cost_micro": 0,
    }
    return _row(day, prices, values | changes)


def reversal(row: LedgerRow, day: str) -> LedgerRow:
    """Takes back an entry that the ledger has."""
    names = [column.key for column in LedgerRow.__table__.columns]
    same = {name: getattr(row, name) for name in names if name not in ("entry_id", "entry_key", *_NEGATED)}
    negated = {name: None if (value := getattr(row, name)) is None else -value for name in _NEGATED}
    key = f"reversal/{row.entry_id}"
    changes = {"kind": LedgerKind.REVERSAL, "day": day, "reverses_entry_id": row.entry_id}
    return LedgerRow(**same | negated | changes | {"entry_key": key, "booked_at_s": _noon_s(day)})


_NEGATED: Final = (
    *("pages", "vlm_pages", "cached_pages", "cpu_pages", "cpu_s"),
    *("predicted_visual_tokens", "predicted_prompt_tokens", "prompt_tokens", "cached_tokens"),
    *("completion_tokens", "reasoning_tokens", "avoided_tokens", "avoided_micro", "cost_micro"),
)


def book(store: Store, *rows: LedgerRow) -> None:
    """The rows stay readable, with the numbers that they got."""
    with store.database.write() as session:
        session.expire_on_commit = False
        session.add_all(rows)


def every_kind(store: Store) -> None:
    """A ledger of November 2026 with an entry of every kind: two currencies, two models of which one has no price, a
    forced call, a wasted one, an estimated one, pages for nothing, and entries taken back, one of them October's."""
    october = vlm_call("2026-10-20", cost_centre="research")
    mistaken = vlm_call("2026-11-05", cost_centre="research/ocr", document_id=LETTER)
    book(store, october, mistaken)
    book(
        store,
        cpu_page("2026-11-02", cost_centre="research"),
        cpu_page("2026-11-02", FREE, cost_centre="research", page_number=2),
        cpu_page("2026-11-02", NOTHING, cost_centre="4711", avoided_micro=None),
        vlm_call("2026-11-02", cost_centre="research", is_forced=True, reason="forced_vlm"),
        vlm_call("2026-11-03", cost_centre="research/ocr", document_id=LETTER),
        vlm_call(
            "2026-11-03",
            cost_centre="research/ocr",
            document_id=LETTER,
            outcome="truncated",
            attempt=2,
            is_wasted=True,
            vlm_pages=0,
            completion_tokens=2_048,
            reasoning_tokens=300,
        ),
        vlm_call(
            "2026-11-03",
            cost_centre="research/ocr",
            outcome="abandoned",
            is_wasted=True,
            vlm_pages=0,
            prompt_tokens=2_300,
            cached_tokens=0,
            completion_tokens=0,
            usage_is_estimated=True,
        ),
        vlm_call(
            "2026-11-04",
            cost_centre="4711",
            outcome="rate_limited",
            is_wasted=True,
            vlm_pages=0,
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
        ),
        vlm_call("2026-11-04", NOTHING, cost_centre="4711", model_id=UNPRICED_MODEL),
        vlm_call("2026-11-04", EUROS, cost_centre="4711/berlin"),
        cache_hit("2026-11-04", 12, cost_centre="research"),
        reversal(october, "2026-11-06"),
        reversal(mistaken, "2026-11-06"),
    )


_numbers = count(1)


def _row(day: str, prices: UnitPrices, values: dict[str, Any]) -> LedgerRow:
    cost_centre = values.get("cost_centre", "retail")
    same = {
        "entry_key": f"entry/{next(_numbers)}",
        "booked_at_s": _noon_s(day),
        "day": day,
        "cost_centre": cost_centre,
        "team": cost_centre.partition("/")[0],
        "submitter": "ada",
        "document_id": INVOICE,
        "reading_id": 1,
        "page_number": 1,
        "attempt": 1,
        "is_forced": False,
        "is_audit": False,
        "is_wasted": False,
        "currency": prices.currency,
        "price_book_version": prices.book_version,
        "prompt_price_micro": prices.prompt_micro_per_million,
        "cached_price_micro": prices.cached_micro_per_million,
        "completion_price_micro": prices.completion_micro_per_million,
        "cpu_page_price_micro": prices.cpu_page_micro_per_million,
        "avoided_micro": 0,
    }
    return LedgerRow(**same | values)


def _noon_s(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
