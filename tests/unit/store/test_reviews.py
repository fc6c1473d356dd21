"""What people said of pages, on both databases."""

from __future__ import annotations

import secrets
import threading
import time

import pytest

from models.api_tables import UploadRow
from models.page import Route
from models.pool import SubmissionState
from models.tables import PageRow, SourceRow, SubmissionRow
from pipeline.store import ReviewStore, Store
from pipeline.store.review_records import PagesShown, Review, ReviewFilter, new_review
from tests.unit.store.pool_parts import Pool, Submitted


@pytest.fixture
def reviews(store: Store) -> ReviewStore:
    return store.reviews


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def uploaded(
    pool: Pool, pages: int = 1, cost_centre: str = "harbour", *, again: Submitted | None = None
) -> tuple[str, Submitted]:
    """Read, written and over."""
    submitted = pool.submit(pages, cost_centre, document=again.document if again else None)
    upload_id = secrets.token_hex(8)
    with pool.store.database.write() as session:
        session.add(
            UploadRow(
                upload_id=upload_id,
                submission_id=submitted.submission_id,
                cost_centre=cost_centre,
                created_at_s=time.time(),
            )
        )
    work = pool.claim(max_pages=pages)
    if work is not None:
        pool.finish(work)
    pool.store.pool.repair()
    pool.write()
    assert state_of(pool, submitted) is SubmissionState.FINISHED
    return upload_id, submitted


def state_of(pool: Pool, submitted: Submitted) -> SubmissionState | None:
    with pool.store.database.read() as session:
        return session.get_one(SubmissionRow, submitted.submission_id).state


def route(pool: Pool, reading_id: int, page_number: int, new: Route) -> None:
    with pool.store.database.write() as session:
        session.get_one(PageRow, (reading_id, page_number)).route = new


def said(reviewer: str = "ada", *, needs_vlm: bool = True, cost_centre: str = "harbour") -> Review:
    return new_review(
        reviewer=reviewer,
        needs_vlm=needs_vlm,
        classes=("table", "stamp"),
        remark="two",
        cost_centre=cost_centre,
    )


def listed(reviews: ReviewStore, **wanted: object) -> list[tuple[str, int]]:
    pages = reviews.pages(ReviewFilter(**{"reviewer": "ada", **wanted}), limit=100)  # type: ignore[arg-type]
    return [(page.place.upload_id, page.place.page_number) for page in pages]


def test_the_last_word_of_each_reviewer_counts(reviews: ReviewStore, pool: Pool) -> None:
    _, submitted = uploaded(pool)
    at = (submitted.reading_id, 1)
    assert reviews.put(*at, said(needs_vlm=True))
    assert reviews.put(*at, said("bob"))
    last = said(needs_vlm=False)
    assert reviews.put(*at, last)
    assert reviews.of_page(*at)[0] == last
    assert [(one.reviewer, one.needs_vlm) for one in reviews.of_page(*at)] == [("ada", False), ("bob", True)]
    assert reviews.delete(*at, reviewer="ada")
    assert not reviews.delete(*at, reviewer="ada")
    assert [one.reviewer for one in reviews.of_page(*at)] == ["bob"]


def test_a_reviewer_who_speaks_twice_at_once_has_one_word(reviews: ReviewStore, pool: Pool) -> None:
    _, submitted = uploaded(pool)
    answers: list[bool] = []

    def speak(needs_vlm: bool) -> None:
        answers.append(reviews.put(submitted.reading_id, 1, said(needs_vlm=needs_vlm)))

    threads = [threading.Thread(target=speak, args=(number % 2 == 0,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 8
    assert len(reviews.of_page(submitted.reading_id, 1)) == 1


def test_only_a_page_that_was_read_is_reviewed(reviews: ReviewStore, pool: Pool) -> None:
    submitted = pool.submit(1)
    assert not reviews.put(submitted.reading_id, 1, said())
    assert not reviews.put(submitted.reading_id, 2, said())
    assert reviews.of_page(submitted.reading_id, 1) == ()
    assert listed(reviews) == []


def test_pages_are_listed_by_what_was_found_and_what_was_reviewed(reviews: ReviewStore, pool: Pool) -> None:
    first, one = uploaded(pool, 3)
    second, _ = uploaded(pool, 1)
    route(pool, one.reading_id, 2, Route.OCR_DEGRADED)
    route(pool, one.reading_id, 3, Route.VLM)
    assert listed(reviews) == [(second, 1), (first, 1), (first, 2), (first, 3)]
    assert listed(reviews, show=PagesShown.ESCALATED) == [(first, 2), (first, 3)]
    assert listed(reviews, show=PagesShown.ACCEPTED) == [(second, 1), (first, 1)]
    reviews.put(one.reading_id, 2, said("bob"))
    reviews.put(one.reading_id, 3, said(needs_vlm=False))
    escalated = ReviewFilter(reviewer="ada", show=PagesShown.ESCALATED)
    assert listed(reviews, is_reviewed=True) == [(first, 3)]
    assert listed(reviews, is_reviewed=False) == [(second, 1), (first, 1), (first, 2)]
    assert [page.needs_vlm for page in reviews.pages(escalated, limit=9)] == [None, False]
    progress = reviews.progress(escalated)
    assert (progress.pages, progress.reviewed) == (2, 1)


def test_a_list_goes_on_where_it_ended(
    reviews: ReviewStore, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.store.review_statements.UPLOADS_AT_FIRST", 1)
    for _ in range(3):
        uploaded(pool, 3)
    wanted, place, found = ReviewFilter(reviewer="ada"), None, []
    while pages := reviews.pages(wanted, after=place, limit=2):
        assert len(pages) <= 2
        found += [(page.place.upload_id, page.place.page_number) for page in pages]
        place = pages[-1].place
    assert found == listed(reviews)
    assert len(set(found)) == 9


def test_a_cost_centre_sees_its_own_and_those_below_it(reviews: ReviewStore, pool: Pool) -> None:
    ids = {name: uploaded(pool, 1, name)[0] for name in ("harbour", "harbour/crane", "harbours", "Harbour/x")}
    seen = [ids["harbour/crane"], ids["harbour"]]
    assert [upload for upload, _ in listed(reviews, cost_centre="harbour")] == seen
    assert len(listed(reviews)) == 4


def test_a_document_that_came_again_is_listed_once_as_it_came_last(reviews: ReviewStore, pool: Pool) -> None:
    first, one = uploaded(pool, 1)
    second, again = uploaded(pool, 1, "harbour/crane", again=one)
    assert one.reading_id == again.reading_id
    assert listed(reviews) == [(second, 1)]
    assert listed(reviews, cost_centre="harbour/crane") == [(second, 1)]
    with pool.store.database.write() as session:
        session.get_one(UploadRow, second).erased_at_s = time.time()
    assert listed(reviews) == [(first, 1)]


def test_where_reviewers_differ_the_newest_word_counts_and_it_is_told(
    reviews: ReviewStore, pool: Pool
) -> None:
    _, one = uploaded(pool, 2)
    reviews.put(one.reading_id, 1, said("ada", needs_vlm=True))
    reviews.put(one.reading_id, 1, said("bob", needs_vlm=False))
    reviews.put(one.reading_id, 2, said("ada"))
    pages = list(reviews.reviewed_pages())
    assert [(page.page_number, page.needs_vlm, page.differ, page.reviewers) for page in pages] == [
        (1, False, True, 2),
        (2, True, False, 1),
    ]
    assert {page.document_id for page in pages} == {one.document.document_id}
    assert pages[0].classes == ("table", "stamp")


def test_a_cost_centre_exports_its_own(reviews: ReviewStore, pool: Pool) -> None:
    for name in ("harbour", "harbour/crane", "market"):
        _, submitted = uploaded(pool, 1, name)
        reviews.put(submitted.reading_id, 1, said(cost_centre=name))
    assert len(list(reviews.reviewed_pages())) == 3
    assert len(list(reviews.reviewed_pages("harbour"))) == 2
    assert len(list(reviews.reviewed_pages("crane"))) == 0


def test_the_same_bytes_have_a_name_of_the_cost_centres_own_in_what_it_exports(
    reviews: ReviewStore, pool: Pool
) -> None:
    _, ours = uploaded(pool, cost_centre="harbour")
    _, theirs = uploaded(pool, cost_centre="market", again=ours)
    names = {ours.submission_id: "ours.pdf", theirs.submission_id: "a secret of theirs.pdf"}
    with pool.store.database.write() as session:
        for source in session.query(SourceRow):
            source.name = names[source.submission_id]
    reviews.put(ours.reading_id, 1, said(cost_centre="harbour"))
    reviews.put(theirs.reading_id, 1, said("eve", cost_centre="market"))
    assert [page.name for page in reviews.reviewed_pages("harbour")] == ["ours.pdf"]
    assert [page.name for page in reviews.reviewed_pages("market")] == ["a secret of theirs.pdf"]


def test_a_document_that_is_erased_takes_its_reviews_along(reviews: ReviewStore, pool: Pool) -> None:
    _, one = uploaded(pool, 2)
    _, other = uploaded(pool, 1)
    reviews.put(one.reading_id, 1, said())
    reviews.put(other.reading_id, 1, said())
    pool.store.purge.purge(one.document.document_id, lambda owner: True)
    assert reviews.of_page(one.reading_id, 1) == ()
    assert [page.document_id for page in reviews.reviewed_pages()] == [other.document.document_id]
    assert not reviews.put(one.reading_id, 1, said())


def test_pages_of_a_new_document_are_there_to_be_reviewed(reviews: ReviewStore, pool: Pool) -> None:
    uploaded(pool, 1)
    [page] = reviews.pages(ReviewFilter(reviewer="ada"), limit=1)
    assert (page.route, page.needs_vlm, page.cost_centre) == (Route.OCR, None, "harbour")
    assert page.summary == {"page_number": 1, "reasons": []}
