"""Documents, their readings and the readings' pages.

A page's state changes by one conditional UPDATE, so of two who want the same page one gets it; a result
is taken only from the owner of the page's lease, so a page has one result. After each page
``complete_reading`` changes the reading's row when nothing is pending or running any more: whoever changed
it assembles (last page wins).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, exists, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from models.document import Document, MediaType
from models.page import Route
from models.tables import DocumentRow, PageRow, PageState, ReadingRow, ReadingState
from pipeline.chargeback.entries import LedgerEntry
from pipeline.store.database import Database, in_key_order, insert_missing, rows_changed, streamed
from pipeline.store.ledger import insert_cpu_entry
from pipeline.store.page_statements import (
    HELD,
    TakeOver,
    complete,
    finished_as_before,
    forget_unseen,
    has_unsettled,
    make_reading,
    pages_in_state,
    read_again,
    read_for,
    release,
    result_columns,
    settlement,
    transcribe_again,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedPage:
    """A page that has its result; ``elapsed_s`` is what reading it took."""

    page_number: int
    route: Route
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedReading:
    """Where a reading stands: ``pending`` pages wait to be claimed, ``awaiting_vlm`` ones are read and wait for
    the VLM, ``finished`` ones are from before."""

    reading_id: int
    pending: tuple[int, ...]
    awaiting_vlm: tuple[int, ...]
    finished: tuple[FinishedPage, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """A page as stored. ``content`` (its result, or its summary where that was asked for) is there when
    ``state`` is done, the error when it is failed. A page that is being read again keeps its earlier content
    until it is settled."""

    page_number: int
    state: PageState
    attempts: int
    elapsed_s: float | None
    error_code: str | None
    error_message: str | None
    content: Mapping[str, Any] | None


class PageStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save_document(self, document: Document) -> None:
        with self._database.write() as session:
            row = {
                "document_id": document.document_id,
                "media_type": document.media_type.value,
                "byte_count": document.byte_count,
                "page_count": document.page_count,
                "attachments": list(document.attachments),
                "created_at_s": time.time(),
            }
            insert_missing(session, DocumentRow, [row])

    def document(self, document_id: str) -> Document | None:
        with self._database.read() as session:
            row = session.get(DocumentRow, document_id)
            return None if row is None else _document(row)

    def open_reading(
        self,
        document: Document,
        fingerprint: str,
        *,
        force: bool,
        takes_over: TakeOver | None = None,
        submission_id: int | None = None,
    ) -> OpenedReading:
        """The reading of these bytes with these settings, made where missing, with the pages that it ``takes_over``
        from another unless ``force``. Pages that failed are pending
        again, and so are finished ones with ``force``; without it, those that a forced run did not get to are
        finished as before, and those that the VLM's service failed wait for it again. Its pages are read for the pool's
        ``submission_id``, unless a more urgent one waits for them already."""
        with self._database.write() as session:
            reading_id = make_reading(session, document, fingerprint, takes_over, is_fresh=force)
            session.execute(read_again(reading_id, PageState.FAILED))
            if force:
                session.execute(read_again(reading_id, PageState.DONE))
                session.execute(forget_unseen(reading_id))
            else:
                session.execute(finished_as_before(reading_id))
                session.execute(transcribe_again(reading_id))
            session.execute(
                update(ReadingRow)
                .where(ReadingRow.reading_id == reading_id, has_unsettled(reading_id))
                .values(state=ReadingState.OPEN, completed_at_s=None)
            )
            if submission_id is not None:
                read_for(session, reading_id, submission_id, is_forced=force)
            complete(session, reading_id)
            return _opened(session, reading_id)

    def complete_reading(self, reading_id: int) -> bool:
        """True for exactly one caller after the last page settled: the one who assembles."""
        with self._database.write() as session:
            return complete(session, reading_id)

    def is_complete(self, reading_id: int) -> bool:
        with self._database.read() as session:
            state = session.scalar(select(ReadingRow.state).where(ReadingRow.reading_id == reading_id))
            return state is ReadingState.COMPLETE

    def claim_pages(
        self, reading_id: int, page_numbers: Sequence[int], *, owner: str, lease_s: float
    ) -> tuple[int, ...]:
        """Those of the pages that were pending and are the owner's now, in order."""
        wanted = and_(
            PageRow.reading_id == reading_id,
            PageRow.page_number.in_(page_numbers),
            PageRow.state == PageState.PENDING,
        )
        claim = (
            update(PageRow)
            .where(in_key_order(PageRow, wanted))
            .values(state=PageState.RUNNING, lease_owner=owner, lease_expires_at_s=time.time() + lease_s)
            .returning(PageRow.page_number)
        )
        with self._database.write() as session:
            return tuple(sorted(session.scalars(claim)))

    def finish_page(
        self,
        reading_id: int,
        page_number: int,
        *,
        owner: str,
        page: Mapping[str, Any],
        summary: Mapping[str, Any],
        route: Route,
        elapsed_s: float,
        entry: LedgerEntry,
        degraded_code: str | None = None,
        awaits_vlm: bool = False,
    ) -> bool:
        """Store the page's result and its row of ``pages.jsonl``, and book the attempt; False, and nothing stored or
        booked, when the page is not the owner's any more. A page that ``awaits_vlm`` is not done with that."""
        return self._settle(
            reading_id,
            page_number,
            owner,
            entry,
            state=PageState.AWAITING_VLM if awaits_vlm else PageState.DONE,
            attempts=PageRow.attempts + 1,
            **result_columns(
                page=page,
                summary=summary,
                route=route,
                elapsed_s=elapsed_s,
                degraded_code=degraded_code,
            ),
        )

    def fail_page(
        self,
        reading_id: int,
        page_number: int,
        *,
        owner: str,
        code: str,
        message: str,
        entry: LedgerEntry,
    ) -> bool:
        """The page has failed for good."""
        return self._settle(
            reading_id,
            page_number,
            owner,
            entry,
            state=PageState.FAILED,
            attempts=PageRow.attempts + 1,
            degraded_code=None,
            route=None,
            elapsed_s=None,
            summary=None,
            result=None,
            error_code=code,
            error_message=message,
        )

    def return_page(
        self,
        reading_id: int,
        page_number: int,
        *,
        owner: str,
        code: str,
        message: str,
        entry: LedgerEntry,
    ) -> bool:
        """An attempt failed and the page is to be tried again: charge the attempt, make the page pending."""
        return self._settle(
            reading_id,
            page_number,
            owner,
            entry,
            state=PageState.PENDING,
            attempts=PageRow.attempts + 1,
            error_code=code,
            error_message=message,
        )

    def attempts(self, reading_id: int, page_number: int) -> int:
        """How many attempts on the page have come to an end."""
        with self._database.read() as session:
            row = session.get(PageRow, (reading_id, page_number))
            return 0 if row is None else row.attempts

    def release_leases(self, owner: str) -> int:
        """Give back, uncharged, every page the owner still holds."""
        with self._database.write() as session:
            return rows_changed(session, release(PageRow.lease_owner == owner))

    def reclaim_leases(self, is_alive: Callable[[str], bool]) -> int:
        """Give back the pages whose lease has run out or whose owner ``is_alive`` denies."""
        running = PageRow.state.in_(HELD)
        with self._database.read() as session:
            owners = session.scalars(select(PageRow.lease_owner).where(running).distinct()).all()
        dead = [owner for owner in owners if owner is not None and not is_alive(owner)]
        lost = or_(PageRow.lease_expires_at_s < time.time(), PageRow.lease_owner.in_(dead))
        with self._database.write() as session:
            return rows_changed(session, release(lost))

    def finished_pages(self, reading_id: int) -> tuple[FinishedPage, ...]:
        with self._database.read() as session:
            return _finished(session, reading_id)

    def pages_awaiting_vlm(self, reading_id: int) -> tuple[int, ...]:
        with self._database.read() as session:
            return pages_in_state(session, reading_id, PageState.AWAITING_VLM)

    def pending_pages(self, reading_id: int) -> tuple[int, ...]:
        with self._database.read() as session:
            return pages_in_state(session, reading_id, PageState.PENDING)

    def stream_pages(self, reading_id: int) -> Iterator[PageRecord]:
        """Every page in order with its result, from one snapshot, a few in memory at a time."""
        return self._stream(reading_id, PageRow.result, at_a_time=8)

    def stream_summaries(self, reading_id: int) -> Iterator[PageRecord]:
        """Every page in order with its summary."""
        return self._stream(reading_id, PageRow.summary, at_a_time=100)

    def failure_of_all_pages(self, reading_id: int) -> str | None:
        """The first page's message when every page failed, else None."""
        any_other = exists().where(PageRow.reading_id == reading_id, PageRow.state != PageState.FAILED)
        first = select(PageRow.error_message).where(PageRow.reading_id == reading_id, ~any_other)
        with self._database.read() as session:
            return session.scalars(first.order_by(PageRow.page_number).limit(1)).first()

    def _stream(
        self, reading_id: int, content: InstrumentedAttribute[dict[str, Any] | None], *, at_a_time: int
    ) -> Iterator[PageRecord]:
        columns = select(
            PageRow.page_number,
            PageRow.state,
            PageRow.attempts,
            PageRow.elapsed_s,
            PageRow.error_code,
            PageRow.error_message,
            content.label("content"),
        )
        pages = columns.where(PageRow.reading_id == reading_id).order_by(PageRow.page_number)
        with self._database.read() as session, streamed(session, pages, at_a_time=at_a_time) as rows:
            for row in rows:
                yield PageRecord(**row._mapping)

    def _settle(
        self, reading_id: int, page_number: int, owner: str, entry: LedgerEntry, **values: object
    ) -> bool:
        settle = settlement(reading_id, page_number, owner=owner, held_as=PageState.RUNNING, **values)
        with self._database.write() as session:
            is_ours = rows_changed(session, settle) == 1
            if is_ours:
                insert_cpu_entry(session, entry)
            return is_ours


def _document(row: DocumentRow) -> Document:
    return Document(
        document_id=row.document_id,
        media_type=MediaType(row.media_type),
        byte_count=row.byte_count,
        page_count=row.page_count,
        attachments=tuple(row.attachments),
    )


def _opened(session: Session, reading_id: int) -> OpenedReading:
    state = session.scalars(select(ReadingRow.state).where(ReadingRow.reading_id == reading_id)).one()
    return OpenedReading(
        reading_id=reading_id,
        pending=pages_in_state(session, reading_id, PageState.PENDING),
        awaiting_vlm=pages_in_state(session, reading_id, PageState.AWAITING_VLM),
        finished=_finished(session, reading_id),
        is_complete=state is ReadingState.COMPLETE,
    )


def _finished(session: Session, reading_id: int) -> tuple[FinishedPage, ...]:
    done = select(PageRow.page_number, PageRow.route, PageRow.elapsed_s).where(
        PageRow.reading_id == reading_id, PageRow.state == PageState.DONE
    )
    return tuple(
        FinishedPage(page_number=number, route=Route(route), elapsed_s=elapsed_s)
        for number, route, elapsed_s in session.execute(done.order_by(PageRow.page_number))
        if route is not None and elapsed_s is not None
    )
