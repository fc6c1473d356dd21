"""What the pool takes back from workers that are gone, and what it sets going where something stands still."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from sqlalchemy import text, update

from models.errors import WorkerLost
from models.pool import Queue, SourceState, SubmissionState
from models.tables import LedgerKind, PageState, ReadingRow, SubmissionRow
from pipeline.store import PageRecord, Reclaimed, Store
from tests.unit.store.booking import BOOK, new_call
from tests.unit.store.pool_parts import LIMITS, Pool, Submitted, new_document

MAX_LOSSES = 3


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def alive(*owners: str) -> Callable[[str], bool]:
    return lambda owner: owner in owners


def reclaim(pool: Pool, *alive_owners: str) -> Reclaimed:
    return pool.store.pool.reclaim(alive(*alive_owners), max_losses=MAX_LOSSES, price_book=BOOK)


def pages_of(pool: Pool, submitted: Submitted) -> list[PageRecord]:
    return list(pool.store.pages.stream_summaries(submitted.reading_id))


def losses_of(pool: Pool, submitted: Submitted) -> list[int]:
    rows = text("SELECT losses FROM pages WHERE reading_id = :reading_id ORDER BY page_number")
    with pool.store.database.read() as session:
        return list(session.scalars(rows, {"reading_id": submitted.reading_id}))


def booked(pool: Pool, submitted: Submitted, page_number: int) -> list[tuple[LedgerKind, str, int | None]]:
    entries = pool.store.ledger.entries_of_page(submitted.document.document_id, page_number)
    return [(one.entry.kind, one.entry.outcome, one.entry.payer.submission_id) for one in entries]


def test_the_first_page_of_a_lost_owner_is_charged_and_the_others_go_back(pool: Pool) -> None:
    submitted = pool.submit(4)
    work = pool.claim("lost", max_pages=3)
    assert work is not None
    pool.finish(work, "lost", only=[1])
    reclaimed = reclaim(pool)
    assert (reclaimed.freed_pages, reclaimed.charged_pages, reclaimed.given_up_pages) == (2, 1, 0)
    assert reclaimed.queues == {Queue.OCR}
    assert losses_of(pool, submitted) == [0, 1, 0, 0]
    assert [page.attempts for page in pages_of(pool, submitted)] == [1, 1, 0, 0]
    cpu = LedgerKind.CPU_PAGE
    assert booked(pool, submitted, 2) == [(cpu, WorkerLost.code, submitted.submission_id)]
    assert booked(pool, submitted, 3) == []


def test_a_page_that_was_lost_is_claimed_alone(pool: Pool) -> None:
    pool.submit(4)
    pool.claim("lost", max_pages=3)
    reclaim(pool)
    got = [pool.claim(f"next {number}", max_pages=3) for number in range(2)]
    assert [(one.page_numbers, one.losses) for one in got if one] == [((1,), 1), ((2, 3, 4), 0)]


def test_a_lease_that_ran_out_is_a_loss_though_its_owner_seems_alive(pool: Pool) -> None:
    submitted = pool.submit(1)
    pool.claim("slow", lease_s=-1)
    assert reclaim(pool, "slow").charged_pages == 1
    assert [page.state for page in pages_of(pool, submitted)] == [PageState.PENDING]


def test_leases_of_those_alive_are_left_alone(pool: Pool) -> None:
    pool.submit(1)
    pool.claim("alive")
    assert reclaim(pool, "alive").freed_pages == 0


def test_a_page_that_costs_worker_after_worker_fails_and_its_document_is_assembled(pool: Pool) -> None:
    submitted = pool.submit(2)
    for number in range(MAX_LOSSES):
        assert pool.claim(f"lost {number}") is not None
        reclaimed = reclaim(pool)
    assert (reclaimed.freed_pages, reclaimed.given_up_pages) == (0, 1)
    assert reclaimed.queues == frozenset()
    work = pool.claim()
    assert work is not None
    assert work.page_numbers == (2,)
    pool.finish(work)
    first, _ = pages_of(pool, submitted)
    assert (first.state, first.error_code, first.attempts) == (PageState.FAILED, "worker_lost", MAX_LOSSES)
    assert "3 times" in (first.error_message or "")
    assert len(booked(pool, submitted, 1)) == MAX_LOSSES
    assert pool.write() == submitted.source_id


def test_the_last_page_of_a_reading_that_fails_so_completes_it(pool: Pool) -> None:
    submitted = pool.submit(1)
    for number in range(MAX_LOSSES):
        pool.claim(f"lost {number}")
        reclaimed = reclaim(pool)
    assert reclaimed.queues == {Queue.ASSEMBLE}
    assert pool.write() == submitted.source_id


def page_json(number: int) -> dict[str, object]:
    return {
        "page_number": number,
        "state": "done",
        "route": "ocr_degraded",
        "text": "as read",
        "triage": {"escalate": True, "reasons": []},
        "visual_tokens_if_vlm": 1,
        "degraded": {"code": "awaiting_vlm", "message": "its turn has not come"},
        "attempts": [],
        "elapsed_s": 1.0,
        "error": None,
    }


def test_a_page_whose_workers_are_lost_at_the_vlm_keeps_the_text_that_the_cpu_read(pool: Pool) -> None:
    submitted = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work, awaits_vlm=True, page=page_json(1))
    for number in range(MAX_LOSSES):
        claimed = pool.store.pool.claim_escalated(owner=f"lost {number}", lease_s=600, weights={})
        assert claimed is not None
        assert claimed.calls_before == number
        call = new_call(submitted.reading_id, number + 1, submission_id=submitted.submission_id)
        assert pool.store.transcriptions.open_call(call, owner=f"lost {number}", currency=BOOK.currency)
        reclaimed = reclaim(pool)
        assert reclaimed.closed_calls == 1
    assert reclaimed.given_up_pages == 1
    [page] = pool.store.pages.stream_pages(submitted.reading_id)
    assert page.state is PageState.DONE
    assert page.attempts == 1
    assert page.content is not None
    assert page.content["text"] == "as read"
    assert page.content["degraded"]["code"] == "worker_lost"
    assert [one["verdict"] for one in page.content["attempts"]] == ["abandoned"] * MAX_LOSSES
    kinds = [kind for kind, _, _ in booked(pool, submitted, 1)]
    assert kinds == [LedgerKind.CPU_PAGE, *[LedgerKind.VLM_CALL] * MAX_LOSSES]
    assert pool.write() == submitted.source_id


def test_pages_of_a_run_outside_the_pool_are_left_to_it(pool: Pool) -> None:
    document = new_document(1)
    pool.store.pages.save_document(document)
    reading_id = pool.store.pages.open_reading(document, "f" * 64, force=False).reading_id
    pool.store.pages.claim_pages(reading_id, [1], owner="embedded", lease_s=-1)
    assert reclaim(pool).freed_pages == 0
    assert pool.store.pages.reclaim_leases(alive()) == 1


def test_a_source_whose_worker_is_lost_in_intake_is_taken_in_again_and_refused_in_the_end(pool: Pool) -> None:
    submission_id = pool.open()
    pool.add(submission_id)
    pool.store.pool.seal(submission_id)
    for losses in range(MAX_LOSSES - 1):
        source = pool.claim_source(f"lost {losses}")
        assert source is not None
        assert source.losses == losses
        reclaimed = reclaim(pool)
        assert (reclaimed.freed_sources, reclaimed.queues) == (1, {Queue.INTAKE})
    pool.claim_source("the last")
    assert reclaim(pool).refused_sources == 1
    assert pool.claim_source() is None
    progress = pool.store.pool.progress(submission_id)
    assert (progress.state, progress.failed_sources) == (SubmissionState.FINISHED, 1)


def test_a_source_whose_worker_is_lost_in_assembly_is_written_by_another(pool: Pool) -> None:
    submitted = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work)
    assert pool.store.pool.claim_assembly(owner="lost", lease_s=600, weights={}) is not None
    assert reclaim(pool).queues == {Queue.ASSEMBLE}
    assert not pool.store.pool.source_written(submitted.source_id, owner="lost", failed_pages=0)
    assert pool.write() == submitted.source_id


def test_places_of_lost_owners_are_free(pool: Pool) -> None:
    slots = pool.store.slots
    assert slots.acquire("vlm", 1, "lost", 600) == 1
    assert slots.acquire("vlm", 1, "me", 600) is None
    assert reclaim(pool).freed_slots == 1
    assert slots.acquire("vlm", 1, "me", 600) == 1


def test_what_is_beating_is_not_lost(pool: Pool) -> None:
    pool.submit(1)
    pool.claim("alive", lease_s=-1)
    pool.add(pool.open())
    assert pool.store.pool.claim_source(owner="alive", lease_s=-1, weights={}) is not None
    pool.store.slots.acquire("vlm", 1, "alive", -1)
    assert pool.store.pool.heartbeat("alive", lease_s=600) == 3
    reclaimed = reclaim(pool, "alive")
    assert (reclaimed.freed_pages, reclaimed.freed_sources, reclaimed.freed_slots) == (0, 0, 0)


def test_a_dead_page_that_is_tried_again_may_be_lost_as_often_as_before(pool: Pool) -> None:
    submitted = pool.submit(1)
    for number in range(MAX_LOSSES):
        assert pool.claim(f"lost {number}") is not None
        given_up = reclaim(pool).given_up_pages
    assert given_up == 1
    assert pool.store.pool.retry_dead(submitted.reading_id, 1)
    assert pool.claim("lost again") is not None
    assert reclaim(pool).given_up_pages == 0


def test_a_worker_that_ends_gives_back_all_it_has_for_nothing(pool: Pool) -> None:
    submitted = pool.submit(2)
    other = pool.open()
    pool.add(other)
    pool.claim("ends", max_pages=2)
    pool.claim_source("ends")
    pool.store.slots.acquire("vlm", 1, "ends", 600)
    pool.store.pool.give_back("ends")
    assert losses_of(pool, submitted) == [0, 0]
    assert pool.claim_source() is not None
    assert pool.store.slots.acquire("vlm", 1, "me", 600) == 1
    work = pool.claim(max_pages=2)
    assert work is not None
    assert work.page_numbers == (1, 2)


def test_a_reading_that_nobody_completed_is_completed(pool: Pool) -> None:
    submitted = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work, completes=False)
    repaired = pool.store.pool.repair()
    assert (repaired.completed_readings, repaired.read_sources, repaired.queues) == (1, 1, {Queue.ASSEMBLE})
    assert pool.write() == submitted.source_id


def test_sources_that_were_not_told_that_their_reading_is_complete_are_told(pool: Pool) -> None:
    submitted = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work, completes=False)
    pool.store.pages.complete_reading(submitted.reading_id)
    assert pool.store.pool.repair().read_sources == 1
    assert pool.write() == submitted.source_id


def test_a_submission_whose_submitter_went_away_is_read_as_far_as_it_came(pool: Pool) -> None:
    submission_id = pool.open()
    pool.add(submission_id)
    assert pool.store.pool.repair().sealed_submissions == 0
    long_ago = update(SubmissionRow).values(submitter_seen_at_s=time.time() - 200)
    with pool.store.database.write() as session:
        session.execute(long_ago)
    assert pool.store.pool.repair().sealed_submissions == 1
    assert pool.store.pool.progress(submission_id).is_sealed
    assert pool.claim_source() is not None


def test_an_empty_submission_whose_submitter_went_away_is_finished(pool: Pool) -> None:
    submission_id = pool.open()
    with pool.store.database.write() as session:
        session.execute(update(SubmissionRow).values(submitter_seen_at_s=time.time() - 200))
    assert pool.store.pool.repair().finished_submissions == 1
    assert pool.store.pool.progress(submission_id).state is SubmissionState.FINISHED


def test_sources_of_a_cancelled_submission_are_settled(pool: Pool) -> None:
    submission_id = pool.open()
    pool.add(submission_id)
    with pool.store.database.write() as session:
        session.execute(update(SubmissionRow).values(state=SubmissionState.CANCELLED))
    assert pool.store.pool.repair().cancelled_sources == 1
    assert pool.store.pool.progress(submission_id).sources == {SourceState.SETTLED: 1}


def test_a_reading_whose_submission_is_over_is_read_for_another_that_waits_for_it(pool: Pool) -> None:
    first = pool.submit(2)
    second = pool.submit(2, "mill", document=first.document)
    with pool.store.database.write() as session:
        session.execute(
            update(SubmissionRow)
            .where(SubmissionRow.submission_id == first.submission_id)
            .values(state=SubmissionState.CANCELLED)
        )
        assert session.scalar(
            update(ReadingRow).values(submission_id=first.submission_id).returning(ReadingRow.reading_id)
        )
    assert pool.claim() is None
    assert pool.store.pool.repair().handed_on_readings == 1
    work = pool.claim()
    assert work is not None
    assert work.terms.submission_id == second.submission_id


def test_there_is_nothing_to_repair_where_all_goes_well(pool: Pool) -> None:
    pool.submit(2)
    pool.claim("me")
    pool.add(pool.open(limits=LIMITS))
    pool.claim_source("me")
    repaired = pool.store.pool.repair()
    assert repaired.queues == frozenset()
    assert repaired.read_sources == repaired.finished_submissions == repaired.handed_on_readings == 0
