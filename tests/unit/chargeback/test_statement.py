"""Sums of entries folded into the lines of a statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.chargeback.statement import LedgerSum, OpenCalls, Statement, statement_of
from pipeline.chargeback.statement_lines import StatementBy

NO_CALLS = OpenCalls(calls=0, reserved_tokens=0)
CPU = LedgerSum(
    day="2026-11-02",
    team="retail",
    cost_centre="retail/shop",
    document_id=None,
    reason=None,
    currency="USD",
    model_id=None,
    is_reversal=False,
    is_forced=False,
    is_wasted=False,
    usage_is_estimated=False,
    entries=10,
    priced_entries=10,
    avoided_unpriced_entries=0,
    pages=9,
    vlm_pages=0,
    cached_pages=0,
    cpu_pages=10,
    cpu_s=12.5,
    billed_predicted_tokens=0,
    prompt_tokens=0,
    cached_tokens=0,
    completion_tokens=0,
    reasoning_tokens=0,
    avoided_tokens=16_000,
    cost_micro=280,
    avoided_micro=4_000,
)
CALLS = replace(
    CPU,
    model_id="qwen",
    reason="table_ruled_cells",
    entries=3,
    priced_entries=3,
    pages=0,
    vlm_pages=3,
    cpu_pages=0,
    cpu_s=0.0,
    billed_predicted_tokens=6_000,
    prompt_tokens=6_300,
    cached_tokens=300,
    completion_tokens=1_200,
    reasoning_tokens=100,
    avoided_tokens=0,
    cost_micro=1_500,
    avoided_micro=0,
)


def stated(*sums: LedgerSum, by: StatementBy = StatementBy.TEAM) -> Statement:
    return statement_of(sums, by=by, first_day="2026-11-01", end_day="2026-12-01", open_calls=NO_CALLS)


def test_entries_of_a_team_are_one_line_and_the_total() -> None:
    statement = stated(CPU, CALLS)
    [line] = statement.lines
    [total] = statement.totals
    assert (line.key, line.currency, line.is_forced_vlm) == ("retail", "USD", False)
    bill = line.bill
    assert (bill.pages, bill.vlm_pages, bill.cpu_attempts, bill.vlm_calls) == (9, 3, 10, 3)
    assert (bill.prompt_tokens, bill.cached_tokens) == (6_300, 300)
    assert (bill.completion_tokens, bill.reasoning_tokens) == (1_200, 100)
    assert (bill.cost_micro, bill.avoided_micro, bill.avoided_tokens) == (1_780, 4_000, 16_000)
    assert (bill.cpu_s, bill.wasted_attempts, bill.known_wasted_micro) == (12.5, 0, 0)
    assert (total.bill, total.forced, total.forced_share) == (bill, None, None)


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        (StatementBy.COST_CENTRE, ["retail", "retail/shop"]),
        (StatementBy.PROJECT, ["retail/shop", None]),
        (StatementBy.TEAM, ["retail"]),
        (StatementBy.MODEL, ["qwen", None]),
        (StatementBy.REASON, ["table_ruled_cells", None]),
        (StatementBy.DAY, ["2026-11-02", "2026-11-03"]),
    ],
)
def test_what_the_lines_are(by: StatementBy, keys: list[str | None]) -> None:
    outside = replace(CPU, cost_centre="retail", day="2026-11-03")
    assert [line.key for line in stated(CALLS, outside, by=by).lines] == keys


def test_the_dearest_documents_come_first() -> None:
    sums = [
        replace(CPU, document_id=name, cost_micro=cost) for name, cost in (("a", 1), ("b", 5), ("c", None))
    ]
    statement = stated(*sums, by=StatementBy.DOCUMENT)
    assert [line.key for line in statement.lines] == ["b", "a", "c"]


def test_currencies_are_never_added_up() -> None:
    statement = stated(CALLS, replace(CALLS, currency="EUR", cost_micro=900))
    told = [(line.currency, line.bill.cost_micro) for line in statement.lines]
    assert told == [("EUR", 900), ("USD", 1_500)]
    assert [(total.currency, total.bill.cost_micro) for total in statement.totals] == told


def test_forced_calls_are_a_line_of_their_own_and_a_share_of_the_cost() -> None:
    """What the CPU did for the page is not forced."""
    forced = replace(CALLS, is_forced=True, cost_micro=500)
    statement = stated(replace(CPU, is_forced=True, cost_micro=0), CALLS, forced)
    told = [(line.key, line.is_forced_vlm, line.bill.vlm_calls) for line in statement.lines]
    assert told == [("retail", False, 3), ("retail", True, 3)]
    [total] = statement.totals
    assert (total.bill.cost_micro, total.forced_share) == (2_000, 0.25)


def test_a_reversal_takes_its_entry_off_every_figure() -> None:
    numbers = (
        *("pages", "vlm_pages", "cpu_pages", "billed_predicted_tokens", "prompt_tokens", "cached_tokens"),
        *("completion_tokens", "reasoning_tokens", "cost_micro"),
    )
    wasted = replace(CALLS, is_wasted=True)
    reversal = replace(wasted, is_reversal=True, **{name: -getattr(wasted, name) for name in numbers})
    with_it, without_it = stated(CALLS, wasted, reversal), stated(CALLS)
    assert with_it.lines[0].bill == replace(without_it.lines[0].bill, wasted_micro=0)
    assert with_it.lines[0].bill.known_wasted_micro == 0


def test_what_has_no_price_is_counted_and_named_and_not_shown_as_0() -> None:
    unpriced = replace(CALLS, model_id="new", priced_entries=0, cost_micro=None)
    refused = replace(CALLS, model_id="new", entries=1, priced_entries=1, cost_micro=0)
    statement = stated(unpriced, refused)
    [line] = statement.lines
    assert (line.bill.unpriced_entries, line.bill.cost_micro, line.bill.known_cost_micro) == (3, 0, None)
    assert statement.unpriced == {"new": 3}
    both = stated(unpriced, CALLS, replace(CPU, entries=11, avoided_micro=None, avoided_unpriced_entries=9))
    bill = both.lines[0].bill
    assert (bill.known_cost_micro, bill.unpriced_entries) == (1_780, 4)
    assert bill.known_avoided_micro is None
    assert list(both.unpriced.items()) == [("new", 3), (None, 1)]


def test_failed_attempts_are_waste() -> None:
    statement = stated(CALLS, replace(CALLS, is_wasted=True), replace(CPU, is_wasted=True, entries=2))
    bill = statement.lines[0].bill
    assert (bill.wasted_attempts, bill.wasted_tokens, bill.known_wasted_micro) == (5, 7_500, 1_780)
    unpriced = stated(replace(CALLS, is_wasted=True, priced_entries=0, cost_micro=None)).lines[0].bill
    assert (unpriced.wasted_tokens, unpriced.known_wasted_micro) == (7_500, None)


def test_predicted_tokens_are_compared_where_the_server_said_what_it_billed() -> None:
    estimated = replace(CALLS, usage_is_estimated=True)
    bill = stated(CPU, CALLS, estimated).lines[0].bill
    assert (bill.predicted_prompt_tokens, bill.billed_prompt_tokens) == (6_000, 6_300)
    assert bill.prediction_error == pytest.approx(0.05)
    assert bill.prompt_tokens == 12_600
    assert stated(CPU).lines[0].bill.prediction_error is None


def test_nothing_booked_is_no_line_and_no_total() -> None:
    statement = stated()
    assert (statement.lines, statement.totals, statement.unpriced) == ((), (), {})
