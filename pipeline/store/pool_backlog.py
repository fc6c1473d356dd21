"""How much waits in each queue, since when, and how much is held."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from models.pool import Queue, SourceState, SubmissionState
from models.tables import PageRow, PageState, ReadingRow, ReadingState, SourceRow, SubmissionRow
from pipeline.store.page_statements import page_is
from pipeline.store.pool_records import Backlog, QueueBacklog

PAGES = {
    Queue.OCR: (PageState.PENDING, PageState.RUNNING),
    Queue.VLM: (PageState.AWAITING_VLM, PageState.TRANSCRIBING),
}
SOURCES = {
    Queue.INTAKE: (SourceState.RECEIVED, SourceState.IN_INTAKE),
    Queue.ASSEMBLE: (SourceState.READ, SourceState.BEING_WRITTEN),
}
"""States of what waits, and of what is held."""


def backlog_of(session: Session) -> Backlog:
    return Backlog(
        queues={
            queue: _of_pages(session, queue) if queue in PAGES else _of_sources(session, queue)
            for queue in Queue
        }
    )


def has_waiting(session: Session, queue: Queue) -> bool:
    """Whether a claim would find something that nobody else has claimed by then."""
    is_open = SubmissionRow.state == SubmissionState.OPEN
    if queue in PAGES:
        waits = select(PageRow.page_number).where(
            PageRow.reading_id == ReadingRow.reading_id, page_is(PAGES[queue][0])
        )
        rows = (
            select(ReadingRow.reading_id)
            .join(SubmissionRow, SubmissionRow.submission_id == ReadingRow.submission_id)
            .where(is_open, ReadingRow.state == ReadingState.OPEN, waits.exists())
        )
    else:
        rows = (
            select(SourceRow.source_id)
            .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
            .where(is_open, SourceRow.state == SOURCES[queue][0])
        )
        if queue is Queue.ASSEMBLE:
            rows = rows.where(_is_complete())
    return session.scalar(rows.limit(1)) is not None


def _is_complete() -> ColumnElement[bool]:
    """Of a source's reading."""
    return (
        select(ReadingRow.reading_id)
        .where(ReadingRow.reading_id == SourceRow.reading_id, ReadingRow.state == ReadingState.COMPLETE)
        .exists()
    )


def _of_pages(session: Session, queue: Queue) -> QueueBacklog:
    """What is held counts also where its submission was cancelled since."""
    waiting, held = PAGES[queue]
    is_wanted = and_(
        ReadingRow.state == ReadingState.OPEN, SubmissionRow.state == SubmissionState.OPEN, page_is(waiting)
    )
    return _counted(_pages(session, is_wanted), _pages(session, page_is(held)))


def _of_sources(session: Session, queue: Queue) -> QueueBacklog:
    waiting, held = SOURCES[queue]
    is_wanted = and_(SubmissionRow.state == SubmissionState.OPEN, SourceRow.state == waiting)
    if queue is Queue.ASSEMBLE:
        is_wanted = and_(is_wanted, _is_complete())
    return _counted(_sources(session, is_wanted), _sources(session, SourceRow.state == held))


Counts = tuple[int, float | None, int]
"""Rows, when the oldest submission among them was opened, losses."""


def _counted(waiting: Counts, held: Counts) -> QueueBacklog:
    return QueueBacklog(waiting=waiting[0], oldest_at_s=waiting[1], held=held[0], losses=waiting[2] + held[2])


def _pages(session: Session, condition: ColumnElement[bool]) -> Counts:
    query = (
        select(func.count(), func.min(SubmissionRow.created_at_s), func.coalesce(func.sum(PageRow.losses), 0))
        .select_from(PageRow)
        .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
        .join(SubmissionRow, SubmissionRow.submission_id == ReadingRow.submission_id)
        .where(condition)
    )
    count, oldest_at_s, losses = session.execute(query).one()
    return count, oldest_at_s, int(losses)


def _sources(session: Session, condition: ColumnElement[bool]) -> Counts:
    query = (
        select(
            func.count(), func.min(SubmissionRow.created_at_s), func.coalesce(func.sum(SourceRow.losses), 0)
        )
        .select_from(SourceRow)
        .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
        .where(condition)
    )
    count, oldest_at_s, losses = session.execute(query).one()
    return count, oldest_at_s, int(losses)
