"""The ledger on both databases: each attempt is in it once, and nobody changes what is in it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from models.document import Document, MediaType
from models.errors import EntryNotReversible, StoreUnavailable
from models.page import Route
from models.tables import LedgerKind
from models.transcription import TokenUsage, Verdict
from pipeline.chargeback.entries import LedgerEntry, Payer, cache_hit_entry
from pipeline.store import Call, CallOutcome, ClosedCall, Store, connect_store
from pipeline.store.ledger import insert_entries
from tests.unit.store.booking import (
    ACCOUNT,
    BOOK,
    DOCUMENT_ID,
    PAYER,
    WHEN,
    closed,
    cpu_entry,
    new_call,
    open_call,
)

DOCUMENT = Document(document_id=DOCUMENT_ID, media_type=MediaType.PDF, byte_count=10, page_count=3)
FINGERPRINT = "f" * 64
BILLED = TokenUsage(prompt_tokens=2_330, completion_tokens=410, cached_tokens=90, reasoning_tokens=5)


@pytest.fixture
def reading_id(store: Store) -> int:
    store.pages.save_document(DOCUMENT)
    return store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False).reading_id


@pytest.fixture
def call(store: Store, reading_id: int) -> Call:
    """An open call about page 1."""
    read(store, reading_id, awaits_vlm=True)
    assert store.transcriptions.claim_page(reading_id, 1, owner="vlm", lease_s=60)
    call = new_call(reading_id)
    open_call(store, call)
    return call


def read(
    store: Store, reading_id: int, *, owner: str = "cpu", awaits_vlm: bool = False, **result: Any
) -> bool:
    store.pages.claim_pages(reading_id, [1], owner=owner, lease_s=60)
    return finish(store, reading_id, owner=owner, awaits_vlm=awaits_vlm, **result)


def finish(store: Store, reading_id: int, *, owner: str, awaits_vlm: bool = False, **result: Any) -> bool:
    reasons = [{"signal": "forced_vlm"}, {"signal": "audit"}] if awaits_vlm else []
    return store.pages.finish_page(
        reading_id,
        1,
        owner=owner,
        **{
            "page": {"text": "by the CPU"},
            "summary": {"reasons": reasons},
            "route": Route.OCR_DEGRADED if awaits_vlm else Route.OCR,
            "elapsed_s": 1.0,
            "entry": cpu_entry(reading_id),
            "awaits_vlm": awaits_vlm,
            **result,
        },
    )


def settle(store: Store, reading_id: int, last_call: ClosedCall | None, owner: str = "vlm") -> bool:
    return store.transcriptions.finish_page(
        reading_id,
        1,
        owner=owner,
        page={"text": "by the VLM"},
        summary={"reasons": []},
        route=Route.VLM,
        degraded_code=None,
        elapsed_s=5.0,
        last_call=last_call,
    )


def accepted(call: Call) -> ClosedCall:
    return closed(call, CallOutcome(verdict=Verdict.ACCEPTED, usage=BILLED, elapsed_s=1.0), Route.VLM)


def booked(store: Store) -> list[LedgerEntry]:
    return [one.entry for one in store.ledger.entries_of_page(DOCUMENT_ID, 1)]


def names(store: Store) -> list[str]:
    return [
        entry.entry_key.partition("/")[0] + "/" + entry.entry_key.split("/")[-1] for entry in booked(store)
    ]


def test_an_entry_is_read_as_it_was_booked(store: Store, reading_id: int, call: Call) -> None:
    assert settle(store, reading_id, accepted(call))
    cpu, vlm = booked(store)
    assert cpu == replace(cpu_entry(reading_id), attempt=1)
    assert vlm == accepted(call).entry
    assert (vlm.vlm_pages, vlm.cost_micro) == (1, accepted(call).entry.cost_micro)
    assert vlm.cost_micro


@pytest.mark.parametrize("settle_as", ["finish", "fail", "return"])
def test_an_attempt_on_the_cpu_is_booked_once_and_for_its_owner_alone(
    store: Store, reading_id: int, settle_as: str
) -> None:
    def settled(owner: str) -> bool:
        if settle_as == "finish":
            return finish(store, reading_id, owner=owner)
        settle = store.pages.fail_page if settle_as == "fail" else store.pages.return_page
        return settle(reading_id, 1, owner=owner, code="x", message="y", entry=cpu_entry(reading_id))

    assert not settled("me")
    store.pages.claim_pages(reading_id, [1], owner="me", lease_s=60)
    assert not settled("other")
    assert booked(store) == []
    assert settled("me")
    assert not settled("me")
    assert names(store) == ["cpu_page/1"]


def test_attempts_are_numbered_on_when_a_page_is_read_again(store: Store, reading_id: int) -> None:
    store.pages.claim_pages(reading_id, [1], owner="cpu", lease_s=60)
    crash = {"code": "worker_crashed", "message": "gone", "entry": cpu_entry(reading_id)}
    assert store.pages.return_page(reading_id, 1, owner="cpu", **crash)
    assert read(store, reading_id)
    store.pages.open_reading(DOCUMENT, FINGERPRINT, force=True)
    assert store.pages.attempts(reading_id, 1) == 0
    assert read(store, reading_id)
    assert names(store) == ["cpu_page/1", "cpu_page/2", "cpu_page/3"]
    other = store.pages.open_reading(DOCUMENT, "e" * 64, force=False).reading_id
    assert read(store, other, entry=cpu_entry(other))
    assert [entry.attempt for entry in booked(store) if entry.reading_id == other] == [1]


def test_a_page_given_back_is_not_booked(store: Store, reading_id: int) -> None:
    store.pages.claim_pages(reading_id, [1], owner="killed", lease_s=60)
    assert store.pages.release_leases("killed") == 1
    assert booked(store) == []


@pytest.mark.parametrize("lie", [{"page": {"lie": {1}}}, {"summary": {"lie": {1}}}])
def test_a_result_that_cannot_be_stored_books_nothing(
    store: Store, reading_id: int, lie: dict[str, object]
) -> None:
    with pytest.raises((ValueError, TypeError)):
        read(store, reading_id, **lie)
    assert booked(store) == []


def test_where_an_entry_cannot_be_booked_the_page_stays_unsettled(store: Store, reading_id: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        read(store, reading_id, entry=replace(cpu_entry(reading_id), cost_micro=2**70))
    assert next(store.pages.stream_pages(reading_id)).attempts == 0
    assert booked(store) == []
    assert finish(store, reading_id, owner="cpu")
    assert names(store) == ["cpu_page/1"]


def test_a_call_is_booked_by_whoever_closes_it_first(store: Store, reading_id: int, call: Call) -> None:
    again = CallOutcome(verdict=Verdict.EMPTY, usage=BILLED, elapsed_s=1.0)
    store.transcriptions.close_call(closed(call, again))
    store.transcriptions.close_call(accepted(call))
    assert settle(store, reading_id, accepted(call))
    assert names(store) == ["cpu_page/1", "vlm_call/1"]
    assert booked(store)[1].outcome == "empty"


def test_a_page_settled_twice_is_booked_once(store: Store, reading_id: int, call: Call) -> None:
    assert settle(store, reading_id, accepted(call))
    assert not settle(store, reading_id, accepted(call))
    assert names(store) == ["cpu_page/1", "vlm_call/1"]


def test_a_call_about_a_page_that_went_to_another_is_booked_as_waste(
    store: Store, reading_id: int, call: Call
) -> None:
    assert store.pages.release_leases("vlm") == 1
    assert not settle(store, reading_id, accepted(call))
    entry = booked(store)[1]
    assert (entry.is_wasted, entry.vlm_pages, entry.route) == (True, 0, None)
    assert (entry.prompt_tokens, entry.cost_micro) == (2_330, accepted(call).entry.cost_micro)


def test_an_open_call_is_visible_and_once_abandoned_booked_at_its_whole_prompt(
    store: Store, reading_id: int
) -> None:
    submission_id = store.submissions.start_submission(
        out_dir="o", cost_centre=PAYER.cost_centre, submitter="ada", fingerprint=FINGERPRINT
    )
    read(store, reading_id, awaits_vlm=True)
    assert store.transcriptions.claim_page(reading_id, 1, owner="dead", lease_s=60)
    opened = new_call(reading_id, submission_id=submission_id, cost_centre="other/team")
    open_call(store, opened, "dead")
    assert names(store) == ["cpu_page/1"]
    assert query(store, "SELECT count(*) FROM vlm_attempts WHERE verdict IS NULL") == [(1,)]
    assert store.transcriptions.close_abandoned(BOOK) == 0
    store.pages.release_leases("dead")
    assert store.transcriptions.close_abandoned(BOOK) == 1
    assert store.transcriptions.close_abandoned(BOOK) == 0
    store.transcriptions.close_call(accepted(opened))
    assert names(store) == ["cpu_page/1", "vlm_call/1"]
    entry = booked(store)[1]
    assert (entry.outcome, entry.is_wasted, entry.usage_is_estimated) == ("abandoned", True, True)
    assert (entry.prompt_tokens, entry.completion_tokens, entry.predicted_prompt_tokens) == (2_455, 0, 2_455)
    assert entry.payer == Payer(cost_centre="other/team", submitter="ada", submission_id=submission_id)
    assert (entry.reason, entry.is_forced, entry.is_audit) == ("forced_vlm", True, True)
    assert entry.prices.prompt_micro_per_million == 125_718
    assert entry.cost_micro == round(2_455 * 125_718 / 10**6)


def test_a_call_that_was_opened_before_calls_had_an_account_is_its_submission_s(
    store: Store, reading_id: int, call: Call
) -> None:
    statement = "UPDATE vlm_attempts SET cost_centre = NULL, predicted_prompt_tokens = NULL"
    query(store, statement)
    store.pages.release_leases("vlm")
    assert store.transcriptions.close_abandoned(BOOK) == 1
    entry = booked(store)[1]
    assert (entry.payer.cost_centre, entry.prompt_tokens) == ("default", 2_240)


def test_a_cache_hit_is_booked_once_a_submission_and_reading(store: Store, reading_id: int) -> None:
    def hit(submission_id: int | None) -> LedgerEntry:
        account = replace(ACCOUNT, payer=replace(PAYER, submission_id=submission_id))
        return cache_hit_entry(
            account, document_id=DOCUMENT_ID, reading_id=reading_id, cached_pages=3, when=WHEN
        )

    first, second = (
        store.submissions.start_submission(
            out_dir="o", cost_centre="a", submitter=None, fingerprint=FINGERPRINT
        )
        for _ in range(2)
    )
    for submission_id in (first, first, second):
        store.ledger.book_cache_hit(hit(submission_id))
    assert [one.entry for one in store.ledger.cache_hits_of(DOCUMENT_ID)] == [hit(first), hit(second)]


def test_a_reversal_takes_an_entry_back_once_and_is_not_taken_back_itself(
    store: Store, reading_id: int, call: Call
) -> None:
    settle(store, reading_id, accepted(call))
    entry = store.ledger.entries_of_page(DOCUMENT_ID, 1)[1]
    reversal_id = store.ledger.reverse(entry.entry_id)
    back = store.ledger.entries_of_page(DOCUMENT_ID, 1)[2]
    assert back.entry_id == reversal_id
    assert (back.entry.kind, back.entry.reverses_entry_id) == (LedgerKind.REVERSAL, entry.entry_id)
    assert (back.entry.prompt_tokens, back.entry.vlm_pages) == (-2_330, -1)
    assert back.entry.cost_micro == -(entry.entry.cost_micro or 0) != 0
    assert back.entry.day == datetime.now(UTC).date().isoformat()
    with pytest.raises(EntryNotReversible, match=f"was reversed before, by entry {reversal_id}"):
        store.ledger.reverse(entry.entry_id)
    with pytest.raises(EntryNotReversible, match=f"is the reversal of {entry.entry_id}"):
        store.ledger.reverse(reversal_id)
    with pytest.raises(EntryNotReversible, match="has none of that number"):
        store.ledger.reverse(4711)


def test_of_many_who_reverse_an_entry_one_does(
    store: Store, reading_id: int, tmp_path: Path, database_url: SecretStr | None
) -> None:
    read(store, reading_id)
    [entry] = store.ledger.entries_of_page(DOCUMENT_ID, 1)
    barrier = threading.Barrier(4)

    def reverse(_: int) -> bool:
        own = connect_store(tmp_path, database_url)
        try:
            barrier.wait()
            own.ledger.reverse(entry.entry_id)
        except EntryNotReversible:
            return False
        finally:
            own.close()
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(reverse, range(4))) == [False, False, False, True]
    assert sum(one.cpu_pages for one in booked(store)) == 0


SETTLED: dict[str, str] = {
    "UPDATE ledger SET cost_micro = 0": "the ledger is only added to; book a reversal",
    "UPDATE ledger SET entry_key = entry_key": "the ledger is only added to; book a reversal",
    "DELETE FROM ledger": "the ledger is only added to; book a reversal",
    "UPDATE vlm_attempts SET prompt_tokens = 0": "a call that is closed stays as it was booked",
    "UPDATE vlm_attempts SET verdict = NULL": "a call that is closed stays as it was booked",
    "DELETE FROM vlm_attempts": "a call that is closed stays as it was booked",
}


@pytest.mark.parametrize("statement", SETTLED)
def test_the_database_refuses_to_change_what_is_settled(
    store: Store, reading_id: int, call: Call, statement: str
) -> None:
    settle(store, reading_id, accepted(call))
    before = booked(store)
    with pytest.raises(StoreUnavailable, match=SETTLED[statement]):
        query(store, statement)
    assert booked(store) == before


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("ledger", "the ledger is only added to"),
        ("vlm_attempts", "a call that is closed stays"),
    ],
)
def test_sqlite_refuses_to_put_a_row_in_place_of_a_settled_one(
    store: Store, reading_id: int, call: Call, changed: str, words: str
) -> None:
    settle(store, reading_id, accepted(call))
    before = booked(store)
    for replacing in ("INSERT OR REPLACE INTO", "REPLACE INTO"):
        with pytest.raises(StoreUnavailable, match=words):
            query(store, f"{replacing} {changed} SELECT * FROM {changed}")
    assert booked(store) == before


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_postgresql_refuses_to_empty_the_tables_as_well(store: Store, reading_id: int, call: Call) -> None:
    settle(store, reading_id, accepted(call))
    for statement, words in (
        ("TRUNCATE ledger CASCADE", "the ledger is only added to"),
        ("TRUNCATE vlm_attempts", "a call that is closed stays"),
        ("TRUNCATE pages CASCADE", "a call that is closed stays"),
    ):
        with pytest.raises(StoreUnavailable, match=words):
            query(store, statement)
    assert len(booked(store)) == 2


def test_an_open_call_may_still_change(store: Store, reading_id: int, call: Call) -> None:
    query(store, "UPDATE vlm_attempts SET reserved_tokens = 5 WHERE verdict IS NULL")
    assert query(store, "SELECT reserved_tokens FROM vlm_attempts") == [(5,)]


def test_an_attempt_that_is_booked_already_is_no_second_entry(store: Store, reading_id: int) -> None:
    entry = replace(cpu_entry(reading_id), attempt=1)
    write = store.database.write
    with write() as session:
        insert_entries(session, [entry])
    with pytest.raises(StoreUnavailable), write() as session:
        insert_entries(session, [entry])
    assert names(store) == ["cpu_page/1"]


def test_a_submission_s_bill_is_the_sum_of_its_entries(store: Store, reading_id: int) -> None:
    def started(cost_centre: str) -> int:
        return store.submissions.start_submission(
            out_dir="o", cost_centre=cost_centre, submitter=None, fingerprint=FINGERPRINT
        )

    def entry(attempt: int, submission_id: int, **values: Any) -> LedgerEntry:
        payer = replace(PAYER, submission_id=submission_id)
        when = datetime.now(UTC) + timedelta(seconds=attempt)
        return replace(cpu_entry(reading_id), attempt=attempt, payer=payer, booked_at=when, **values)

    mine, other = started("harbour/ferries"), started("harbour/ferries")
    yen = replace(cpu_entry(reading_id).prices, currency="JPY")
    with store.database.write() as session:
        insert_entries(
            session,
            [
                entry(1, mine, cost_micro=7, prompt_tokens=100, completion_tokens=10),
                entry(2, mine, cost_micro=None, prompt_tokens=50),
                entry(3, mine, cost_micro=5, prices=yen),
                entry(4, other, cost_micro=1_000, prompt_tokens=1_000),
            ],
        )
    yens, dollars = store.ledger.bill_of(mine)
    assert (yens.currency, yens.cost_micro, yens.unpriced_entries) == ("JPY", 5, 0)
    assert (dollars.currency, dollars.cost_micro, dollars.unpriced_entries) == ("USD", 7, 1)
    assert (dollars.prompt_tokens, dollars.completion_tokens) == (150, 10)
    assert store.ledger.bill_of(started("a")) == ()


def query(store: Store, statement: str) -> list[tuple[Any, ...]]:
    with store.database.write() as session:
        result: Any = session.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []
