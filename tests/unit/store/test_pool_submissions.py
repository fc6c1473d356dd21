"""Submissions to the pool: what may be added when, and what is cancelled."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from models.errors import SubmissionNotFound, SubmissionNotOpen
from models.pool import Queue, SourceState, SubmissionState
from models.tables import PageState
from pipeline.store import Store
from tests.unit.store.pool_parts import LIMITS, Pool


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def state_of(pool: Pool, submission_id: int) -> SubmissionState:
    return pool.store.pool.progress(submission_id).state


def test_an_open_submission_is_finished_when_it_is_sealed_and_all_is_settled(pool: Pool) -> None:
    submission_id = pool.open()
    source_id = pool.add(submission_id)
    pool.claim_source()
    assert pool.store.pool.refuse_source(source_id, owner="me", code="document_corrupt", message="no")
    assert state_of(pool, submission_id) is SubmissionState.OPEN
    pool.store.pool.seal(submission_id)
    assert state_of(pool, submission_id) is SubmissionState.FINISHED


def test_passwords_are_gone_when_a_submission_is_over(pool: Pool) -> None:
    ends = [pool.open(sealed_passwords="sealed") for _ in range(2)]
    pool.store.pool.seal(ends[0])
    pool.store.pool.cancel(ends[1])
    with pool.store.database.read() as session:
        assert session.scalars(text("SELECT sealed_passwords FROM submissions")).all() == [None, None]


def test_what_the_submitter_could_not_send_is_on_record(pool: Pool) -> None:
    submission_id = pool.open()
    pool.store.pool.add_refused_source(
        submission_id, name="a.pdf", output_stem="a.pdf", code="source_unreadable", message="no permission"
    )
    pool.store.pool.seal(submission_id)
    progress = pool.store.pool.progress(submission_id)
    assert (progress.state, progress.failed_sources) == (SubmissionState.FINISHED, 1)
    [source] = pool.store.submissions.sources(submission_id)
    assert (source.error_code, source.error_message) == ("source_unreadable", "no permission")


def test_adding_the_same_again_changes_nothing_and_another_file_of_its_name_is_refused(pool: Pool) -> None:
    submission_id = pool.open()
    source_id = pool.add(submission_id, "a.pdf")
    pool.claim_source()
    assert pool.add(submission_id, "a.pdf") == source_id
    assert pool.store.pool.progress(submission_id).sources == {SourceState.IN_INTAKE: 1}
    with pytest.raises(ValueError, match="another file of this name"):
        pool.add(submission_id, "a.pdf", blob_id="ef" * 32)


def test_nothing_is_added_to_a_submission_that_takes_no_more(pool: Pool) -> None:
    sealed = pool.open()
    pool.add(sealed)
    pool.store.pool.seal(sealed)
    cancelled = pool.open()
    pool.store.pool.cancel(cancelled)
    for submission_id in (sealed, cancelled):
        with pytest.raises(SubmissionNotOpen):
            pool.add(submission_id)
    for act in (pool.add, pool.store.pool.progress, pool.store.pool.cancel):
        with pytest.raises(SubmissionNotFound):
            act(77)


def test_a_run_of_the_embedded_executor_is_no_submission_to_the_pool(pool: Pool) -> None:
    embedded = pool.store.submissions.start_submission(
        out_dir="out", cost_centre="harbour", submitter=None, fingerprint="f" * 64
    )
    with pytest.raises(SubmissionNotFound):
        pool.store.pool.progress(embedded)
    assert pool.store.pool.submissions(limit=10) == ()


def test_a_cancelled_submission_is_not_served_and_what_is_under_way_is_finished(pool: Pool) -> None:
    submitted = pool.submit(3)
    work = pool.claim()
    assert work is not None
    assert pool.store.pool.cancel(submitted.submission_id)
    assert not pool.store.pool.cancel(submitted.submission_id)
    assert pool.claim() is None
    pool.finish(work)
    progress = pool.store.pool.progress(submitted.submission_id)
    assert progress.state is SubmissionState.CANCELLED
    assert progress.sources == {SourceState.SETTLED: 1}
    assert progress.pages == {PageState.DONE: 1, PageState.PENDING: 2}
    [source] = pool.store.submissions.sources(submitted.submission_id)
    assert source.error_code == "cancelled"
    assert len(pool.store.ledger.entries_of_page(submitted.document.document_id, 1)) == 1


def test_a_cancelled_source_is_not_its_owners_any_more(pool: Pool) -> None:
    submission_id = pool.open()
    source_id = pool.add(submission_id)
    pool.claim_source()
    pool.store.pool.cancel(submission_id)
    assert not pool.store.pool.refuse_source(source_id, owner="me", code="document_corrupt", message="no")


def test_the_readings_of_a_cancelled_submission_are_read_for_others_that_wait_for_them(pool: Pool) -> None:
    first = pool.submit(2, "harbour", priority=9)
    second = pool.submit(2, "mill", document=first.document)
    pool.store.pool.cancel(first.submission_id)
    work = pool.claim(max_pages=2)
    assert work is not None
    assert (work.terms.submission_id, work.terms.cost_centre) == (second.submission_id, "mill")
    pool.finish(work)
    assert pool.write() == second.source_id
    assert pool.write() is None


def test_what_was_cancelled_is_read_for_whoever_submits_it_later(pool: Pool) -> None:
    first = pool.submit(2)
    pool.store.pool.cancel(first.submission_id)
    later = pool.submit(2, document=first.document)
    work = pool.claim()
    assert work is not None
    assert work.terms.submission_id == later.submission_id


def test_the_priority_of_an_open_submission_can_be_changed(pool: Pool) -> None:
    first, second = pool.submit(1), pool.submit(1)
    assert pool.store.pool.prioritise(second.submission_id, 9)
    work = pool.claim()
    assert work is not None
    assert work.terms.submission_id == second.submission_id
    pool.store.pool.cancel(first.submission_id)
    assert not pool.store.pool.prioritise(first.submission_id, 9)


def test_the_backlog_says_what_waits_and_what_is_held(pool: Pool) -> None:
    submitted = pool.submit(4)
    other = pool.open()
    pool.add(other)
    pool.add(other)
    pool.claim_source()
    work = pool.claim()
    assert work is not None
    pool.finish(work, awaits_vlm=True)
    pool.claim()
    queues = pool.store.pool.backlog().queues
    counts = {queue: (one.waiting, one.held) for queue, one in queues.items()}
    assert counts == {
        Queue.INTAKE: (1, 1),
        Queue.OCR: (2, 1),
        Queue.VLM: (1, 0),
        Queue.ASSEMBLE: (0, 0),
    }
    progress = pool.store.pool.progress(submitted.submission_id)
    assert queues[Queue.OCR].oldest_at_s == progress.created_at_s
    assert queues[Queue.ASSEMBLE].oldest_at_s is None
    pool.store.pool.cancel(submitted.submission_id)
    assert pool.store.pool.backlog().waiting(Queue.OCR) == 0


def test_pages_that_are_settled_are_told_since_a_moment(pool: Pool) -> None:
    first = pool.submit(3)
    for expected in (1, 2):
        work = pool.claim()
        assert work is not None
        assert work.page_numbers == (expected,)
        pool.finish(work)
    told = list(pool.store.pool.settled_pages(first.submission_id, since_s=0.0))
    assert [(page.page_number, page.from_earlier_run) for page in told] == [(1, False), (2, False)]
    since_s = told[-1].settled_at_s
    newer = list(pool.store.pool.settled_pages(first.submission_id, since_s=since_s))
    assert [page.page_number for page in newer] == [2]


def test_pages_of_an_earlier_run_are_settled_when_their_source_is_taken_in(pool: Pool) -> None:
    first = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work)
    with pool.store.database.write() as session:
        session.execute(text("UPDATE pages SET settled_at_s = 1000"))
    second = pool.submit(1, document=first.document)
    [page] = pool.store.pool.settled_pages(second.submission_id, since_s=2000.0)
    assert page.from_earlier_run
    assert page.settled_at_s > 2000


def test_submissions_are_listed_with_their_counts(pool: Pool) -> None:
    finished = pool.submit(2)
    work = pool.claim(max_pages=2)
    assert work is not None
    pool.finish(work)
    pool.write()
    waiting = pool.open("mill", limits=LIMITS)
    pool.add(waiting)
    newest, oldest = pool.store.pool.submissions(limit=10)
    assert (newest.submission_id, newest.state, newest.sources, newest.pages) == (
        waiting,
        SubmissionState.OPEN,
        1,
        0,
    )
    assert (oldest.submission_id, oldest.state) == (finished.submission_id, SubmissionState.FINISHED)
    assert (oldest.settled_sources, oldest.pages, oldest.settled_pages, oldest.failed_pages) == (1, 2, 2, 0)
    [only] = pool.store.pool.submissions(limit=10, state=SubmissionState.OPEN)
    assert only.submission_id == waiting
