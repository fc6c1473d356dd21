"""What the ledger is asked for, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import text

from models.document import Document, MediaType
from pipeline.chargeback.charges import Quantities
from pipeline.chargeback.focus import focus_rows
from pipeline.chargeback.statement import Statement, statement_of
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.store import Store, open_store
from pipeline.store.statements import StatementStore, sums_query
from tests.fakes.ledger import (
    DOLLARS,
    INVOICE,
    LETTER,
    NOTHING,
    QWEN,
    book,
    cache_hit,
    cpu_page,
    every_kind,
    reversal,
    vlm_call,
)

NOVEMBER = ("2026-11-01", "2026-12-01")


@pytest.fixture
def ledger(store: Store) -> StatementStore:
    return StatementStore(store.database)


def november(ledger: StatementStore, by: StatementBy = StatementBy.COST_CENTRE) -> Statement:
    return statement_of(
        ledger.sums((by,), *NOVEMBER),
        by=by,
        first_day=NOVEMBER[0],
        end_day=NOVEMBER[1],
        open_calls=ledger.open_calls(0.0),
    )


def test_a_statement_of_every_kind_of_entry(store: Store, ledger: StatementStore) -> None:
    every_kind(store)
    told = [
        (line.key, line.currency, line.is_forced_vlm, line.bill.vlm_calls, line.bill.known_cost_micro)
        for line in november(ledger).lines
    ]
    assert told == [
        ("4711", "USD", False, 2, None),
        ("4711/berlin", "EUR", False, 1, 493),
        ("research", "USD", False, -1, 28 - 493),
        ("research", "USD", True, 1, 493),
        ("research/ocr", "USD", False, 3, 2_099),
    ]
    statement = november(ledger)
    assert statement.unpriced == {"new-model": 1, None: 1}
    euros, dollars = statement.totals
    assert (euros.bill.cost_micro, dollars.bill.cost_micro) == (493, 2_127)
    assert (dollars.bill.cached_pages, dollars.bill.wasted_attempts, dollars.bill.wasted_tokens) == (
        12,
        3,
        2_330 + 2_048 + 2_300,
    )
    assert (dollars.bill.predicted_prompt_tokens, dollars.bill.billed_prompt_tokens) == (6_900, 6_990)


def test_a_statement_of_one_cost_centre_has_its_projects_and_nobody_elses(
    store: Store, ledger: StatementStore
) -> None:
    every_kind(store)

    def keys_of(cost_centre: str) -> set[str | None]:
        sums = ledger.sums((StatementBy.COST_CENTRE,), *NOVEMBER, cost_centre=cost_centre)
        statement = statement_of(
            sums,
            by=StatementBy.COST_CENTRE,
            first_day=NOVEMBER[0],
            end_day=NOVEMBER[1],
            open_calls=ledger.open_calls(0.0),
        )
        return {line.key for line in statement.lines}

    assert keys_of("4711") == {"4711", "4711/berlin"}
    assert keys_of("4711/berlin") == {"4711/berlin"}
    assert keys_of("471") == set()
    assert keys_of("4711%") == set()


def test_a_document_s_bill_is_that_of_one_submission(store: Store, ledger: StatementStore) -> None:
    ours, theirs = (
        store.submissions.start_submission(out_dir="/out", cost_centre=name, submitter=None, fingerprint="x")
        for name in ("harbour", "quay")
    )
    book(
        store,
        cpu_page("2026-11-02", cost_centre="harbour", submission_id=ours),
        vlm_call("2026-12-03", cost_centre="harbour", submission_id=ours, is_wasted=True),
        vlm_call("2026-11-02", cost_centre="quay", submission_id=theirs),
        cpu_page("2026-11-02", cost_centre="harbour", submission_id=ours, document_id=LETTER),
    )
    sums = ledger.document_sums(INVOICE, ours)
    statement = statement_of(
        sums,
        by=StatementBy.MODEL,
        first_day="2026-11-02",
        end_day="2026-12-04",
        open_calls=ledger.open_calls(0.0, submission_id=ours),
    )
    assert [line.key for line in statement.lines] == [QWEN, None]
    bill = statement.totals[0].bill
    assert (bill.cpu_attempts, bill.vlm_calls, bill.wasted_attempts) == (1, 1, 1)
    assert (bill.predicted_prompt_tokens, bill.billed_prompt_tokens) == (2_300, 2_330)
    assert ledger.document_sums(LETTER, theirs) == ()


@pytest.mark.parametrize("by", StatementBy)
def test_whatever_the_lines_are_they_come_to_the_same(
    store: Store, ledger: StatementStore, by: StatementBy
) -> None:
    every_kind(store)
    statement = november(ledger, by)
    assert statement.totals == november(ledger).totals
    for total in statement.totals:
        of_lines = [line.bill for line in statement.lines if line.currency == total.currency]
        assert sum(bill.cost_micro or 0 for bill in of_lines) == total.bill.cost_micro
        assert sum(bill.prompt_tokens for bill in of_lines) == total.bill.prompt_tokens


def test_the_window_begins_with_its_first_day_and_ends_before_its_last(
    store: Store, ledger: StatementStore
) -> None:
    days = ("2026-10-31", "2026-11-01", "2026-11-30", "2026-12-01")
    book(store, *(cpu_page(day, avoided_tokens=number) for number, day in enumerate(days)))
    assert november(ledger).totals[0].bill.avoided_tokens == 1 + 2


def test_a_million_times_a_million_micro_units_is_counted_exactly(
    store: Store, ledger: StatementStore
) -> None:
    book(store, *(cpu_page("2026-11-01", cost_micro=2**62 // 3 + odd) for odd in (0, 1)))
    [total] = november(ledger).totals
    assert total.bill.cost_micro == 2 * (2**62 // 3) + 1


def test_teams_and_days_are_told_apart_for_a_chart(store: Store, ledger: StatementStore) -> None:
    every_kind(store)
    sums = ledger.sums((StatementBy.TEAM, StatementBy.DAY), *NOVEMBER)
    assert {(one.team, one.day) for one in sums} == {
        *(("research", f"2026-11-0{day}") for day in (2, 3, 4, 5, 6)),
        *(("4711", f"2026-11-0{day}") for day in (2, 4)),
    }


@pytest.mark.parametrize("by", [by for by in StatementBy if by is not StatementBy.DOCUMENT])
def test_sqlite_reads_one_index_in_its_order_and_sorts_nothing(tmp_path: Path, by: StatementBy) -> None:
    """PostgreSQL plans by what a table holds: ``benchmarks/statements.py`` shows its plans."""
    query = sums_query((by,), *NOVEMBER, is_sqlite=True)
    with closing(open_store(tmp_path)) as store, store.database.read() as session:
        spelled = query.compile(session.connection(), compile_kwargs={"literal_binds": True})
        plan = [row.detail for row in session.execute(text(f"EXPLAIN QUERY PLAN {spelled}"))]
    assert plan == ["SEARCH ledger USING COVERING INDEX ix_ledger_statement (day>? AND day<?)"]


def test_open_calls_are_those_begun_before_the_end_of_the_window(
    store: Store, ledger: StatementStore
) -> None:
    """Started by hand: a call's moment is its own."""
    _open_calls(store, started_s=(100.0, 200.0), reserved_tokens=(3_000, None))
    assert ledger.open_calls(100.0).calls == 0
    told = ledger.open_calls(300.0)
    assert (told.calls, told.reserved_tokens) == (2, 3_000)
    assert [ledger.calls_under_way(moment) for moment in (99.0, 150.0, 250.0)] == [0, 1, 2]
    assert ledger.open_calls_of_page(INVOICE, 1) == 2
    assert ledger.open_calls_of_page(INVOICE, 2) == ledger.open_calls_of_page(LETTER, 1) == 0


def test_a_call_that_ended_is_under_way_until_it_did(store: Store, ledger: StatementStore) -> None:
    _open_calls(store, started_s=(100.0,), reserved_tokens=(1,))
    with store.database.write() as session:
        session.execute(text("UPDATE vlm_attempts SET verdict = 'accepted', elapsed_s = 30"))
    assert [ledger.calls_under_way(moment) for moment in (99.0, 101.0, 131.0)] == [0, 1, 0]
    assert ledger.open_calls(1_000.0).calls == 0


def test_documents_have_the_name_of_their_newest_source(store: Store, ledger: StatementStore) -> None:
    document = Document(document_id=INVOICE, media_type=MediaType.PDF, byte_count=1, page_count=1)
    store.pages.save_document(document)
    reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
    submission_id = store.submissions.start_submission(
        out_dir="/out", cost_centre="retail", submitter="ada", fingerprint="f" * 64
    )
    for name in ("old.pdf", "new.pdf"):
        store.submissions.add_source(submission_id, name=name, output_stem=name, reading_id=reading_id)
    assert ledger.document_names([INVOICE, LETTER]) == {INVOICE: "new.pdf"}
    assert ledger.document_names([]) == {}


def test_charges_are_summed_where_they_are_alike(store: Store, ledger: StatementStore) -> None:
    dearer = replace(DOLLARS, prompt_micro_per_million=200_000)
    book(
        store,
        vlm_call("2026-11-02"),
        vlm_call("2026-11-02", document_id=LETTER, is_wasted=True, usage_is_estimated=True),
        vlm_call("2026-11-02", dearer),
        vlm_call("2026-11-02", NOTHING),
        vlm_call("2026-11-02", is_forced=True),
        vlm_call("2026-11-03"),
        cpu_page("2026-11-03", is_forced=True),
        cpu_page("2026-11-03"),
    )
    told = [
        (one.day, one.model_id, one.is_forced_vlm, one.entries, one.cost_micro)
        for one in ledger.charge_sums(*NOVEMBER)
    ]
    assert sorted(told, key=str) == [
        ("2026-11-02", QWEN, False, 1, 660),
        ("2026-11-02", QWEN, False, 1, None),
        ("2026-11-02", QWEN, False, 2, 986),
        ("2026-11-02", QWEN, True, 1, 493),
        ("2026-11-03", QWEN, False, 1, 493),
        ("2026-11-03", None, False, 2, 56),
    ]


def test_reversals_are_charges_of_their_own_and_name_the_day_they_take_back(
    store: Store, ledger: StatementStore
) -> None:
    call, hit = vlm_call("2026-10-30"), cache_hit("2026-11-02", 5)
    book(store, call, hit)
    book(store, vlm_call("2026-11-02"), reversal(call, "2026-11-02"), reversal(hit, "2026-11-02"))
    taken_back = [one for one in ledger.charge_sums(*NOVEMBER) if one.reversed_day is not None]
    assert [(one.reversed_day, one.cost_micro) for one in taken_back] == [
        ("2026-11-02", 0),
        ("2026-10-30", -493),
    ]
    assert taken_back[1].quantities == Quantities(
        cpu_pages=0, cached_pages=0, prompt_tokens=-2_330, cached_tokens=-90, completion_tokens=-410
    )


def test_the_export_comes_to_what_the_statement_does(store: Store, ledger: StatementStore) -> None:
    every_kind(store)
    rows = [row for charges in ledger.charge_sums(*NOVEMBER) for row in focus_rows(charges)]
    for total in november(ledger).totals:
        same = [row for row in rows if row["BillingCurrency"] == total.currency]
        assert sum(Decimal(row["BilledCost"] or "") for row in same) * 10**6 == total.bill.cost_micro


def test_tokens_booked_in_a_window_by_model(store: Store, ledger: StatementStore) -> None:
    early, late = (vlm_call("2026-11-02", booked_at_s=moment) for moment in (100.0, 300.0))
    book(store, early, late, cpu_page("2026-11-02", booked_at_s=200.0))
    estimated = vlm_call("2026-11-02", booked_at_s=200.0, usage_is_estimated=True, completion_tokens=0)
    other = vlm_call("2026-11-02", booked_at_s=150.0, model_id="other")
    taken_back = reversal(early, "2026-11-02")
    taken_back.booked_at_s = 250.0
    book(store, estimated, other, taken_back)
    told = {one.model_id: one for one in ledger.booked_tokens(100.0, 300.0)}
    assert sorted(told) == ["other", QWEN]
    qwen = told[QWEN]
    assert (qwen.prompt_tokens, qwen.completion_tokens) == (2_330, 0)
    assert (qwen.reversals, qwen.estimated_calls) == (1, 1)
    assert ledger.booked_tokens(300.0, 400.0) == ()


def _open_calls(store: Store, *, started_s: Sequence[float], reserved_tokens: Sequence[int | None]) -> None:
    document = Document(document_id=INVOICE, media_type=MediaType.PDF, byte_count=1, page_count=2)
    store.pages.save_document(document)
    reading_id = store.pages.open_reading(document, "f" * 64, force=False).reading_id
    names = (
        "reading_id, page_number, attempt, request_id, model_id, tier, width_px, height_px, "
        "predicted_visual_tokens, temperature, started_at_s, reserved_tokens"
    )
    with store.database.write() as session:
        for attempt, (moment, reserved) in enumerate(zip(started_s, reserved_tokens, strict=True), start=1):
            session.execute(
                text(
                    f"INSERT INTO vlm_attempts ({names}) "
                    "VALUES (:reading, 1, :attempt, 'r', 'qwen', 'full', 1, 1, 1, 0.1, :moment, :reserved)"
                ),
                {"reading": reading_id, "attempt": attempt, "moment": moment, "reserved": reserved},
            )
