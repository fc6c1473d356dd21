"""Pages that failed for good: what is on record about them, and another try."""

from __future__ import annotations

import pytest

from models.errors import PageNotFound
from models.pool import SourceState, SubmissionState
from models.tables import PageState
from pipeline.store import Store
from tests.unit.store.pool_parts import Pool, Submitted, entry_of


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def fail(pool: Pool) -> Submitted:
    """A finished submission of two pages, the first of which failed."""
    submitted = pool.submit(2)
    work = pool.claim(max_pages=2)
    assert work is not None
    entry = entry_of(submitted.reading_id, 1, submitted.document.document_id, submitted.submission_id)
    assert pool.store.pages.fail_page(
        submitted.reading_id, 1, owner="me", code="engine_failed", message="no such page", entry=entry
    )
    pool.finish(work, only=[2])
    assert pool.write() == submitted.source_id
    return submitted


def test_dead_pages_are_found_with_all_that_is_known_of_them(pool: Pool) -> None:
    submitted = fail(pool)
    other = pool.submit(1)
    [page] = pool.store.pool.dead_pages()
    assert (page.reading_id, page.page_number, page.code) == (submitted.reading_id, 1, "engine_failed")
    assert (page.submission_id, page.attempts, page.losses) == (submitted.submission_id, 1, 0)
    assert page.settled_at_s is not None
    assert pool.store.pool.dead_pages(other.submission_id) == ()
    evidence = pool.store.pool.evidence_of(page.reading_id, page.page_number)
    assert (evidence.state, evidence.error_message) == (PageState.FAILED, "no such page")
    assert [one.entry.payer.submission_id for one in evidence.entries] == [submitted.submission_id]
    assert evidence.calls == ()
    with pytest.raises(PageNotFound):
        pool.store.pool.evidence_of(page.reading_id, 3)


def test_a_dead_page_is_read_again_and_its_outputs_are_written_again(pool: Pool) -> None:
    submitted = fail(pool)
    assert not pool.store.pool.retry_dead(submitted.reading_id, 2)
    assert pool.store.pool.retry_dead(submitted.reading_id, 1)
    progress = pool.store.pool.progress(submitted.submission_id)
    assert (progress.state, progress.sources) == (SubmissionState.OPEN, {SourceState.READING: 1})
    assert pool.store.pool.dead_pages() == ()
    work = pool.claim(max_pages=2)
    assert work is not None
    assert work.page_numbers == (1,)
    pool.finish(work)
    assert pool.write() == submitted.source_id
    progress = pool.store.pool.progress(submitted.submission_id)
    assert (progress.state, progress.pages) == (SubmissionState.FINISHED, {PageState.DONE: 2})


def test_a_dead_page_that_nobody_wants_any_more_is_left_dead(pool: Pool) -> None:
    submitted = pool.submit(2)
    pool.claim()
    entry = entry_of(submitted.reading_id, 1, submitted.document.document_id, submitted.submission_id)
    pool.store.pages.fail_page(
        submitted.reading_id, 1, owner="me", code="engine_failed", message="no", entry=entry
    )
    pool.store.pool.cancel(submitted.submission_id)
    assert not pool.store.pool.retry_dead(submitted.reading_id, 1)
