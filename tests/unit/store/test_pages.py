"""Pages in the database: who gets one, whose result counts, and who assembles."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest
from pydantic import SecretStr

from models.document import Document, MediaType
from models.page import Route
from models.tables import PageState
from pipeline.store import Store, connect_store
from tests.unit.store.booking import cpu_entry

DOCUMENT = Document(document_id="ab" * 32, media_type=MediaType.PDF, byte_count=10, page_count=4)
FINGERPRINT = "f" * 64


@pytest.fixture
def reading_id(store: Store) -> int:
    store.pages.save_document(DOCUMENT)
    return store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False).reading_id


def finish(
    store: Store, reading_id: int, page_number: int, owner: str = "me", *, awaits_vlm: bool = False
) -> bool:
    return store.pages.finish_page(
        reading_id,
        page_number,
        owner=owner,
        page={"page_number": page_number},
        summary={"page_number": page_number},
        route=Route.OCR,
        elapsed_s=1.5,
        entry=cpu_entry(reading_id, page_number),
        awaits_vlm=awaits_vlm,
    )


def claim(
    store: Store, reading_id: int, *numbers: int, owner: str = "me", lease_s: float = 60
) -> tuple[int, ...]:
    return store.pages.claim_pages(reading_id, numbers, owner=owner, lease_s=lease_s)


def states(store: Store, reading_id: int) -> list[PageState]:
    return [record.state for record in store.pages.stream_pages(reading_id)]


def test_of_two_who_claim_a_page_one_gets_it(store: Store, reading_id: int) -> None:
    assert claim(store, reading_id, 1, 2, owner="a") == (1, 2)
    assert claim(store, reading_id, 1, 2, 3, owner="b") == (3,)


def test_claims_from_many_connections_at_once_never_overlap(
    store: Store, reading_id: int, tmp_path: Path, database_url: SecretStr | None
) -> None:
    got: list[tuple[int, ...]] = []
    barrier = threading.Barrier(6)

    def compete(name: str) -> None:
        own = connect_store(tmp_path, database_url)
        barrier.wait()
        for number in (1, 2, 3, 4):
            got.append(claim(own, reading_id, number, owner=name))
        own.close()

    threads = [threading.Thread(target=compete, args=(f"t{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for numbers in got for number in numbers) == [1, 2, 3, 4]


def test_a_result_counts_only_from_the_owner(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, owner="a")
    assert not finish(store, reading_id, 1, owner="b")
    assert finish(store, reading_id, 1, owner="a")
    assert not finish(store, reading_id, 1, owner="a")
    assert states(store, reading_id)[0] is PageState.DONE


def test_what_was_read_is_no_end_of_a_page_that_is_being_transcribed(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1)
    assert finish(store, reading_id, 1, awaits_vlm=True)
    assert store.transcriptions.claim_page(reading_id, 1, owner="me", lease_s=60) is not None
    assert not finish(store, reading_id, 1)
    assert states(store, reading_id)[0] is PageState.TRANSCRIBING


def test_the_last_page_completes_the_reading_for_one_caller_alone(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, 2, 3, 4)
    for number in (1, 2, 3):
        finish(store, reading_id, number)
        assert not store.pages.complete_reading(reading_id)
    store.pages.fail_page(
        reading_id, 4, owner="me", code="engine_failed", message="no", entry=cpu_entry(reading_id, 4)
    )
    assert [store.pages.complete_reading(reading_id) for _ in range(3)] == [True, False, False]
    assert store.pages.is_complete(reading_id)


def test_a_returned_page_is_charged_and_a_released_one_is_not(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, 2)
    assert store.pages.return_page(
        reading_id, 1, owner="me", code="worker_crashed", message="gone", entry=cpu_entry(reading_id)
    )
    assert store.pages.release_leases("me") == 1
    assert [store.pages.attempts(reading_id, number) for number in (1, 2)] == [1, 0]
    assert store.pages.pending_pages(reading_id) == (1, 2, 3, 4)


def test_leases_of_the_dead_and_expired_ones_are_reclaimed_and_no_others(
    store: Store, reading_id: int
) -> None:
    claim(store, reading_id, 1, owner="dead")
    claim(store, reading_id, 2, owner="alive")
    claim(store, reading_id, 3, owner="alive", lease_s=-1)
    assert store.pages.reclaim_leases(lambda owner: owner == "alive") == 2
    assert states(store, reading_id)[:3] == [PageState.PENDING, PageState.RUNNING, PageState.PENDING]


def test_a_second_run_finds_finished_pages_and_gets_failed_ones_back(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, 2, 3, 4)
    for number in (1, 2, 3):
        finish(store, reading_id, number)
    store.pages.fail_page(
        reading_id, 4, owner="me", code="page_timed_out", message="late", entry=cpu_entry(reading_id, 4)
    )
    store.pages.complete_reading(reading_id)
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    assert opened.reading_id == reading_id
    assert opened.pending == (4,)
    assert [page.page_number for page in opened.finished] == [1, 2, 3]
    assert not opened.is_complete
    assert store.pages.attempts(reading_id, 4) == 0


def test_force_makes_finished_pages_pending_but_leaves_running_ones_to_their_owner(
    store: Store, reading_id: int
) -> None:
    claim(store, reading_id, 1, 2)
    finish(store, reading_id, 1)
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=True)
    assert opened.pending == (1, 3, 4)
    assert opened.finished == ()
    assert finish(store, reading_id, 2)


def test_what_a_forced_run_did_not_get_to_is_finished_as_before(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, 2, 3, 4)
    for number in (1, 2, 3, 4):
        finish(store, reading_id, number)
    store.pages.open_reading(DOCUMENT, FINGERPRINT, force=True)
    claim(store, reading_id, 1, 2, 3, owner="killed")
    finish(store, reading_id, 1, owner="killed")
    store.pages.fail_page(
        reading_id, 2, owner="killed", code="engine_failed", message="broke", entry=cpu_entry(reading_id, 2)
    )
    assert all(store.submissions.newest_page(DOCUMENT.document_id, number) for number in (1, 3, 4))
    assert store.submissions.newest_page(DOCUMENT.document_id, 2) is None
    store.pages.release_leases("killed")
    opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
    assert [page.page_number for page in opened.finished] == [1, 3, 4]
    assert opened.pending == (2,)


def test_another_fingerprint_is_another_reading(store: Store, reading_id: int) -> None:
    other = store.pages.open_reading(DOCUMENT, "e" * 64, force=False)
    assert other.reading_id != reading_id
    assert other.pending == (1, 2, 3, 4)


def test_a_result_that_is_no_json_is_refused_and_the_page_stays_with_its_owner(
    store: Store, reading_id: int
) -> None:
    claim(store, reading_id, 1)
    for lie in (math.nan, {1, 2}):
        with pytest.raises((ValueError, TypeError)):
            store.pages.finish_page(
                reading_id,
                1,
                owner="me",
                page={"lie": lie},
                summary={},
                route=Route.OCR,
                elapsed_s=1,
                entry=cpu_entry(reading_id),
            )
    assert states(store, reading_id)[0] is PageState.RUNNING
    assert finish(store, reading_id, 1)


def test_pages_are_streamed_in_order_from_one_snapshot(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 1, 2, 3, 4)
    for number in (4, 2, 1, 3):
        finish(store, reading_id, number)
    stream = store.pages.stream_pages(reading_id)
    assert next(stream).page_number == 1
    store.pages.open_reading(DOCUMENT, FINGERPRINT, force=True)
    assert [(record.page_number, record.state) for record in stream] == [
        (2, PageState.DONE),
        (3, PageState.DONE),
        (4, PageState.DONE),
    ]


def test_the_time_a_page_took_is_kept(store: Store, reading_id: int) -> None:
    claim(store, reading_id, 2)
    finish(store, reading_id, 2)
    [page] = store.pages.finished_pages(reading_id)
    assert (page.page_number, page.route, page.elapsed_s) == (2, Route.OCR, 1.5)
