"""Callbacks: what is to be told to whom, and what came of telling it.

A callback is delivered at least once: whoever takes one has ``lease_s`` to say what came of it, and then another may
take it. ``attempts`` names the turn, so that nobody speaks for a turn that is not theirs any more.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, case, exists, literal, or_, select, update
from sqlalchemy.orm import Session

from models.api_tables import CallbackRow, CallbackState, UploadRow
from models.errors import Cancelled
from models.pool import SubmissionState
from models.tables import SourceRow, SubmissionRow
from pipeline.store.cost_centre_statements import is_paid_by
from pipeline.store.database import Database, insert_missing, rows_changed
from pipeline.store.purge_statements import PURGED

FINISHED: Final = "document.finished"
FAILED: Final = "document.failed"
CANCELLED: Final = "document.cancelled"

MOST_ENTERED: Final = 500
"""At a time; the rest follows."""
MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCallback:
    """A callback and whose turn it is: the ``attempts``-th, counted from 1."""

    callback_id: int
    upload_id: str
    cost_centre: str
    message_id: str
    event: str
    url: str
    attempts: int
    created_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackRecord:
    """``next_attempt_at_s`` is None where there will be none."""

    message_id: str
    event: str
    url: str
    state: CallbackState
    attempts: int
    next_attempt_at_s: float | None
    last_status: int | None
    last_error: str | None
    created_at_s: float
    delivered_at_s: float | None


class CallbackStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def enter_missing(self, *, uploaded_since_s: float | None = None) -> int:
        """Enter the callbacks of documents that are over; how many. ``uploaded_since_s`` None looks at all there are.
        Several may do this at once."""
        with self._database.read() as session:
            missing = session.execute(_missing(uploaded_since_s).limit(MOST_ENTERED)).all()
        if not missing:
            return 0
        now_s = time.time()
        rows = [
            {
                **row._mapping,
                "message_id": f"msg_{row.upload_id}_{row.event.rpartition('.')[2]}",
                "state": CallbackState.WAITING,
                "attempts": 0,
                "next_attempt_at_s": now_s,
                "created_at_s": now_s,
            }
            for row in missing
        ]
        with self._database.write() as session:
            insert_missing(session, CallbackRow, rows)
        return len(rows)

    def take_due(self, *, lease_s: float, except_of_teams: Collection[str] = ()) -> DueCallback | None:
        """The one that has been due longest, of none of these teams or their projects; None where none is due."""
        while True:
            with self._database.read() as session:
                found = _longest_due(session, except_of_teams)
            if found is None:
                return None
            take = update(CallbackRow).where(_turn_of(found, found.attempts - 1), _is_due())
            with self._database.write() as session:
                values = {"attempts": found.attempts, "next_attempt_at_s": time.time() + lease_s}
                if rows_changed(session, take.values(values)) == 1:
                    return found

    def delivered(self, taken: DueCallback, *, status: int) -> None:
        self._note(
            taken,
            state=CallbackState.DELIVERED,
            delivered_at_s=time.time(),
            last_status=status,
            last_error=None,
        )

    def failed(
        self, taken: DueCallback, *, status: int | None, error: str, next_attempt_at_s: float | None
    ) -> None:
        """``next_attempt_at_s`` None gives it up. ``status`` is None where there was no answer."""
        values: dict[str, object] = {"last_status": status, "last_error": error}
        if next_attempt_at_s is None:
            values["state"] = CallbackState.GIVEN_UP
        else:
            values["next_attempt_at_s"] = next_attempt_at_s
        self._note(taken, **values)

    def of_upload(self, upload_id: str) -> tuple[CallbackRecord, ...]:
        """The newest first."""
        query = (
            select(CallbackRow)
            .where(CallbackRow.upload_id == upload_id)
            .order_by(CallbackRow.created_at_s.desc(), CallbackRow.callback_id.desc())
            .limit(MOST_SHOWN)
        )
        with self._database.read() as session:
            return tuple(map(_record, session.scalars(query)))

    def _note(self, taken: DueCallback, **values: object) -> None:
        note = update(CallbackRow).where(_turn_of(taken, taken.attempts)).values(**values)
        with self._database.write() as session:
            rows_changed(session, note)


def _missing(uploaded_since_s: float | None) -> Select[tuple[str, str, str]]:
    """Upload, event and address of documents that are over and of which this was not entered. One that was erased is
    not told of. As ``UploadRecord.state`` has it."""
    has_no_other_error = or_(SourceRow.error_code.is_(None), SourceRow.error_code == Cancelled.code)
    event = case(
        (and_(SubmissionRow.state == SubmissionState.CANCELLED, has_no_other_error), literal(CANCELLED)),
        (SourceRow.error_code.is_not(None), literal(FAILED)),
        else_=literal(FINISHED),
    )
    is_entered = exists().where(CallbackRow.upload_id == UploadRow.upload_id, CallbackRow.event == event)
    query = (
        select(UploadRow.upload_id, event.label("event"), UploadRow.callback_url.label("url"))
        .join(SubmissionRow, SubmissionRow.submission_id == UploadRow.submission_id)
        .join(SourceRow, SourceRow.submission_id == UploadRow.submission_id)
        .where(
            UploadRow.callback_url.is_not(None),
            UploadRow.erased_at_s.is_(None),
            SourceRow.error_code.is_distinct_from(PURGED),
            SubmissionRow.state.in_((SubmissionState.FINISHED, SubmissionState.CANCELLED)),
            ~is_entered,
        )
    )
    return query if uploaded_since_s is None else query.where(UploadRow.created_at_s >= uploaded_since_s)


def _longest_due(session: Session, except_of_teams: Collection[str]) -> DueCallback | None:
    query = (
        select(
            CallbackRow.callback_id,
            CallbackRow.upload_id,
            UploadRow.cost_centre,
            CallbackRow.message_id,
            CallbackRow.event,
            CallbackRow.url,
            (CallbackRow.attempts + 1).label("attempts"),
            CallbackRow.created_at_s,
        )
        .join(UploadRow, UploadRow.upload_id == CallbackRow.upload_id)
        .where(_is_due(), *(~is_paid_by(UploadRow.cost_centre, team) for team in except_of_teams))
        .order_by(CallbackRow.next_attempt_at_s, CallbackRow.callback_id)
        .limit(1)
    )
    row = session.execute(query).first()
    return None if row is None else DueCallback(**row._mapping)


def _is_due() -> ColumnElement[bool]:
    return and_(CallbackRow.state == CallbackState.WAITING, CallbackRow.next_attempt_at_s <= time.time())


def _turn_of(taken: DueCallback, attempts: int) -> ColumnElement[bool]:
    return and_(
        CallbackRow.callback_id == taken.callback_id,
        CallbackRow.state == CallbackState.WAITING,
        CallbackRow.attempts == attempts,
    )


def _record(row: CallbackRow) -> CallbackRecord:
    return CallbackRecord(
        message_id=row.message_id,
        event=row.event,
        url=row.url,
        state=row.state,
        attempts=row.attempts,
        next_attempt_at_s=row.next_attempt_at_s if row.state is CallbackState.WAITING else None,
        last_status=row.last_status,
        last_error=row.last_error,
        created_at_s=row.created_at_s,
        delivered_at_s=row.delivered_at_s,
    )
