"""Opening a reading: what earlier runs had read of it is booked once a submission, to who pays for that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from models.document import Document, MediaType
from models.page import Route
from models.tables import ReadingRow
from pipeline.fingerprint import Fingerprint
from pipeline.store import OpenedReading, Store, open_store
from tests.unit.store.booking import ACCOUNT, DOCUMENT_ID, cpu_entry
from workers.reading_opening import open_document_reading

DOCUMENT = Document(document_id=DOCUMENT_ID, media_type=MediaType.PDF, byte_count=10, page_count=4)
WITHOUT_VLM = Fingerprint(whole="a" * 64, cpu="c" * 64, has_vlm=False)
WITH_VLM = Fingerprint(whole="b" * 64, cpu="c" * 64, has_vlm=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with contextlib.closing(open_store(tmp_path)) as opened:
        opened.pages.save_document(DOCUMENT)
        yield opened


def open_for(
    store: Store, payer: int, fingerprint: Fingerprint = WITHOUT_VLM, *, force: bool = False, **options: Any
) -> OpenedReading:
    """At the expense of a submission."""
    account = ACCOUNT.of_submission(payer)
    return open_document_reading(
        store.pages, store.ledger, DOCUMENT, fingerprint, account, force=force, **options
    )


def read_for(store: Store, reading_id: int) -> int | None:
    with store.database.read() as session:
        return session.scalars(
            select(ReadingRow.submission_id).where(ReadingRow.reading_id == reading_id)
        ).one()


def submission(store: Store) -> int:
    payer = ACCOUNT.payer
    return store.submissions.start_submission(
        out_dir="out", cost_centre=payer.cost_centre, submitter=payer.submitter, fingerprint="f" * 64
    )


def read(store: Store, reading_id: int, *page_numbers: int, route: Route = Route.OCR) -> None:
    assert store.pages.claim_pages(reading_id, page_numbers, owner="me", lease_s=60) == page_numbers
    for page_number in page_numbers:
        assert store.pages.finish_page(
            reading_id,
            page_number,
            owner="me",
            page={"page_number": page_number},
            summary={"page_number": page_number},
            route=route,
            elapsed_s=1.5,
            entry=cpu_entry(reading_id, page_number),
        )


def hits(store: Store) -> list[tuple[int | None, int]]:
    """Submissions and how many pages each took as they were."""
    booked = [one.entry for one in store.ledger.cache_hits_of(DOCUMENT_ID)]
    assert {entry.payer.cost_centre for entry in booked} <= {ACCOUNT.payer.cost_centre}
    return [(entry.payer.submission_id, entry.cached_pages) for entry in booked]


def test_a_reading_without_finished_pages_is_no_cache_hit(store: Store) -> None:
    assert open_for(store, submission(store)).pending == (1, 2, 3, 4)
    assert hits(store) == []


def test_pages_that_were_read_already_are_booked_once_a_submission(store: Store) -> None:
    first, second = submission(store), submission(store)
    read(store, open_for(store, first).reading_id, 1, 2, 3)
    for _ in range(2):
        opened = open_for(store, second)
        assert (len(opened.finished), opened.pending) == (3, (4,))
    assert hits(store) == [(second, 3)]


def test_pages_that_the_cpu_read_and_that_wait_for_the_vlm_count_as_read(store: Store) -> None:
    reading_id = open_for(store, submission(store)).reading_id
    read(store, reading_id, 1, 2)
    read(store, reading_id, 3, route=Route.OCR_DEGRADED)
    second = submission(store)
    opened = open_for(store, second, WITH_VLM)
    assert opened.reading_id != reading_id, "what the CPU read is taken over"
    assert (len(opened.finished), opened.awaiting_vlm, opened.pending) == (2, (3,), (4,))
    assert hits(store) == [(second, 3)]


def test_who_forces_a_reading_takes_nothing_as_it_was(store: Store) -> None:
    read(store, open_for(store, submission(store)).reading_id, 1, 2)
    assert open_for(store, submission(store), force=True).pending == (1, 2, 3, 4)
    assert hits(store) == []


def test_what_a_submission_has_read_itself_is_no_cache_hit_of_it(store: Store) -> None:
    mine = submission(store)
    read(store, open_for(store, mine).reading_id, 1, 2)
    assert len(open_for(store, mine, books_cache_hit=False).finished) == 2
    assert hits(store) == []


def test_a_reading_is_opened_for_the_pools_submission_that_is_named(store: Store) -> None:
    first, second = submission(store), submission(store)
    reading_id = open_for(store, first).reading_id
    assert read_for(store, reading_id) is None
    open_for(store, second, submission_id=second)
    assert read_for(store, reading_id) == second
