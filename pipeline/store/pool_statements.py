"""The statements behind the pool's store.

Whoever locks more than one kind of row does so in this order, so that no two wait for each other: submission, reading,
page, source, turn, lane. Claims pass over rows that are locked and wait for a lane alone, the last that they lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, case, delete, exists, select, update
from sqlalchemy.orm import Session

from models.document import Document, MediaType
from models.errors import Cancelled, SubmissionNotFound
from models.pool import SourceState, SubmissionState
from models.tables import (
    DocumentRow,
    ReadingRow,
    ReadingState,
    SourceRow,
    SubmissionRow,
    TurnRow,
)
from pipeline.store.database import in_key_order, rows_changed
from pipeline.store.page_statements import complete
from pipeline.store.pool_records import SubmissionTerms

UNSETTLED_SOURCES: Final = tuple(state for state in SourceState if state is not SourceState.SETTLED)

TAKEN_FROM: Final = {
    SourceState.IN_INTAKE: SourceState.RECEIVED,
    SourceState.BEING_WRITTEN: SourceState.READ,
}
"""States of a source that an owner has a lease on, and where it took it from."""


def lock_submission(session: Session, submission_id: int) -> SubmissionRow:
    """Nobody else adds to it, cancels it or finishes it until the transaction ends. Raises SubmissionNotFound."""
    query = select(SubmissionRow).where(
        SubmissionRow.submission_id == submission_id, SubmissionRow.state.is_not(None)
    )
    row = session.scalar(query.with_for_update(key_share=True))
    if row is None:
        raise SubmissionNotFound(submission_id)
    return row


def finish_if_settled(session: Session, submission_id: int) -> bool:
    """The submission's row is locked by the caller. What only its workers needed is wiped."""
    has_unsettled = exists().where(
        SourceRow.submission_id == submission_id, SourceRow.state.in_(UNSETTLED_SOURCES)
    )
    finish = (
        update(SubmissionRow)
        .where(
            SubmissionRow.submission_id == submission_id,
            SubmissionRow.state == SubmissionState.OPEN,
            SubmissionRow.is_sealed.is_(True),
            ~has_unsettled,
        )
        .values(state=SubmissionState.FINISHED, finished_at_s=time.time(), sealed_passwords=None)
    )
    if rows_changed(session, finish) == 0:
        return False
    forget_turns(session, submission_id)
    return True


def forget_turns(session: Session, submission_id: int) -> None:
    session.execute(delete(TurnRow).where(TurnRow.submission_id == submission_id))


def settle_source(session: Session, source_id: int, condition: ColumnElement[bool], **values: object) -> bool:
    """False, and nothing changed, where the condition does not hold. The last source finishes its submission."""
    submission_id = session.scalar(select(SourceRow.submission_id).where(SourceRow.source_id == source_id))
    if submission_id is None:
        return False
    lock_submission(session, submission_id)
    settle = (
        update(SourceRow)
        .where(SourceRow.source_id == source_id, condition)
        .values(
            state=SourceState.SETTLED,
            settled_at_s=time.time(),
            lease_owner=None,
            lease_expires_at_s=None,
            **values,
        )
    )
    if rows_changed(session, settle) == 0:
        return False
    finish_if_settled(session, submission_id)
    return True


def settle_cancelled(session: Session, submission_id: int) -> int:
    """What was not settled when its submission was cancelled never will be."""
    unsettled = and_(SourceRow.submission_id == submission_id, SourceRow.state.in_(UNSETTLED_SOURCES))
    settle = (
        update(SourceRow)
        .where(in_key_order(SourceRow, unsettled))
        .values(
            state=SourceState.SETTLED,
            settled_at_s=time.time(),
            lease_owner=None,
            lease_expires_at_s=None,
            error_code=Cancelled.code,
            error_message="its submission was cancelled before it was read; submit it again",
        )
    )
    return rows_changed(session, settle)


def held_source(source_id: int, owner: str, *states: SourceState) -> ColumnElement[bool]:
    return and_(SourceRow.source_id == source_id, SourceRow.state.in_(states), SourceRow.lease_owner == owner)


def read_sources(session: Session, reading_id: int) -> int:
    """Those that waited for the reading, which is complete, may be assembled."""
    is_complete = exists().where(
        ReadingRow.reading_id == reading_id, ReadingRow.state == ReadingState.COMPLETE
    )
    waiting = and_(SourceRow.reading_id == reading_id, SourceRow.state == SourceState.READING)
    return rows_changed(
        session,
        update(SourceRow).where(in_key_order(SourceRow, waiting), is_complete).values(state=SourceState.READ),
    )


def complete_with_sources(session: Session, reading_id: int) -> int:
    """Complete the reading where all its pages are settled, and let its sources be assembled: how many."""
    complete(session, reading_id)
    return read_sources(session, reading_id)


def release_sources(session: Session, condition: ColumnElement[bool], **values: object) -> int:
    """Back to where an owner took them from."""
    taken_from = case(
        *((SourceRow.state == held, free) for held, free in TAKEN_FROM.items()), else_=SourceRow.state
    )
    held = and_(SourceRow.state.in_(tuple(TAKEN_FROM)), condition)
    release = (
        update(SourceRow)
        .where(in_key_order(SourceRow, held))
        .values(state=taken_from, lease_owner=None, lease_expires_at_s=None, **values)
    )
    return rows_changed(session, release)


def hand_on(session: Session, readings: Iterable[int]) -> int:
    """Each open reading whose submission wants it no more is read for the most urgent one that does, which pays for it
    from now on; how many. The readings' rows are locked in the order given."""
    return sum(_hand_on(session, reading_id) for reading_id in readings)


def _hand_on(session: Session, reading_id: int) -> bool:
    reading = session.scalar(
        select(ReadingRow).where(ReadingRow.reading_id == reading_id).with_for_update(key_share=True)
    )
    if reading is None or reading.state is not ReadingState.OPEN or reading.submission_id is None:
        return False
    heirs = tuple(session.scalars(_wanting(reading_id)))
    if not heirs or reading.submission_id in heirs:
        return False
    reading.submission_id = heirs[0]
    return True


def _wanting(reading_id: int) -> Select[int]:
    """Open submissions that wait for the reading, the most urgent one first."""
    return (
        select(SubmissionRow.submission_id)
        .join(SourceRow, SourceRow.submission_id == SubmissionRow.submission_id)
        .where(
            SourceRow.reading_id == reading_id,
            SourceRow.state == SourceState.READING,
            SubmissionRow.state == SubmissionState.OPEN,
        )
        .order_by(SubmissionRow.priority.desc(), SubmissionRow.submission_id)
    )


def terms_of(session: Session, submission_id: int) -> SubmissionTerms:
    row = session.execute(
        select(
            SubmissionRow.submission_id,
            SubmissionRow.cost_centre,
            SubmissionRow.submitter,
            SubmissionRow.priority,
            SubmissionRow.wishes,
            SubmissionRow.sealed_passwords,
            SubmissionRow.traceparent,
        ).where(SubmissionRow.submission_id == submission_id)
    ).one()
    return SubmissionTerms(
        submission_id=row.submission_id,
        cost_centre=row.cost_centre or "",
        submitter=row.submitter,
        priority=row.priority,
        wishes=row.wishes or {},
        sealed_passwords=row.sealed_passwords,
        traceparent=row.traceparent,
    )


def document_of(session: Session, reading_id: int) -> tuple[str, Document]:
    """The reading's fingerprint and its document."""
    row = session.execute(
        select(ReadingRow.fingerprint, DocumentRow)
        .join(DocumentRow, DocumentRow.document_id == ReadingRow.document_id)
        .where(ReadingRow.reading_id == reading_id)
    ).one()
    document = row.DocumentRow
    return row.fingerprint, Document(
        document_id=document.document_id,
        media_type=MediaType(document.media_type),
        byte_count=document.byte_count,
        page_count=document.page_count,
        attachments=tuple(document.attachments),
    )
