"""What the database holds of a document, and how it is erased.

What was paid stays: entries of the ledger, and calls to the VLM without what was said in them. So the rows that those
count on stay too, empty, under a document that nobody finds: readings, whose numbers must not be given again, and pages
that calls were made about.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Select,
    func,
    select,
    update,
)
from sqlalchemy.orm import Session

from models.errors import DocumentInUse
from models.pool import SourceState
from models.tables import (
    DocumentRow,
    LedgerRow,
    PageRow,
    ReadingRow,
    SourceRow,
    SubmissionRow,
    VlmAttemptRow,
    WatchedFileRow,
)
from pipeline.store.database import Database, in_key_order, rows_changed
from pipeline.store.page_statements import HELD
from pipeline.store.pool_statements import TAKEN_FROM
from pipeline.store.purge_statements import (
    PURGED,
    erase_calls_and_pages,
    erase_document,
    erase_sources,
    has_brought,
    is_watched,
)

MOST_FOUND: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDocument:
    """What there is of a document. ``result_sources`` are sources that outputs may be kept for, ``out_dirs`` folders
    that outputs were written into, ``watched`` folders and names of watched files."""

    document_id: str
    names: tuple[str, ...]
    sources: int
    readings: int
    pages: int
    calls: int
    ledger_entries: int
    result_sources: tuple[int, ...]
    out_dirs: tuple[str, ...]
    watched: tuple[tuple[str, str], ...]


class PurgeStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def documents_named(self, name: str) -> tuple[str, ...]:
        """Ids of the documents that sources of this name brought, read or not."""
        named = SourceRow.name == name
        read = select(ReadingRow.document_id).join(SourceRow, SourceRow.reading_id == ReadingRow.reading_id)
        return self._ids(read.where(named), select(SourceRow.blob_id).where(named))

    def documents_starting(self, id_prefix: str) -> tuple[str, ...]:
        return self._ids(
            select(DocumentRow.document_id).where(DocumentRow.document_id.startswith(id_prefix)),
            select(SourceRow.blob_id).where(SourceRow.blob_id.startswith(id_prefix)),
        )

    def unknown(self, document_ids: Sequence[str]) -> tuple[str, ...]:
        """Those that no document and no source has."""
        known = set(
            self._ids(
                select(DocumentRow.document_id).where(DocumentRow.document_id.in_(document_ids)),
                select(SourceRow.blob_id).where(SourceRow.blob_id.in_(document_ids)),
                limit=None,
            )
        )
        return tuple(one for one in document_ids if one not in known)

    def held(self, document_id: str, is_alive: Callable[[str], bool]) -> HeldDocument:
        """Raises DocumentInUse where an owner that ``is_alive`` does not deny works on it."""
        with self._database.read() as session:
            readings = _readings(session, document_id)
            _refuse_in_use(session, document_id, readings, is_alive)
            return _held(session, document_id, readings)

    def purge(self, document_id: str, is_alive: Callable[[str], bool]) -> HeldDocument:
        """Erase the document; what there was. Submissions that waited for it alone are over with the next repair.
        Raises DocumentInUse."""
        with self._database.write() as session:
            return purge_in(session, document_id, is_alive)

    def outputs_settled_before(self, when_s: float, *, limit: int) -> tuple[int, ...]:
        """Sources of the pool that were settled before then and whose outputs are still kept, the oldest first."""
        query = (
            select(SourceRow.source_id)
            .where(
                SourceRow.state == SourceState.SETTLED,
                SourceRow.written_at_s.is_not(None),
                SourceRow.settled_at_s < when_s,
            )
            .order_by(SourceRow.settled_at_s, SourceRow.source_id)
            .limit(limit)
        )
        with self._database.read() as session:
            return tuple(session.scalars(query))

    def outputs_deleted(self, source_ids: Sequence[int]) -> None:
        """Their outputs are not kept any more."""
        deleted = in_key_order(SourceRow, SourceRow.source_id.in_(source_ids))
        with self._database.write() as session:
            rows_changed(session, update(SourceRow).where(deleted).values(written_at_s=None))

    def empty_log(self) -> bool:
        """Take what was erased out of the database's own log as well; False where another program's reading keeps it
        there for now."""
        return self._database.empty_log()

    def _ids(
        self, *queries: Select[str] | Select[str | None], limit: int | None = MOST_FOUND
    ) -> tuple[str, ...]:
        with self._database.read() as session:
            found = {
                one
                for query in queries
                for one in session.scalars(query.distinct().limit(limit))
                if one is not None
            }
        return tuple(sorted(one for one in found if not one.startswith(PURGED)))


def purge_in(session: Session, document_id: str, is_alive: Callable[[str], bool]) -> HeldDocument:
    """``PurgeStore.purge`` within a transaction. Raises DocumentInUse."""
    readings = _locked(session, document_id)
    _refuse_in_use(session, document_id, readings, is_alive)
    held = _held(session, document_id, readings)
    erase_calls_and_pages(session, readings)
    erase_sources(session, document_id, readings, held.names)
    erase_document(session, document_id, readings)
    return held


def refuse_in_use(session: Session, document_id: str, is_alive: Callable[[str], bool]) -> None:
    """Nobody begins to work on it until the transaction ends. Raises DocumentInUse."""
    _refuse_in_use(session, document_id, _locked(session, document_id), is_alive)


def _readings(session: Session, document_id: str) -> Sequence[int]:
    query = select(ReadingRow.reading_id).where(ReadingRow.document_id == document_id)
    return session.scalars(query.order_by(ReadingRow.reading_id)).all()


def _locked(session: Session, document_id: str) -> Sequence[int]:
    """The document's readings. Until the transaction ends nobody claims a page of theirs, and the submissions that
    brought it stay as they are: ``pipeline.store.pool_statements`` has the order of locks."""
    brought = has_brought(document_id, _readings(session, document_id))
    submissions = select(SubmissionRow.submission_id).where(
        SubmissionRow.submission_id.in_(select(SourceRow.submission_id).where(brought))
    )
    session.execute(submissions.order_by(SubmissionRow.submission_id).with_for_update(key_share=True))
    rows = select(ReadingRow.reading_id).where(ReadingRow.document_id == document_id)
    readings = session.scalars(rows.order_by(ReadingRow.reading_id).with_for_update()).all()
    pages = select(PageRow.page_number).where(PageRow.reading_id.in_(readings))
    session.execute(pages.order_by(PageRow.reading_id, PageRow.page_number).with_for_update())
    return readings


def _refuse_in_use(
    session: Session, document_id: str, readings: Sequence[int], is_alive: Callable[[str], bool]
) -> None:
    now_s = time.time()
    pages = (
        select(PageRow.lease_owner, ReadingRow.submission_id)
        .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
        .where(PageRow.reading_id.in_(readings), PageRow.state.in_(HELD), PageRow.lease_expires_at_s >= now_s)
    )
    sources = select(SourceRow.lease_owner, SourceRow.submission_id).where(
        has_brought(document_id, readings),
        SourceRow.state.in_(tuple(TAKEN_FROM)),
        SourceRow.lease_expires_at_s >= now_s,
    )
    for owner, submission_id in (*session.execute(pages), *session.execute(sources)):
        if owner is not None and is_alive(owner):
            first = "stop that run" if submission_id is None else f"cancel submission {submission_id}"
            raise DocumentInUse(
                f"document {document_id[:12]}… is being read (by {owner}); {first} first, and purge it then"
            )


def _held(session: Session, document_id: str, readings: Sequence[int]) -> HeldDocument:
    brought = has_brought(document_id, readings)
    sources = session.execute(
        select(
            SourceRow.source_id,
            SourceRow.name,
            SourceRow.state,
            SubmissionRow.submission_id,
            SubmissionRow.out_dir,
        )
        .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
        .where(brought)
        .order_by(SourceRow.source_id)
    ).all()
    names = tuple(dict.fromkeys(row.name for row in sources))
    submissions = tuple({row.submission_id for row in sources})
    watched = select(WatchedFileRow.folder, WatchedFileRow.name).where(is_watched(names, submissions))
    return HeldDocument(
        document_id=document_id,
        names=names,
        sources=len(sources),
        readings=len(readings),
        pages=_count(session, PageRow.reading_id.in_(readings)),
        calls=_count(session, VlmAttemptRow.reading_id.in_(readings)),
        ledger_entries=_count(session, LedgerRow.document_id == document_id),
        result_sources=tuple(row.source_id for row in sources if row.state is not None),
        out_dirs=tuple(dict.fromkeys(row.out_dir for row in sources if row.out_dir)),
        watched=tuple((folder, name) for folder, name in session.execute(watched)),
    )


def _count(session: Session, condition: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).where(condition)) or 0
