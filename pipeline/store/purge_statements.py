"""The statements that erase a document. ``readings`` are those of the document."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, String, and_, cast, delete, exists, literal, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from models.api_tables import ReviewRow, UploadRow
from models.pool import SourceState
from models.tables import (
    DocumentRow,
    PageRow,
    PageState,
    ReadingRow,
    ReadingState,
    SourceRow,
    SubmissionRow,
    VlmAttemptRow,
    WatchedFileRow,
)
from pipeline.store.database import in_key_order, rows_changed
from pipeline.store.pool_statements import UNSETTLED_SOURCES

PURGED: Final = "purged"
"""The code of a source that was erased, and the beginning of the names that took the place of others."""


def has_brought(document_id: str, readings: Sequence[int]) -> ColumnElement[bool]:
    """Sources that brought the document."""
    return or_(SourceRow.blob_id == document_id, SourceRow.reading_id.in_(readings))


def is_watched(names: Sequence[str], submissions: Sequence[int]) -> ColumnElement[bool]:
    theirs = or_(WatchedFileRow.submission_id.is_(None), WatchedFileRow.submission_id.in_(submissions))
    return and_(WatchedFileRow.name.in_(names), theirs)


def erase_calls_and_pages(session: Session, readings: Sequence[int]) -> None:
    """The samples in a call's evidence are words of the page, and its message may quote them; so may a reviewer."""
    session.execute(delete(ReviewRow).where(ReviewRow.reading_id.in_(readings)))
    session.execute(
        update(VlmAttemptRow)
        .where(VlmAttemptRow.reading_id.in_(readings))
        .values(evidence=None, message=None)
    )
    has_calls = exists().where(
        VlmAttemptRow.reading_id == PageRow.reading_id, VlmAttemptRow.page_number == PageRow.page_number
    )
    session.execute(delete(PageRow).where(PageRow.reading_id.in_(readings), ~has_calls))
    session.execute(
        update(PageRow)
        .where(PageRow.reading_id.in_(readings))
        .values(
            state=PageState.DONE,
            lease_owner=None,
            lease_expires_at_s=None,
            error_code=None,
            error_message=None,
            summary=None,
            result=None,
        )
    )


def erase_sources(session: Session, document_id: str, readings: Sequence[int], names: Sequence[str]) -> None:
    brought = has_brought(document_id, readings)
    submissions = session.scalars(select(SourceRow.submission_id).where(brought).distinct()).all()
    session.execute(delete(WatchedFileRow).where(is_watched(names, submissions)))
    waiting = and_(brought, SourceRow.state.in_(UNSETTLED_SOURCES))
    settle = update(SourceRow).where(in_key_order(SourceRow, waiting))
    rows_changed(session, settle.values(state=SourceState.SETTLED, settled_at_s=time.time()))
    nameless = _nameless(SourceRow.source_id)
    rows_changed(
        session,
        update(SourceRow)
        .where(in_key_order(SourceRow, brought))
        .values(
            name=nameless,
            output_stem=nameless,
            reading_id=None,
            blob_id=None,
            byte_count=None,
            error_code=PURGED,
            error_message="it was erased",
            written_at_s=None,
            lease_owner=None,
            lease_expires_at_s=None,
        ),
    )
    forget_uploads(session, UploadRow.submission_id.in_(submissions))
    is_waited_for = exists().where(
        SourceRow.submission_id == SubmissionRow.submission_id, SourceRow.state.in_(UNSETTLED_SOURCES)
    )
    session.execute(
        update(SubmissionRow)
        .where(SubmissionRow.submission_id.in_(submissions), ~is_waited_for)
        .values(sealed_passwords=None)
    )


def forget_uploads(session: Session, uploads: ColumnElement[bool]) -> None:
    """Of each its row stays, without the sender's words."""
    session.execute(
        update(UploadRow)
        .where(uploads, UploadRow.erased_at_s.is_(None))
        .values(
            erased_at_s=time.time(),
            details=None,
            callback_url=None,
            idempotency_key=None,
            request_sha256=None,
        )
    )


def _nameless(number: InstrumentedAttribute[int]) -> ColumnElement[str]:
    return literal(f"{PURGED}-") + cast(number, String)


def erase_document(session: Session, document_id: str, readings: Sequence[int]) -> None:
    """Its readings are those of a document without a name from now on."""
    _make_nameless(session, document_id, readings)
    session.execute(delete(DocumentRow).where(DocumentRow.document_id == document_id))


def erase_source_alone(session: Session, source_id: int) -> None:
    """One that is settled, of a document that others have brought too; with the pages of its reading, where no other
    has that."""
    source = session.get(SourceRow, source_id)
    if source is None:
        return
    reading = None if source.reading_id is None else session.get(ReadingRow, source.reading_id)
    source.name = source.output_stem = f"{PURGED}-{source_id}"
    source.reading_id = source.blob_id = source.byte_count = source.written_at_s = None
    source.error_code, source.error_message = PURGED, "it was erased"
    session.flush()
    if reading is None:
        return
    others = select(SourceRow.source_id).where(SourceRow.reading_id == reading.reading_id)
    if session.scalar(others.limit(1)) is None:
        erase_calls_and_pages(session, [reading.reading_id])
        _make_nameless(session, reading.document_id, [reading.reading_id])


def _make_nameless(session: Session, document_id: str, readings: Sequence[int]) -> None:
    document = session.get(DocumentRow, document_id)
    if document is None or not readings:
        return
    nameless = DocumentRow(
        document_id=f"{PURGED}-{uuid.uuid4().hex}",
        media_type=document.media_type,
        byte_count=0,
        page_count=0,
        attachments=[],
        created_at_s=time.time(),
    )
    session.add(nameless)
    session.flush()
    session.execute(
        update(ReadingRow)
        .where(ReadingRow.reading_id.in_(readings))
        .values(
            document_id=nameless.document_id,
            fingerprint=_nameless(ReadingRow.reading_id),
            cpu_fingerprint=None,
            state=ReadingState.COMPLETE,
            submission_id=None,
        )
    )
