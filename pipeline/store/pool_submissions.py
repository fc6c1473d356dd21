"""Submissions to the pool from their beginning to their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update

from models.errors import SubmissionNotOpen
from models.pool import SourceState, SubmissionState
from models.tables import ReadingRow, ReadingState, SourceRow, SubmissionRow
from pipeline.store.database import Database, insert_missing
from pipeline.store.pool_bounds import WaitingRoom
from pipeline.store.pool_records import PoolLimits
from pipeline.store.pool_statements import (
    finish_if_settled,
    forget_turns,
    hand_on,
    lock_submission,
    settle_cancelled,
)


class PoolSubmissions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._room = WaitingRoom()

    def open_submission(
        self,
        *,
        cost_centre: str,
        submitter: str | None,
        priority: int,
        wishes: Mapping[str, Any],
        sealed_passwords: str | None,
        traceparent: str | None,
        limits: PoolLimits,
    ) -> int:
        """Raises PoolBusy where as much waits already as may, of the cost centre's team or of all."""
        now_s = time.time()
        row = SubmissionRow(
            out_dir="",
            cost_centre=cost_centre,
            submitter=submitter,
            fingerprint="",
            created_at_s=now_s,
            state=SubmissionState.OPEN,
            priority=priority,
            wishes=dict(wishes),
            sealed_passwords=sealed_passwords,
            submitter_seen_at_s=now_s,
            traceparent=traceparent,
        )
        with self._database.write() as session:
            self._room.refuse_beyond(session, limits, cost_centre)
            session.add(row)
            session.flush()
            return row.submission_id

    def add_source(
        self,
        submission_id: int,
        *,
        name: str,
        output_stem: str,
        blob_id: str,
        byte_count: int,
        limits: PoolLimits,
    ) -> int:
        """A source whose bytes are in the blob store; its id. One that was added before with the same bytes stays as it
        is. Raises PoolBusy, SubmissionNotOpen, and ValueError for another file of the same name."""
        row = {
            "state": SourceState.RECEIVED,
            "name": name,
            "output_stem": output_stem,
            "blob_id": blob_id,
            "byte_count": byte_count,
        }
        payer = select(SubmissionRow.cost_centre).where(SubmissionRow.submission_id == submission_id)
        with self._database.read() as session:
            self._room.refuse_beyond(session, limits, session.scalar(payer))
        return self._add(submission_id, row)

    def add_refused_source(
        self, submission_id: int, *, name: str, output_stem: str, code: str, message: str
    ) -> int:
        """One that the submitter could not send, and the reason. It is settled with that."""
        row = {
            "state": SourceState.SETTLED,
            "name": name,
            "output_stem": output_stem,
            "error_code": code,
            "error_message": message,
            "settled_at_s": time.time(),
        }
        return self._add(submission_id, row)

    def _add(self, submission_id: int, row: Mapping[str, Any]) -> int:
        with self._database.write() as session:
            submission = lock_submission(session, submission_id)
            if submission.state is not SubmissionState.OPEN or submission.is_sealed:
                raise SubmissionNotOpen(
                    f"submission {submission_id} takes no more documents: it is "
                    f"{'closed' if submission.state is SubmissionState.OPEN else submission.state}; "
                    "submit the rest anew"
                )
            insert_missing(session, SourceRow, [{"submission_id": submission_id, **row}])
            named = select(SourceRow.source_id, SourceRow.blob_id).where(
                SourceRow.submission_id == submission_id, SourceRow.name == row["name"]
            )
            source_id, blob_id = session.execute(named).one()
            if blob_id != row.get("blob_id"):
                raise ValueError(f"{row['name']}: submission {submission_id} has another file of this name")
            submission.submitter_seen_at_s = time.time()
            return source_id

    def seal(self, submission_id: int) -> None:
        """All its sources are there. It is finished when they are settled, which they may be."""
        with self._database.write() as session:
            lock_submission(session, submission_id).is_sealed = True
            session.flush()
            finish_if_settled(session, submission_id)

    def seen(self, submission_id: int) -> None:
        """The submitter is still there."""
        with self._database.write() as session:
            session.execute(
                update(SubmissionRow)
                .where(SubmissionRow.submission_id == submission_id)
                .values(submitter_seen_at_s=time.time())
            )

    def cancel(self, submission_id: int) -> bool:
        """Nothing more of it is claimed; what is being worked on is finished. Readings that another submission waits
        for are read for that one. False where it is not open. Raises SubmissionNotFound."""
        with self._database.write() as session:
            submission = lock_submission(session, submission_id)
            if submission.state is not SubmissionState.OPEN:
                return False
            submission.state = SubmissionState.CANCELLED
            submission.finished_at_s = time.time()
            submission.sealed_passwords = None
            session.flush()
            own = select(ReadingRow.reading_id).where(
                ReadingRow.state == ReadingState.OPEN, ReadingRow.submission_id == submission_id
            )
            hand_on(session, session.scalars(own.order_by(ReadingRow.reading_id)).all())
            settle_cancelled(session, submission_id)
            forget_turns(session, submission_id)
            return True

    def prioritise(self, submission_id: int, priority: int) -> bool:
        """False where it is not open. Raises SubmissionNotFound."""
        with self._database.write() as session:
            submission = lock_submission(session, submission_id)
            if submission.state is not SubmissionState.OPEN:
                return False
            submission.priority = priority
            return True
