"""What the ledger tells a quote, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from models.page import Route
from models.tables import LedgerKind
from pipeline.chargeback.entries import LedgerEntry
from pipeline.chargeback.quote_comparison import BilledEntry
from pipeline.store import Store
from pipeline.store.ledger import insert_entries
from pipeline.store.quoted_entries import QuotedEntryStore
from tests.unit.store.booking import DOCUMENT_ID, PAYER, WHEN, cpu_entry

OTHER_ID = "cd" * 32


def call_about(page_number: int, attempt: int = 1) -> LedgerEntry:
    return replace(
        cpu_entry(1, page_number),
        kind=LedgerKind.VLM_CALL,
        attempt=attempt,
        model_id="seven",
        route=Route.VLM,
        outcome="accepted",
        is_wasted=False,
        pages=0,
        cpu_pages=0,
        predicted_visual_tokens=2_240,
        prompt_tokens=2_600,
        completion_tokens=400,
        cost_micro=500,
    )


@pytest.fixture
def entries(store: Store) -> QuotedEntryStore:
    elsewhere = replace(PAYER, cost_centre="harbour")
    booked = [
        replace(cpu_entry(1), attempt=1, booked_at=WHEN - timedelta(seconds=1)),
        replace(cpu_entry(1, 2), attempt=1),
        call_about(1),
        replace(call_about(1, 2), payer=elsewhere),
        replace(call_about(1, 3), document_id=OTHER_ID),
        call_about(1, 4),
    ]
    with store.database.write() as session:
        insert_entries(session, booked)
    return QuotedEntryStore(store.database)


def found(entries: QuotedEntryStore, *document_ids: str) -> list[BilledEntry]:
    since_s = WHEN.timestamp()
    return list(entries.entries_of(document_ids, cost_centre=PAYER.cost_centre, since_s=since_s))


def test_entries_about_the_documents_since_then_on_the_account_come_in_the_order_of_booking(
    entries: QuotedEntryStore,
) -> None:
    cpu, first, second = found(entries, DOCUMENT_ID)
    assert (cpu.is_call, cpu.page_number, cpu.cpu_pages, cpu.pages, cpu.is_wasted) == (False, 2, 1, 1, True)
    assert first == second
    assert first == BilledEntry(
        document_id=DOCUMENT_ID,
        page_number=1,
        is_call=True,
        is_reversal=False,
        is_wasted=False,
        route="vlm",
        pages=0,
        cpu_pages=0,
        predicted_visual_tokens=2_240,
        prompt_tokens=2_600,
        completion_tokens=400,
        currency="USD",
        cost_micro=500,
    )


def test_documents_are_asked_about_many_at_a_time(entries: QuotedEntryStore) -> None:
    others = [f"{number:064x}" for number in range(1_200)]
    assert len(found(entries, *others, OTHER_ID, DOCUMENT_ID)) == 4
    assert found(entries) == []


def test_a_reversal_is_told_as_one_of_what_it_takes_back(store: Store, entries: QuotedEntryStore) -> None:
    last = store.ledger.entries_of_page(DOCUMENT_ID, 1)[-1].entry_id
    store.ledger.reverse(last)
    reversal = found(entries, DOCUMENT_ID)[-1]
    assert (reversal.is_call, reversal.is_reversal) == (True, True)
    assert (reversal.prompt_tokens, reversal.cost_micro) == (-2_600, -500)
