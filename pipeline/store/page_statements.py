"""The statements behind ``PageStore``: what opens a reading, completes it, and gives pages back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Update, and_, case, exists, insert, literal, or_, select, true, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from models.document import Document
from models.page import Route
from models.pool import SourceState, SubmissionState
from models.tables import (
    UNSETTLED,
    PageRow,
    PageState,
    ReadingRow,
    ReadingState,
    SourceRow,
    SubmissionRow,
)
from models.transcription import DEGRADED_FOR_NOW
from pipeline.store.database import in_key_order, insert_missing, rows_changed

SETTLED = (PageState.DONE, PageState.FAILED)
HELD = (PageState.RUNNING, PageState.TRANSCRIBING)
"""States of a page that an owner has a lease on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """A reading made new begins with what the CPU read for one with the same ``cpu_fingerprint``. Pages that needed
    the VLM wait for it, where the new one ``has_vlm``; those whose text a VLM gave are read again."""

    cpu_fingerprint: str
    has_vlm: bool


def make_reading(
    session: Session, document: Document, fingerprint: str, takes_over: TakeOver | None, *, is_fresh: bool
) -> int:
    """The reading's id; its row and the rows of its pages are made where missing. The reading's row stays locked:
    until the transaction ends nobody completes it."""
    document_id = document.document_id
    reading = {
        "document_id": document_id,
        "fingerprint": fingerprint,
        "cpu_fingerprint": None if takes_over is None else takes_over.cpu_fingerprint,
        "state": ReadingState.OPEN,
        "created_at_s": time.time(),
    }
    insert_missing(session, ReadingRow, [reading])
    reading_id = session.scalars(
        select(ReadingRow.reading_id)
        .where(ReadingRow.document_id == document_id, ReadingRow.fingerprint == fingerprint)
        .with_for_update(key_share=True)
    ).one()
    is_new = not session.scalar(select(exists().where(PageRow.reading_id == reading_id)))
    if is_new and takes_over is not None and not is_fresh:
        _take_over(session, reading_id, document_id, takes_over)
    pages = [
        {"reading_id": reading_id, "page_number": number, "state": PageState.PENDING, "attempts": 0}
        for number in range(1, document.page_count + 1)
    ]
    insert_missing(session, PageRow, pages)
    return reading_id


def _take_over(session: Session, reading_id: int, document_id: str, takes_over: TakeOver) -> None:
    """Copies rows within the database."""
    source = session.scalar(
        select(ReadingRow.reading_id)
        .where(
            ReadingRow.document_id == document_id,
            ReadingRow.cpu_fingerprint == takes_over.cpu_fingerprint,
            ReadingRow.reading_id != reading_id,
        )
        .order_by(ReadingRow.created_at_s.desc(), ReadingRow.reading_id.desc())
        .limit(1)
    )
    if source is None:
        return
    is_degraded = PageRow.route == Route.OCR_DEGRADED.value
    kept: tuple[InstrumentedAttribute[Any], ...] = (
        PageRow.settled_at_s,
        PageRow.attempts,
        PageRow.route,
        PageRow.elapsed_s,
        PageRow.degraded_code,
        PageRow.summary,
        PageRow.result,
    )
    rows = select(
        literal(reading_id),
        PageRow.page_number,
        case((is_degraded, PageState.AWAITING_VLM), else_=PageState.DONE),
        *kept,
    ).where(
        PageRow.reading_id == source,
        PageRow.state.in_((PageState.DONE, PageState.AWAITING_VLM)),
        PageRow.result.is_not(None),
        PageRow.route != Route.VLM.value,
        true() if takes_over.has_vlm else ~is_degraded,
    )
    names = ["reading_id", "page_number", "state", *(column.key for column in kept)]
    session.execute(insert(PageRow).from_select(names, rows))


def page_is(state: PageState) -> ColumnElement[bool]:
    """Spelled out in the statement: a database uses the index of a state's pages only for that state by name."""
    return PageRow.state == literal(state, PageRow.state.type, literal_execute=True)


def pages_in_state(session: Session, reading_id: int, state: PageState) -> tuple[int, ...]:
    query = select(PageRow.page_number).where(PageRow.reading_id == reading_id, page_is(state))
    return tuple(session.scalars(query.order_by(PageRow.page_number)))


def has_unsettled(reading_id: int | InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Looks from the last page on: those before it are settled first. Pages that left a state stay in its index until
    a vacuum, and PostgreSQL would go through them."""
    return or_(
        *(
            select(PageRow.page_number)
            .where(PageRow.reading_id == reading_id, page_is(state))
            .order_by(PageRow.page_number.desc())
            .limit(1)
            .scalar_subquery()
            .is_not(None)
            for state in UNSETTLED
        )
    )


def read_again(reading_id: int, state: PageState) -> Update:
    """What a page holds stays until its new result replaces it: the run may be stopped before."""
    return (
        update(PageRow)
        .where(PageRow.reading_id == reading_id, PageRow.state == state)
        .values(state=PageState.PENDING, attempts=0, losses=0, error_code=None, error_message=None)
    )


def forget_unseen(reading_id: int) -> Update:
    """Pages that were read and wait for the VLM are to be read anew; what they hold was no final result."""
    again = read_again(reading_id, PageState.AWAITING_VLM)
    return again.values(summary=None, result=None, route=None, degraded_code=None)


def transcribe_again(reading_id: int) -> Update:
    """Pages that went without the VLM for a reason that may have passed wait for it again."""
    return (
        update(PageRow)
        .where(
            PageRow.reading_id == reading_id,
            PageRow.state == PageState.DONE,
            PageRow.degraded_code.in_([str(code) for code in DEGRADED_FOR_NOW]),
        )
        .values(state=PageState.AWAITING_VLM)
    )


def finished_as_before(reading_id: int) -> Update:
    unread_again = and_(
        PageRow.reading_id == reading_id,
        PageRow.state == PageState.PENDING,
        PageRow.result.is_not(None),
    )
    return (
        update(PageRow)
        .where(in_key_order(PageRow, unread_again))
        .values(state=PageState.DONE, error_code=None, error_message=None)
    )


def complete(session: Session, reading_id: int) -> bool:
    """True when this made the reading complete. Its row is locked first: PostgreSQL looks at the pages as they were
    when a statement began, and by the time it gets the lock they may be pending anew."""
    ends = and_(
        ReadingRow.reading_id == reading_id, ReadingRow.state == ReadingState.OPEN, ~has_unsettled(reading_id)
    )
    locked = session.scalar(select(ReadingRow.reading_id).where(ends).with_for_update(key_share=True))
    if locked is None:
        return False
    completion = (
        update(ReadingRow).where(ends).values(state=ReadingState.COMPLETE, completed_at_s=time.time())
    )
    return rows_changed(session, completion) == 1


def settlement(
    reading_id: int, page_number: int, *, owner: str, held_as: PageState, **values: object
) -> Update:
    """Changes no row when the page is not the owner's."""
    if values["state"] in SETTLED:
        values["settled_at_s"] = time.time()
    return (
        update(PageRow)
        .where(
            PageRow.reading_id == reading_id,
            PageRow.page_number == page_number,
            PageRow.state == held_as,
            PageRow.lease_owner == owner,
        )
        .values(lease_owner=None, lease_expires_at_s=None, **values)
    )


def result_columns(
    *,
    page: Mapping[str, Any],
    summary: Mapping[str, Any],
    route: Route,
    elapsed_s: float,
    degraded_code: str | None,
) -> dict[str, object]:
    """What a page with a result holds."""
    return {
        "route": route.value,
        "elapsed_s": elapsed_s,
        "degraded_code": degraded_code,
        "summary": dict(summary),
        "result": dict(page),
        "error_code": None,
        "error_message": None,
    }


def release(condition: ColumnElement[bool]) -> Update:
    """Back to where an owner took it from."""
    taken_from = case(
        (PageRow.state == PageState.TRANSCRIBING, PageState.AWAITING_VLM), else_=PageState.PENDING
    )
    return (
        update(PageRow)
        .where(in_key_order(PageRow, and_(PageRow.state.in_(HELD), condition)))
        .values(state=taken_from, lease_owner=None, lease_expires_at_s=None)
    )


def read_for(session: Session, reading_id: int, submission_id: int, *, is_forced: bool) -> None:
    """The reading's pages are read for the pool's submission, which pays for them: also where another one waits for
    them that is less urgent, or did not ask for them to be read again. The caller has locked the reading."""
    waiting = (
        select(SubmissionRow.priority)
        .join(SourceRow, SourceRow.submission_id == SubmissionRow.submission_id)
        .join(ReadingRow, ReadingRow.submission_id == SubmissionRow.submission_id)
        .where(
            ReadingRow.reading_id == reading_id,
            SourceRow.reading_id == reading_id,
            SourceRow.state == SourceState.READING,
            SubmissionRow.state == SubmissionState.OPEN,
        )
    )
    priority = session.scalars(waiting.limit(1)).first()
    own = session.scalars(
        select(SubmissionRow.priority).where(SubmissionRow.submission_id == submission_id)
    ).one()
    if is_forced or priority is None or own > priority:
        session.execute(
            update(ReadingRow).where(ReadingRow.reading_id == reading_id).values(submission_id=submission_id)
        )
