"""Uploads: entered whole and once, listed by those who may see them, and nothing left of those that never were."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from models.api_tables import ArrivingBlobRow, UploadRow
from models.document_state import DocumentState
from models.errors import IdempotencyKeyReused, PoolBusy
from models.pool import SourceState
from models.tables import SourceRow, SubmissionRow
from pipeline.store import PoolLimits, Store, connect_store
from pipeline.store.upload_records import Accepted, NewUpload, UploadFilter, UploadPlace
from tests.unit.store.pool_parts import LIMITS, Pool, new_document
from tests.unit.store.upload_parts import new_upload

DEAD, ALIVE = "host/boot/1/1", "host/boot/2/2"


def is_alive(owner: str) -> bool:
    return owner != DEAD


def enter(store: Store, upload: NewUpload, *, owner: str = ALIVE, limits: PoolLimits = LIMITS) -> Accepted:
    note = store.uploads.note_arriving(upload.blob_id, owner)
    return store.uploads.accept(upload, arriving_blob_id=note, limits=limits)


def count(store: Store, table: type[Any]) -> int:
    with store.database.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_an_upload_is_a_sealed_submission_with_one_source(store: Store) -> None:
    upload = new_upload(details={"case": "4711"}, priority=7)
    assert enter(store, upload) == Accepted(upload_id=upload.upload_id, is_new=True)
    found = store.uploads.find(upload.upload_id)
    assert found is not None
    assert (found.state, found.source_state) == (DocumentState.QUEUED, SourceState.RECEIVED)
    assert (found.name, found.byte_count, found.priority) == ("inv.pdf", 10, 7)
    assert found.details == {"case": "4711"}
    claimed = Pool(store).claim_source()
    assert claimed is not None
    assert claimed.source_id == found.source_id
    assert count(store, ArrivingBlobRow) == 0


def test_the_same_request_again_gives_the_upload_that_it_made(store: Store) -> None:
    first = new_upload(idempotency_key="k1", request_sha256="1" * 64)
    enter(store, first)
    again = new_upload(idempotency_key="k1", request_sha256="1" * 64)
    assert enter(store, again) == Accepted(upload_id=first.upload_id, is_new=False)
    assert store.uploads.same_request("harbour", "k1", "1" * 64) == Accepted(
        upload_id=first.upload_id, is_new=False
    )
    assert (count(store, UploadRow), count(store, SubmissionRow)) == (1, 1)


def test_another_request_with_the_key_is_refused_and_enters_nothing(store: Store) -> None:
    enter(store, new_upload(idempotency_key="k1", request_sha256="1" * 64))
    with pytest.raises(IdempotencyKeyReused):
        enter(store, new_upload(idempotency_key="k1", request_sha256="2" * 64))
    assert (count(store, UploadRow), count(store, SubmissionRow), count(store, SourceRow)) == (1, 1, 1)


def test_a_key_is_a_cost_centres_own(store: Store) -> None:
    enter(store, new_upload(idempotency_key="k1", request_sha256="1" * 64))
    assert enter(store, new_upload(idempotency_key="k1", request_sha256="2" * 64, cost_centre="quay")).is_new


def test_of_the_same_request_at_once_one_is_entered(
    store: Store, tmp_path: Path, database_url: SecretStr | None
) -> None:
    """All have looked for the key, and found none, before the first enters it."""
    at_once = 8
    ready = threading.Barrier(at_once)
    answers: list[Accepted] = []

    def ask() -> None:
        own = connect_store(tmp_path, database_url)
        upload = new_upload(idempotency_key="k1", request_sha256="1" * 64)
        note = own.uploads.note_arriving(upload.blob_id, ALIVE)
        ready.wait()
        answers.append(own.uploads.accept(upload, arriving_blob_id=note, limits=LIMITS))
        own.close()

    threads = [threading.Thread(target=ask) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.upload_id for answer in answers}) == 1
    assert sorted(answer.is_new for answer in answers) == [False] * (at_once - 1) + [True]
    assert (count(store, UploadRow), count(store, SubmissionRow), count(store, SourceRow)) == (1, 1, 1)


def test_a_full_pool_takes_no_upload_but_knows_one_that_came_before(store: Store) -> None:
    full = PoolLimits(max_waiting_pages=1, max_waiting_sources=1)
    enter(store, new_upload(idempotency_key="k1", request_sha256="1" * 64), limits=full)
    with pytest.raises(PoolBusy):
        store.uploads.require_room(full, "quay")
    with pytest.raises(PoolBusy):
        enter(store, new_upload(), limits=full)
    assert not enter(store, new_upload(idempotency_key="k1", request_sha256="1" * 64), limits=full).is_new
    assert count(store, SubmissionRow) == 1


def test_what_a_dead_server_left_is_erased_unless_it_has_a_name(store: Store) -> None:
    lost, entered, shared, coming = "a" * 64, "b" * 64, "c" * 64, "d" * 64
    for blob_id in (lost, entered, shared, coming):
        store.uploads.note_arriving(blob_id, DEAD)
    enter(store, new_upload(blob_id=entered))
    store.pages.save_document(replace(new_document(1), document_id=shared))
    store.uploads.note_arriving(coming, ALIVE)
    erased: list[str] = []
    assert store.uploads.erase_orphans(is_alive, erased.append, older_than_s=3_600) == 4
    assert erased == [lost]
    assert count(store, ArrivingBlobRow) == 1


def test_a_note_that_is_old_is_that_of_a_server_that_is_gone(store: Store) -> None:
    """Whoever lives on another machine is never known to be dead."""
    store.uploads.note_arriving("a" * 64, ALIVE)
    erased: list[str] = []
    assert store.uploads.erase_orphans(is_alive, erased.append, older_than_s=3_600) == 0
    assert store.uploads.erase_orphans(is_alive, erased.append, older_than_s=-1) == 1
    assert erased == ["a" * 64]


def test_what_was_not_accepted_goes_with_its_bytes_unless_others_have_them(store: Store) -> None:
    erased: list[str] = []
    first = store.uploads.note_arriving("a" * 64, ALIVE)
    second = store.uploads.note_arriving("a" * 64, ALIVE)
    store.uploads.forget_arriving(first, erased.append)
    assert erased == []
    store.uploads.forget_arriving(second, erased.append)
    assert erased == ["a" * 64]
    store.uploads.forget_arriving(second, erased.append)
    assert erased == ["a" * 64]


def test_bytes_that_arrive_again_while_they_are_erased_come_after(
    store: Store, tmp_path: Path, database_url: SecretStr | None
) -> None:
    """Whoever notes them gives them their name after that, so nothing that is named is erased."""
    store.uploads.note_arriving("a" * 64, DEAD)
    order: list[str] = []

    def note() -> None:
        own = connect_store(tmp_path, database_url)
        own.uploads.note_arriving("a" * 64, ALIVE)
        order.append("noted")
        own.close()

    thread = threading.Thread(target=note)

    def erase(_: str) -> None:
        thread.start()
        thread.join(0.5)
        order.append("erased")

    store.uploads.erase_orphans(is_alive, erase, older_than_s=3_600)
    thread.join()
    assert order == ["erased", "noted"]


def test_a_cost_centre_sees_its_own_and_those_below_it(store: Store) -> None:
    for cost_centre in ("harbour", "harbour/lock", "harbours", "Harbour/lock", "quay"):
        enter(store, new_upload(cost_centre=cost_centre))
    seen = store.uploads.list(UploadFilter(cost_centre="harbour"), limit=10)
    assert {record.cost_centre for record in seen} == {"harbour", "harbour/lock"}
    assert len(store.uploads.list(UploadFilter(), limit=10)) == 5


def test_a_list_goes_on_where_it_stopped(store: Store) -> None:
    ids = [enter(store, new_upload(name=f"{number}.pdf")).upload_id for number in range(5)]
    seen: list[str] = []
    after: UploadPlace | None = None
    while records := store.uploads.list(UploadFilter(), limit=2, after=after):
        seen += [record.upload_id for record in records]
        after = UploadPlace(created_at_s=records[-1].created_at_s, upload_id=records[-1].upload_id)
    assert sorted(seen) == sorted(ids)
    assert [record.name for record in store.uploads.list(UploadFilter(name="3."), limit=9)] == ["3.pdf"]


def test_states_are_listed_as_they_are_told(store: Store) -> None:
    pool = Pool(store)
    ids = {
        name: enter(store, new_upload(name=name, blob_id=name[0] * 64)).upload_id for name in ("c", "f", "q")
    }
    cancelled, failed = (store.uploads.find(ids[name]) for name in ("c", "f"))
    assert cancelled is not None
    assert failed is not None
    store.pool.cancel(cancelled.submission_id)
    source = pool.claim_source()
    assert source is not None
    reading = store.uploads.find(ids["f"])
    assert reading is not None
    assert reading.state is DocumentState.READING
    store.pool.refuse_source(source.source_id, owner="me", code="document_corrupt", message="broken")
    expected = {"c": DocumentState.CANCELLED, "f": DocumentState.FAILED, "q": DocumentState.QUEUED}
    for name, state in expected.items():
        record = store.uploads.find(ids[name])
        assert record is not None
        assert record.state is state
        listed = store.uploads.list(UploadFilter(state=state), limit=9)
        assert [one.upload_id for one in listed] == [ids[name]]


def over(store: Store, upload: NewUpload) -> int:
    """It was read as ``upload.blob_id``, one page; the number of its source."""
    enter(store, upload)
    document = replace(new_document(1), document_id=upload.blob_id)
    submitted = Pool(store).take_in(document)
    work = Pool(store).claim()
    assert work is not None
    Pool(store).finish(work)
    source = store.pool.claim_assembly(owner="me", lease_s=60, weights={})
    assert source is not None
    store.pool.source_written(source.source_id, owner="me", failed_pages=0)
    return submitted.source_id


def test_an_upload_is_erased_and_its_row_stays_without_words(store: Store) -> None:
    upload = new_upload(details={"case": "4711"}, callback_url="https://example.org", idempotency_key="k1")
    over(store, upload)
    erased: list[str] = []
    store.uploads.erase(upload.upload_id, is_alive, erased.append)
    assert erased == [upload.blob_id]
    record = store.uploads.find(upload.upload_id)
    assert record is not None
    assert record.erased_at_s is not None
    assert (record.details, record.callback_url, record.document_id) == (None, None, None)
    assert "inv" not in record.name
    assert store.pages.document(upload.blob_id) is None
    assert store.uploads.list(UploadFilter(), limit=9) == ()
    assert enter(store, new_upload(idempotency_key="k1", request_sha256="2" * 64)).is_new
    store.uploads.erase(upload.upload_id, is_alive, erased.append)
    assert erased == [upload.blob_id]


def test_bytes_that_somebody_else_brings_are_not_erased(store: Store) -> None:
    upload = new_upload(name="mine.pdf")
    source_id = over(store, upload)
    store.uploads.note_arriving(upload.blob_id, ALIVE)
    erased: list[str] = []
    store.uploads.erase(upload.upload_id, is_alive, erased.append)
    assert erased == []
    record = store.uploads.find(upload.upload_id)
    assert record is not None
    assert (record.source_id, record.reading_id) == (source_id, None)
    assert "mine" not in record.name
    assert store.pages.document(upload.blob_id) is not None
