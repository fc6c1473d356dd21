"""Claims of the pool: who gets what, and in what order."""

from __future__ import annotations

import pytest

from models.pool import SourceState, SubmissionState
from pipeline.store import Store
from tests.unit.store.pool_parts import Pool


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def test_a_submission_goes_from_its_first_source_to_its_end(pool: Pool) -> None:
    submitted = pool.submit(3)
    first = pool.claim(max_pages=2)
    assert first is not None
    assert (first.reading_id, first.page_numbers) == (submitted.reading_id, (1, 2))
    pool.finish(first)
    assert pool.write() is None
    last = pool.claim(max_pages=2)
    assert last is not None
    assert last.page_numbers == (3,)
    pool.finish(last)
    assert pool.claim() is None
    assert pool.write() == submitted.source_id
    progress = pool.store.pool.progress(submitted.submission_id)
    assert progress.state is SubmissionState.FINISHED
    assert progress.sources == {SourceState.SETTLED: 1}
    assert progress.settled_pages == progress.total_pages == 3
