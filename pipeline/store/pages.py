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

from sqlalchemy import ColumnElement, Update, exists, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from models.document import Document, MediaType
from models.page import Route
from models.tables import DocumentRow, PageRow, PageState, ReadingRow, ReadingState
from pipeline.store.database import Database, rows_changed

UNSETTLED = (PageState.PENDING, PageState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedPage:
    """A page that has its result; ``elapsed_s`` is what reading it took."""

    page_number: int
    route: Route
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedReading:
    """Where a reading stands: ``pending`` pages wait to be claimed, ``finished`` ones are from before."""

    reading_id: int
    pending: tuple[int, ...]
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
            session.execute(insert(DocumentRow).values(row).on_conflict_do_nothing())

    def document(self, document_id: str) -> Document | None:
        with self._database.read() as session:
            row = session.get(DocumentRow, document_id)
            return None if row is None else _document(row)

    def open_reading(self, document: Document, fingerprint: str, *, force: bool) -> OpenedReading:
        """The reading of these bytes with these settings, made where missing. Pages that failed are pending
        again, and so are finished ones with ``force``; without it, those that a forced run did not get to are
        finished as before."""
        with self._database.write() as session:
            reading_id = _reading_id(session, document, fingerprint)
            session.execute(_read_again(reading_id, PageState.FAILED))
            session.execute(
                _read_again(reading_id, PageState.DONE) if force else _finished_as_before(reading_id)
            )
            session.execute(
                update(ReadingRow)
                .where(ReadingRow.reading_id == reading_id, _has_unsettled(reading_id))
                .values(state=ReadingState.OPEN, completed_at_s=None)
            )
            session.execute(_completion(reading_id))
            return _opened(session, reading_id)

    def complete_reading(self, reading_id: int) -> bool:
        """True for exactly one caller after the last page settled: the one who assembles."""
        with self._database.write() as session:
            return rows_changed(session, _completion(reading_id)) == 1

    def is_complete(self, reading_id: int) -> bool:
        with self._database.read() as session:
            state = session.scalar(select(ReadingRow.state).where(ReadingRow.reading_id == reading_id))
            return state is ReadingState.COMPLETE

    def claim_pages(
        self, reading_id: int, page_numbers: Sequence[int], *, owner: str, lease_s: float
    ) -> tuple[int, ...]:
        """Those of the pages that were pending and are the owner's now, in order."""
        claim = (
            update(PageRow)
            .where(
                PageRow.reading_id == reading_id,
                PageRow.page_number.in_(page_numbers),
                PageRow.state == PageState.PENDING,
            )
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
    ) -> bool:
        """Store the page's result and its row of ``pages.jsonl``; False, and nothing stored, when the page is
        not the owner's any more."""
        return self._settle(
            reading_id,
            page_number,
            owner,
            state=PageState.DONE,
            attempts=PageRow.attempts + 1,
            route=route.value,
            elapsed_s=elapsed_s,
            summary=dict(summary),
            result=dict(page),
            error_code=None,
            error_message=None,
        )

    def fail_page(self, reading_id: int, page_number: int, *, owner: str, code: str, message: str) -> bool:
        """The page has failed for good."""
        return self._settle(
            reading_id,
            page_number,
            owner,
            state=PageState.FAILED,
            attempts=PageRow.attempts + 1,
            route=None,
            elapsed_s=None,
            summary=None,
            result=None,
            error_code=code,
            error_message=message,
        )

    def return_page(self, reading_id: int, page_number: int, *, owner: str, code: str, message: str) -> bool:
        """An attempt failed and the page is to be tried again: charge the attempt, make the page pending."""
        return self._settle(
            reading_id,
            page_number,
            owner,
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
            return rows_changed(session, _release(PageRow.lease_owner == owner))

    def reclaim_leases(self, is_alive: Callable[[str], bool]) -> int:
        """Give back the pages whose lease has run out or whose owner ``is_alive`` denies."""
        running = PageRow.state == PageState.RUNNING
        with self._database.read() as session:
            owners = session.scalars(select(PageRow.lease_owner).where(running).distinct()).all()
        dead = [owner for owner in owners if owner is not None and not is_alive(owner)]
        with self._database.write() as session:
            expired = rows_changed(session, _release(PageRow.lease_expires_at_s < time.time()))
            return expired + rows_changed(session, _release(PageRow.lease_owner.in_(dead)))

    def finished_pages(self, reading_id: int) -> tuple[FinishedPage, ...]:
        with self._database.read() as session:
            return _finished(session, reading_id)

    def pending_pages(self, reading_id: int) -> tuple[int, ...]:
        with self._database.read() as session:
            return _page_numbers(session, reading_id, PageState.PENDING)

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
        with self._database.read() as session:
            for row in session.execute(pages.execution_options(yield_per=at_a_time)):
                yield PageRecord(**row._mapping)

    def _settle(self, reading_id: int, page_number: int, owner: str, **values: object) -> bool:
        settle = (
            update(PageRow)
            .where(
                PageRow.reading_id == reading_id,
                PageRow.page_number == page_number,
                PageRow.state == PageState.RUNNING,
                PageRow.lease_owner == owner,
            )
            .values(lease_owner=None, lease_expires_at_s=None, **values)
        )
        with self._database.write() as session:
            return rows_changed(session, settle) == 1


def _document(row: DocumentRow) -> Document:
    return Document(
        document_id=row.document_id,
        media_type=MediaType(row.media_type),
        byte_count=row.byte_count,
        page_count=row.page_count,
        attachments=tuple(row.attachments),
    )


def _reading_id(session: Session, document: Document, fingerprint: str) -> int:
    """The reading's id; its row and the rows of its pages are made where missing."""
    document_id = document.document_id
    reading = {
        "document_id": document_id,
        "fingerprint": fingerprint,
        "state": ReadingState.OPEN,
        "created_at_s": time.time(),
    }
    session.execute(insert(ReadingRow).values(reading).on_conflict_do_nothing())
    reading_id = session.scalars(
        select(ReadingRow.reading_id).where(
            ReadingRow.document_id == document_id, ReadingRow.fingerprint == fingerprint
        )
    ).one()
    pages = [
        {"reading_id": reading_id, "page_number": number, "state": PageState.PENDING, "attempts": 0}
        for number in range(1, document.page_count + 1)
    ]
    session.execute(insert(PageRow).on_conflict_do_nothing(), pages)
    return reading_id


def _opened(session: Session, reading_id: int) -> OpenedReading:
    state = session.scalars(select(ReadingRow.state).where(ReadingRow.reading_id == reading_id)).one()
    return OpenedReading(
        reading_id=reading_id,
        pending=_page_numbers(session, reading_id, PageState.PENDING),
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


def _page_numbers(session: Session, reading_id: int, state: PageState) -> tuple[int, ...]:
    query = select(PageRow.page_number).where(PageRow.reading_id == reading_id, PageRow.state == state)
    return tuple(session.scalars(query.order_by(PageRow.page_number)))


def _has_unsettled(reading_id: int) -> ColumnElement[bool]:
    return exists().where(PageRow.reading_id == reading_id, PageRow.state.in_(UNSETTLED))


def _read_again(reading_id: int, state: PageState) -> Update:
    """What a page holds stays until its new result replaces it: the run may be stopped before."""
    return (
        update(PageRow)
        .where(PageRow.reading_id == reading_id, PageRow.state == state)
        .values(state=PageState.PENDING, attempts=0, error_code=None, error_message=None)
    )


def _finished_as_before(reading_id: int) -> Update:
    return (
        update(PageRow)
        .where(
            PageRow.reading_id == reading_id,
            PageRow.state == PageState.PENDING,
            PageRow.result.is_not(None),
        )
        .values(state=PageState.DONE, error_code=None, error_message=None)
    )


def _completion(reading_id: int) -> Update:
    return (
        update(ReadingRow)
        .where(
            ReadingRow.reading_id == reading_id,
            ReadingRow.state == ReadingState.OPEN,
            ~_has_unsettled(reading_id),
        )
        .values(state=ReadingState.COMPLETE, completed_at_s=time.time())
    )


def _release(condition: ColumnElement[bool]) -> Update:
    return (
        update(PageRow)
        .where(PageRow.state == PageState.RUNNING, condition)
        .values(state=PageState.PENDING, lease_owner=None, lease_expires_at_s=None)
    )
