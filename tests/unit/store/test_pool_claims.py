"""Claims of the pool: who gets what, and in what order."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import update

from models.pool import SourceState, SubmissionState
from models.tables import PageRow, ReadingRow
from pipeline.store import Store
from tests.unit.store.pool_parts import Pool, Submitted, new_document


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def served(pool: Pool, claims: int, *, max_pages: int = 1) -> list[int]:
    """The submissions of so many claims."""
    works = [pool.claim(max_pages=max_pages) for _ in range(claims)]
    return [work.terms.submission_id for work in works if work is not None]


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


def test_a_claim_says_all_that_a_worker_needs(pool: Pool) -> None:
    submission_id = pool.open(
        "harbour/ferries",
        priority=7,
        wishes={"route": "vlm"},
        sealed_passwords="sealed",
        traceparent="00-1-2-01",
    )
    pool.add(submission_id, "scans/a.pdf", blob_id="cd" * 32, byte_count=77)
    source = pool.claim_source()
    assert source is not None
    assert (source.name, source.blob_id, source.byte_count, source.losses) == (
        "scans/a.pdf",
        "cd" * 32,
        77,
        0,
    )
    terms = source.terms
    assert (terms.submission_id, terms.cost_centre, terms.submitter) == (
        submission_id,
        "harbour/ferries",
        "ada",
    )
    assert (terms.priority, terms.wishes, terms.sealed_passwords) == (7, {"route": "vlm"}, "sealed")
    assert terms.traceparent == "00-1-2-01"


def test_pages_that_do_not_follow_one_another_are_not_claimed_together(pool: Pool) -> None:
    submitted = pool.submit(5)
    pool.store.pages.claim_pages(submitted.reading_id, [2], owner="other", lease_s=60)
    claims = [pool.claim(max_pages=3) for _ in range(2)]
    assert [work.page_numbers for work in claims if work] == [(1,), (3, 4, 5)]


def test_a_page_that_was_lost_before_ends_the_pages_before_it(pool: Pool) -> None:
    submitted = pool.submit(4)
    with pool.store.database.write() as session:
        session.execute(update(PageRow).where(PageRow.page_number == 3).values(losses=1))
    claims = [pool.claim(max_pages=4) for _ in range(3)]
    assert [(work.page_numbers, work.losses) for work in claims if work] == [
        ((1, 2), 0),
        ((3,), 1),
        ((4,), 0),
    ]
    assert submitted.reading_id == 1


def test_the_more_urgent_comes_first(pool: Pool) -> None:
    slow = pool.submit(2, priority=0)
    fast = pool.submit(2, priority=9)
    assert served(pool, 4) == [fast.submission_id] * 2 + [slow.submission_id] * 2


def test_a_short_document_does_not_wait_for_a_long_one(pool: Pool) -> None:
    long = pool.submit(30)
    assert served(pool, 2) == [long.submission_id] * 2
    short = pool.submit(1)
    assert served(pool, 1) == [short.submission_id]


def test_cost_centres_get_pages_by_their_weights(pool: Pool) -> None:
    pool.weights = {"harbour": 3.0, "mill": 1.0}
    harbour = pool.submit(40, "harbour/ferries")
    mill = pool.submit(40, "mill")
    counts = Counter(served(pool, 20, max_pages=2))
    assert counts == {harbour.submission_id: 15, mill.submission_id: 5}


def test_many_submissions_of_one_cost_centre_get_no_more_than_one_of_another(pool: Pool) -> None:
    many = [pool.submit(10, "harbour").submission_id for _ in range(3)]
    one = pool.submit(20, "mill").submission_id
    counts = Counter(served(pool, 12))
    assert counts == {one: 6, **dict.fromkeys(many, 2)}


def test_a_cost_centre_that_had_nothing_to_do_does_not_make_up_for_it(pool: Pool) -> None:
    busy = pool.submit(60, "harbour")
    served(pool, 20)
    late = pool.submit(60, "mill")
    counts = Counter(served(pool, 20))
    assert counts == {busy.submission_id: 10, late.submission_id: 10}


def test_turns_at_the_vlm_are_not_those_on_the_cpu(pool: Pool) -> None:
    """One whose pages all go to the VLM is served there without losing its turn here."""
    first, second = pool.submit(10), pool.submit(10)
    work = pool.claim()
    assert work is not None
    assert work.terms.submission_id == first.submission_id
    pool.finish(work, awaits_vlm=True)
    assert served(pool, 1) == [second.submission_id]
    page = pool.store.pool.claim_escalated(owner="vlm", lease_s=60, weights={})
    assert page is not None
    assert (page.terms.submission_id, page.page_number, page.calls_before) == (first.submission_id, 1, 0)
    assert page.page == {"page_number": 1}
    assert served(pool, 2) == [first.submission_id, second.submission_id]


def test_sources_are_taken_in_by_turns_too(pool: Pool) -> None:
    submissions = [pool.open() for _ in range(2)]
    for submission_id in submissions:
        pool.add(submission_id)
        pool.add(submission_id)
    claims = [pool.claim_source() for _ in range(4)]
    assert [claim.terms.submission_id for claim in claims if claim] == submissions * 2
    assert pool.claim_source() is None


def test_a_document_that_is_complete_already_goes_straight_to_its_outputs(pool: Pool) -> None:
    first = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work)
    pool.write()
    second = pool.submit(1, document=first.document)
    assert pool.claim() is None
    assert pool.write() == second.source_id


def test_documents_with_the_same_bytes_are_read_once_for_the_more_urgent(pool: Pool) -> None:
    slow = pool.submit(2, "harbour", priority=2)
    fast = pool.submit(2, "mill", priority=8, document=slow.document)
    assert fast.reading_id == slow.reading_id
    later = pool.submit(2, "harbour", priority=3, document=slow.document)
    assert served(pool, 1) == [fast.submission_id]
    work = pool.claim()
    assert work is not None
    pool.finish(work)
    pool.store.pages.release_leases("me")
    last = pool.claim()
    assert last is not None
    pool.finish(last)
    written = {pool.write() for _ in range(3)}
    assert written == {slow.source_id, fast.source_id, later.source_id}


def test_sources_of_a_reading_that_was_opened_again_wait_for_it(pool: Pool) -> None:
    submitted = pool.submit(1)
    work = pool.claim()
    assert work is not None
    pool.finish(work)
    pool.store.pages.open_reading(submitted.document, "f" * 64, force=True)
    assert pool.write() is None
    again = pool.claim()
    assert again is not None
    pool.finish(again)
    assert pool.write() == submitted.source_id


def test_a_source_is_its_owners_alone(pool: Pool) -> None:
    submission_id = pool.open()
    source_id = pool.add(submission_id)
    pool.claim_source("a")
    refused = {"code": "document_corrupt", "message": "no"}
    assert not pool.store.pool.refuse_source(source_id, owner="b", **refused)
    assert pool.store.pool.refuse_source(source_id, owner="a", **refused)
    document = new_document(1)
    pool.store.pages.save_document(document)
    reading_id = pool.store.pages.open_reading(document, "f" * 64, force=False).reading_id
    assert not pool.store.pool.source_has_reading(
        source_id, owner="a", reading_id=reading_id, document_id=document.document_id
    )


def test_what_a_claim_took_is_not_claimed_again(pool: Pool) -> None:
    pool.submit(2)
    claims = [pool.claim(f"owner {number}") for number in range(3)]
    assert [work.page_numbers if work else None for work in claims] == [(1,), (2,), None]


def test_a_page_can_be_given_back_by_itself(pool: Pool) -> None:
    submitted: Submitted = pool.submit(2)
    pool.claim(max_pages=2)
    assert not pool.store.pool.give_back_page(submitted.reading_id, 1, owner="other")
    assert pool.store.pool.give_back_page(submitted.reading_id, 1, owner="me")
    assert pool.store.pages.pending_pages(submitted.reading_id) == (1,)


def test_an_embedded_run_leaves_a_reading_to_the_pool(pool: Pool) -> None:
    submitted = pool.submit(2)
    pool.store.pages.open_reading(submitted.document, "f" * 64, force=False)
    with pool.store.database.read() as session:
        reading = session.get(ReadingRow, submitted.reading_id)
        assert reading is not None
        assert reading.submission_id == submitted.submission_id


def test_pages_that_are_given_back_are_not_counted_as_served(pool: Pool) -> None:
    """Whose pages are slow, and read singly, has as many read as others, and twice as many with twice the weight."""
    pool.weights["harbour"] = 2.0
    slow, quick = pool.submit(40, "harbour").reading_id, pool.submit(40, "mill").reading_id
    read = {slow: 0, quick: 0}
    while read[quick] < 16:
        work = pool.claim(max_pages=8)
        assert work is not None
        pool.finish(work, only=work.page_numbers[:1] if work.reading_id == slow else (), completes=False)
        left = pool.store.pool.give_back_pages(work, owner="me", weights=pool.weights)
        read[work.reading_id] += len(work.page_numbers) - left
    assert 16 <= read[slow] <= 32


def test_what_is_left_of_a_claim_is_anybodys_again(pool: Pool) -> None:
    submitted = pool.submit(3)
    work = pool.claim(max_pages=3)
    assert work is not None
    pool.finish(work, only=(1,))
    assert pool.store.pool.give_back_pages(work, owner="other", weights={}) == 0
    assert pool.store.pool.give_back_pages(work, owner="me", weights={}) == 2
    again = pool.claim("other", max_pages=3)
    assert again is not None
    assert (again.reading_id, again.page_numbers, again.losses) == (submitted.reading_id, (2, 3), 0)
    assert pool.store.pool.give_back_pages(work, owner="me", weights={}) == 0
