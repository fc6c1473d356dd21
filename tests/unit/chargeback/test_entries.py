"""What the ledger says of an attempt: who pays, for what, at which price."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.page import Route
from models.tables import LedgerKind, LedgerRow
from models.transcription import Call, CallOutcome, TokenUsage, Verdict
from pipeline.answers.prompt import estimated_prompt_tokens
from pipeline.chargeback.entries import (
    Account,
    LedgerEntry,
    Payer,
    cache_hit_entry,
    call_entry,
    failed_page_entry,
    read_page_entry,
    reversal_entry,
)
from pipeline.chargeback.price_book import parse_price_book

BOOK = parse_price_book(
    """
schema_version = 1
name = "ours"
currency = "EUR"

[[entries]]
effective_from = 2026-01-01
per_cpu_page = "0.00003"

[entries.models.qwen]
per_million_prompt_tokens = "100"
per_million_cached_tokens = "10"
per_million_completion_tokens = "400"

[[entries]]
effective_from = 2026-07-01
""",
    "book",
)
WHEN = datetime(2026, 3, 31, 23, 30, tzinfo=UTC)
UNPRICED = datetime(2026, 7, 1, tzinfo=UTC)
PAYER = Payer(cost_centre="harbour/ferries", submitter="ada", submission_id=7)
ACCOUNT = Account(payer=PAYER, price_book=BOOK, model_id="qwen")
DOCUMENT_ID = "ab" * 32
BILLED = TokenUsage(prompt_tokens=2_230, completion_tokens=410, cached_tokens=30)
CALL = Call(
    reading_id=5,
    page_number=2,
    attempt=3,
    submission_id=7,
    cost_centre="harbour/ferries",
    request_id="r",
    model_id="qwen",
    tier="full",
    width_px=1,
    height_px=1,
    predicted_visual_tokens=2_000,
    predicted_prompt_tokens=2_215,
    temperature=0.1,
    started_at_s=WHEN.timestamp(),
    reserved_tokens=4_300,
    reserved_micro=1_200,
)


def page(route: Route, *signals: str, text: str = "x" * 301) -> dict[str, Any]:
    reasons = [{"signal": signal, "measured": 1.0, "threshold": 1.0} for signal in signals]
    return {
        "page_number": 2,
        "route": route.value,
        "text": text,
        "triage": {"escalate": bool(signals), "reasons": reasons},
        "visual_tokens_if_vlm": 1_785,
    }


def read(page: dict[str, Any], *, is_final: bool = True, when: datetime = WHEN) -> LedgerEntry:
    return read_page_entry(
        ACCOUNT, page, document_id=DOCUMENT_ID, reading_id=5, is_final=is_final, cpu_s=1.25, when=when
    )


def failed(*, is_final: bool) -> LedgerEntry:
    return failed_page_entry(
        ACCOUNT,
        document_id=DOCUMENT_ID,
        reading_id=5,
        page_number=2,
        code="engine_failed",
        is_final=is_final,
        cpu_s=None,
        when=WHEN,
    )


def called(
    verdict: Verdict = Verdict.ACCEPTED,
    usage: TokenUsage = BILLED,
    *,
    route: Route | None = Route.VLM,
    signals: tuple[str, ...] = (),
    when: datetime = WHEN,
) -> LedgerEntry:
    return call_entry(
        PAYER,
        BOOK,
        replace(CALL, started_at_s=when.timestamp()),
        CallOutcome(verdict=verdict, usage=usage, elapsed_s=1.0),
        document_id=DOCUMENT_ID,
        reasons=page(Route.OCR_DEGRADED, *signals)["triage"]["reasons"],
        route=route,
        when=when,
    )


def test_a_page_that_triage_kept_says_what_the_vlm_would_have_cost() -> None:
    entry = read(page(Route.OCR))
    assert (entry.kind, entry.outcome, entry.route) == (LedgerKind.CPU_PAGE, "read", Route.OCR)
    assert (entry.pages, entry.cpu_pages, entry.is_wasted, entry.cpu_s) == (1, 1, False, 1.25)
    assert (entry.cost_micro, entry.model_id, entry.prices.prompt_micro_per_million) == (30, None, None)
    prompt_tokens = 1_785 + estimated_prompt_tokens(1)
    assert entry.avoided_tokens == prompt_tokens
    assert entry.avoided_micro == prompt_tokens * 100 + 101 * 400  # 301 characters are 101 tokens


@pytest.mark.parametrize(
    ("route", "is_final", "booked_route", "is_avoided"),
    [
        (Route.TEXT_LAYER, True, Route.TEXT_LAYER, True),
        (Route.OCR, True, Route.OCR, True),
        (Route.BLANK, True, Route.BLANK, False),
        (Route.OCR_DEGRADED, True, Route.OCR_DEGRADED, False),
        (Route.OCR_DEGRADED, False, None, False),
    ],
)
def test_only_a_final_page_has_a_route_and_only_one_with_text_that_was_accepted_avoided_the_vlm(
    route: Route, is_final: bool, booked_route: Route | None, is_avoided: bool
) -> None:
    entry = read(page(route), is_final=is_final)
    assert (entry.route, entry.pages) == (booked_route, 1)
    assert (entry.avoided_tokens > 0, entry.avoided_micro != 0) == (is_avoided, is_avoided)


@pytest.mark.parametrize(
    ("signals", "told"),
    [
        ((), (None, False, False)),
        (("stamp_strength", "uncovered_ink_share"), ("stamp_strength", False, False)),
        (("forced_vlm", "stamp_strength"), ("forced_vlm", True, False)),
        (("audit",), ("audit", False, True)),
        (("forced_ocr", "stamp_strength"), ("stamp_strength", False, False)),
    ],
)
def test_what_triage_said_is_on_the_page_and_on_its_calls(
    signals: tuple[str, ...], told: tuple[str | None, bool, bool]
) -> None:
    for entry in (read(page(Route.OCR_DEGRADED, *signals)), called(signals=signals)):
        assert (entry.reason, entry.is_forced, entry.is_audit) == told


def test_a_failed_attempt_costs_a_page_of_the_cpu_and_is_waste() -> None:
    again, given_up = failed(is_final=False), failed(is_final=True)
    for entry in (again, given_up):
        assert (entry.outcome, entry.is_wasted, entry.cpu_pages, entry.cost_micro) == (
            "engine_failed",
            True,
            1,
            30,
        )
        assert (entry.avoided_tokens, entry.avoided_micro, entry.route, entry.cpu_s) == (0, 0, None, None)
    assert (again.pages, given_up.pages) == (0, 1)


def test_a_call_costs_what_was_billed() -> None:
    entry = called()
    assert entry.cost_micro == 2_200 * 100 + 30 * 10 + 410 * 400
    assert (entry.prompt_tokens, entry.cached_tokens, entry.completion_tokens) == (2_230, 30, 410)
    assert (entry.predicted_visual_tokens, entry.predicted_prompt_tokens) == (2_000, 2_215)
    assert (entry.vlm_pages, entry.pages, entry.is_wasted) == (1, 0, False)
    assert (entry.model_id, entry.outcome, entry.attempt) == ("qwen", "accepted", 3)


@pytest.mark.parametrize(
    ("verdict", "route", "vlm_pages"),
    [
        (Verdict.ACCEPTED, Route.VLM, 1),
        (Verdict.REPETITION, None, 0),
        (Verdict.REPETITION, Route.OCR_DEGRADED, 0),
        (Verdict.ABANDONED, None, 0),
    ],
)
def test_a_call_is_wasted_unless_its_answer_is_the_page_s_text(
    verdict: Verdict, route: Route | None, vlm_pages: int
) -> None:
    entry = called(verdict, route=route)
    assert (entry.vlm_pages, entry.is_wasted, entry.route) == (vlm_pages, not vlm_pages, route)


def test_a_call_whose_page_went_to_somebody_else_is_wasted_and_costs_the_same() -> None:
    lost = called().without_page()
    assert (lost.vlm_pages, lost.is_wasted, lost.route, lost.outcome) == (0, True, None, "accepted")
    assert lost.cost_micro == called().cost_micro


def test_a_server_that_bills_more_cached_tokens_than_prompt_is_believed_for_the_prompt() -> None:
    usage = TokenUsage(prompt_tokens=10, completion_tokens=4, cached_tokens=50, reasoning_tokens=90)
    entry = called(usage=usage)
    assert (entry.cached_tokens, entry.reasoning_tokens) == (10, 4)
    assert entry.cost_micro == 10 * 10 + 4 * 400


def test_what_has_no_price_is_booked_without_a_cost_and_not_for_nothing() -> None:
    for entry in (read(page(Route.OCR), when=UNPRICED), called(when=UNPRICED)):
        assert entry.cost_micro is None
    assert read(page(Route.OCR), when=UNPRICED).avoided_micro is None
    assert read(page(Route.OCR_DEGRADED), when=UNPRICED).avoided_micro == 0
    assert read(page(Route.BLANK), when=UNPRICED).avoided_micro == 0
    refused = called(Verdict.UNAUTHORISED, TokenUsage(prompt_tokens=0, completion_tokens=0), when=UNPRICED)
    assert refused.cost_micro == 0


def test_a_cache_hit_costs_nothing_whatever_the_prices() -> None:
    for when in (WHEN, UNPRICED):
        entry = cache_hit_entry(ACCOUNT, document_id=DOCUMENT_ID, reading_id=5, cached_pages=12, when=when)
        assert (entry.outcome, entry.cached_pages, entry.cost_micro) == ("cache_hit", 12, 0)
        assert (entry.pages, entry.cpu_pages, entry.prompt_tokens, entry.completion_tokens) == (0, 0, 0, 0)


def test_a_day_is_that_of_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert called(when=WHEN.astimezone(east)).day == "2026-03-31"


def test_attempts_have_names_that_no_other_has() -> None:
    kinds = (
        replace(failed(is_final=True), attempt=3),
        replace(failed(is_final=True), attempt=4),
        called(),
        cache_hit_entry(ACCOUNT, document_id=DOCUMENT_ID, reading_id=5, cached_pages=1, when=WHEN),
        reversal_entry(called(), 9, when=WHEN),
        reversal_entry(called(), 10, when=WHEN),
    )
    assert len({entry.entry_key for entry in kinds}) == len(kinds)
    longest = replace(CALL, reading_id=2**63 - 1, page_number=2**31 - 1, attempt=2**31 - 1)
    entry = replace(
        called(), reading_id=longest.reading_id, page_number=longest.page_number, attempt=longest.attempt
    )
    assert len(entry.entry_key) <= LedgerRow.entry_key.type.length


@given(
    st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.sampled_from(Verdict)
)
def test_an_entry_and_its_reversal_add_up_to_nothing(
    prompt_tokens: int, completion_tokens: int, cached_tokens: int, verdict: Verdict
) -> None:
    usage = TokenUsage(
        prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cached_tokens=cached_tokens
    )
    for entry in (called(verdict, usage), read(page(Route.OCR)), failed(is_final=True)):
        back = reversal_entry(entry, 9, when=UNPRICED)
        assert back.kind is LedgerKind.REVERSAL
        assert (back.day, back.reverses_entry_id, back.payer) == ("2026-07-01", 9, PAYER)
        for name in (field for field in LedgerEntry.__slots__ if field not in KEPT_BY_A_REVERSAL):
            value, negated = getattr(entry, name), getattr(back, name)
            assert (value is None and negated is None) or value + negated == 0, name


KEPT_BY_A_REVERSAL = {
    "kind", "booked_at", "payer", "document_id", "reading_id", "page_number", "attempt", "model_id", "route", "outcome",
    "reason", "is_forced", "is_audit", "is_wasted", "usage_is_estimated", "prices", "reverses_entry_id",
}  # fmt: skip
"""All others are numbers that bills sum."""
