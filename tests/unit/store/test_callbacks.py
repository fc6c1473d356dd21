"""Callbacks in the database: which there are to be, whose turn it is, and what came of it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlalchemy import select

from models.api_tables import CallbackRow, CallbackState, UploadRow
from models.tables import SourceRow
from pipeline.store import Store
from pipeline.store.callbacks import CANCELLED, FAILED, FINISHED, CallbackRecord, DueCallback
from pipeline.store.purge_statements import PURGED
from tests.unit.store.pool_parts import Pool
from tests.unit.store.upload_parts import enter_upload

URL = "https://receiver.example/done"
LEASE_S = 60.0


def finished_upload(store: Store, cost_centre: str = "harbour", **changes: object) -> str:
    """Of a document that was refused, which is over soonest."""
    return refused_upload(store, cost_centre, None, **changes)


def refused_upload(
    store: Store, cost_centre: str = "harbour", code: str | None = "empty_file", **changes: object
) -> str:
    submission_id = Pool(store).open(cost_centre)
    source_id = store.pool.add_refused_source(
        submission_id, name="a.pdf", output_stem="a.pdf", code=code or "x", message="x"
    )
    if code is None:
        forget_error(store, source_id)
    store.pool.seal(submission_id)
    return enter_upload(store, submission_id, cost_centre=cost_centre, **{"callback_url": URL, **changes})


def forget_error(store: Store, source_id: int) -> None:
    with store.database.write() as session:
        session.get_one(SourceRow, source_id).error_code = None


def taken(store: Store, **changes: object) -> DueCallback:
    found = store.callbacks.take_due(**{"lease_s": LEASE_S, **changes})  # type: ignore[arg-type]
    assert found is not None
    return found


def only(store: Store, upload_id: str) -> CallbackRecord:
    [record] = store.callbacks.of_upload(upload_id)
    return record


def make_due(store: Store) -> None:
    with store.database.write() as session:
        for row in session.query(CallbackRow):
            row.next_attempt_at_s = 0.0


def test_each_end_of_a_document_has_its_event(store: Store) -> None:
    finished, failed = finished_upload(store), refused_upload(store)
    submission_id = Pool(store).open()
    cancelled = enter_upload(store, submission_id, callback_url=URL)
    Pool(store).add(submission_id)
    store.pool.seal(submission_id)
    assert store.callbacks.enter_missing() == 2
    store.pool.cancel(submission_id)
    assert store.callbacks.enter_missing() == 1
    events = {one: only(store, one).event for one in (finished, failed, cancelled)}
    assert events == {finished: FINISHED, failed: FAILED, cancelled: CANCELLED}


def test_a_callback_is_entered_once_however_often_one_looks(store: Store) -> None:
    upload_id = finished_upload(store)
    assert (store.callbacks.enter_missing(), store.callbacks.enter_missing()) == (1, 0)
    record = only(store, upload_id)
    assert (record.state, record.attempts, record.url) == (CallbackState.WAITING, 0, URL)
    assert record.message_id == f"msg_{upload_id}_finished"


def test_nothing_is_told_of_open_erased_or_silent_documents(store: Store) -> None:
    silent = finished_upload(store, callback_url=None)
    erased = finished_upload(store, erased_at_s=time.time())
    submission_id = Pool(store).open()
    still_open = enter_upload(store, submission_id, callback_url=URL)
    Pool(store).add(submission_id)
    assert store.callbacks.enter_missing() == 0
    assert [store.callbacks.of_upload(one) for one in (silent, erased, still_open)] == [(), (), ()]


def test_a_document_that_was_read_again_after_it_failed_is_told_of_again(store: Store) -> None:
    upload_id = refused_upload(store)
    store.callbacks.enter_missing()
    with store.database.read() as session:
        submission_id = session.get_one(UploadRow, upload_id).submission_id
        source_id = session.scalar(
            select(SourceRow.source_id).where(SourceRow.submission_id == submission_id)
        )
    assert source_id is not None
    forget_error(store, source_id)
    store.callbacks.enter_missing()
    assert {one.event for one in store.callbacks.of_upload(upload_id)} == {FAILED, FINISHED}


def test_a_document_that_was_purged_is_not_said_to_have_failed(store: Store) -> None:
    told = finished_upload(store)
    store.callbacks.enter_missing()
    untold = finished_upload(store)
    with store.database.write() as session:
        for source in session.query(SourceRow):
            source.error_code = PURGED
    assert store.callbacks.enter_missing() == 0
    assert only(store, told).event == FINISHED
    assert store.callbacks.of_upload(untold) == ()


def test_only_those_sent_lately_are_looked_at_where_that_is_asked(store: Store) -> None:
    finished_upload(store, created_at_s=1_000.0)
    assert store.callbacks.enter_missing(uploaded_since_s=1_000.1) == 0
    assert store.callbacks.enter_missing(uploaded_since_s=1_000.0) == 1


def test_what_is_due_is_taken_by_one_until_its_lease_is_over(store: Store) -> None:
    upload_id = finished_upload(store)
    store.callbacks.enter_missing()
    first = taken(store)
    assert (first.upload_id, first.attempts, first.cost_centre, first.url) == (upload_id, 1, "harbour", URL)
    assert store.callbacks.take_due(lease_s=LEASE_S) is None
    make_due(store)
    second = taken(store)
    assert (second.callback_id, second.attempts) == (first.callback_id, 2)
    store.callbacks.delivered(first, status=200)
    assert only(store, upload_id).state is CallbackState.WAITING, "it spoke for a turn that was over"
    store.callbacks.delivered(second, status=204)
    record = only(store, upload_id)
    assert (record.state, record.last_status, record.next_attempt_at_s) == (
        CallbackState.DELIVERED,
        204,
        None,
    )
    assert record.delivered_at_s is not None
    make_due(store)
    assert store.callbacks.take_due(lease_s=LEASE_S) is None


def test_the_one_that_has_waited_longest_is_first_and_busy_cost_centres_wait(store: Store) -> None:
    for cost_centre in ("attic", "harbour"):
        finished_upload(store, cost_centre)
        store.callbacks.enter_missing()
    assert taken(store, except_of_teams=["attic"]).cost_centre == "harbour"
    assert store.callbacks.take_due(lease_s=LEASE_S, except_of_teams=["attic"]) is None
    assert taken(store).cost_centre == "attic"


def test_a_failure_waits_for_its_next_turn_or_is_given_up(store: Store) -> None:
    upload_id = finished_upload(store)
    store.callbacks.enter_missing()
    later_s = time.time() + 300
    store.callbacks.failed(taken(store), status=500, error="it answered 500", next_attempt_at_s=later_s)
    record = only(store, upload_id)
    assert (record.state, record.next_attempt_at_s) == (CallbackState.WAITING, pytest.approx(later_s))
    assert (record.last_status, record.last_error) == (500, "it answered 500")
    assert store.callbacks.take_due(lease_s=LEASE_S) is None
    make_due(store)
    again = taken(store)
    store.callbacks.failed(replace(again, attempts=9), status=None, error="x", next_attempt_at_s=None)
    assert only(store, upload_id).state is CallbackState.WAITING
    store.callbacks.failed(again, status=None, error="no connection", next_attempt_at_s=None)
    record = only(store, upload_id)
    assert (record.state, record.attempts, record.last_status) == (CallbackState.GIVEN_UP, 2, None)
    make_due(store)
    assert store.callbacks.take_due(lease_s=LEASE_S) is None


def test_a_delivered_callback_has_no_error_any_more(store: Store) -> None:
    upload_id = finished_upload(store)
    store.callbacks.enter_missing()
    store.callbacks.failed(taken(store), status=503, error="it answered 503", next_attempt_at_s=0.0)
    store.callbacks.delivered(taken(store), status=200)
    assert only(store, upload_id).last_error is None
