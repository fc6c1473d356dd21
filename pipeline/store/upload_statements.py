"""The statements behind ``UploadStore``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, text, tuple_
from sqlalchemy.orm import Session

from models.api_tables import ArrivingBlobRow, UploadRow
from models.document_state import DocumentState
from models.errors import Cancelled
from models.page import Route
from models.pool import SourceState, SubmissionState
from models.tables import DocumentRow, PageRow, PageState, ReadingRow, SourceRow, SubmissionRow
from pipeline.store.cost_centre_statements import is_paid_by
from pipeline.store.upload_records import NewUpload, UploadFilter, UploadPlace, UploadRecord


def lock_bytes(session: Session, blob_id: str) -> None:
    """Nobody else notes these bytes, or erases them, until the transaction ends. On SQLite nobody else writes at
    all."""
    if session.get_bind().dialect.name == "postgresql":
        key = f"blob {blob_id}"
        session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": key})


def upload_columns(new: NewUpload, submission_id: int) -> dict[str, Any]:
    return {
        "upload_id": new.upload_id,
        "submission_id": submission_id,
        "cost_centre": new.cost_centre,
        "key_id": new.key_id,
        "idempotency_key": new.idempotency_key,
        "request_sha256": new.request_sha256,
        "details": None if new.details is None else dict(new.details),
        "callback_url": new.callback_url,
        "created_at_s": time.time(),
    }


def add_submission(session: Session, new: NewUpload) -> int:
    """Sealed, with the one source that it has."""
    now_s = time.time()
    submission = SubmissionRow(
        out_dir="",
        cost_centre=new.cost_centre,
        submitter=new.submitter,
        fingerprint="",
        created_at_s=now_s,
        state=SubmissionState.OPEN,
        is_sealed=True,
        priority=new.priority,
        wishes=dict(new.wishes),
        sealed_passwords=new.sealed_passwords,
        submitter_seen_at_s=now_s,
        traceparent=new.traceparent,
    )
    session.add(submission)
    session.flush()
    source = SourceRow(
        submission_id=submission.submission_id,
        state=SourceState.RECEIVED,
        name=new.name,
        output_stem=new.output_stem,
        blob_id=new.blob_id,
        byte_count=new.byte_count,
    )
    session.add(source)
    session.flush()
    return submission.submission_id


def names_bytes(blob_id: str) -> ColumnElement[bool]:
    """Whether a source or a document has them."""
    return or_(
        select(SourceRow.source_id).where(SourceRow.blob_id == blob_id).exists(),
        select(DocumentRow.document_id).where(DocumentRow.document_id == blob_id).exists(),
    )


def arriving(session: Session, blob_id: str) -> tuple[Sequence[ArrivingBlobRow], bool]:
    """The notes about these bytes, and whether a source or a document has them: in one statement, so that bytes which
    pass from the one to the other are in one of the two."""
    has_name = select(names_bytes(blob_id).label("has_name")).subquery()
    query = select(ArrivingBlobRow, has_name.c.has_name).select_from(
        has_name.outerjoin(ArrivingBlobRow, ArrivingBlobRow.blob_id == blob_id)
    )
    rows = session.execute(query).all()
    return [row[0] for row in rows if row[0] is not None], bool(rows[0][1])


def has_other_sources(session: Session, document_id: str, source_id: int) -> bool:
    """Whether others than this one have brought the document."""
    readings = select(ReadingRow.reading_id).where(ReadingRow.document_id == document_id)
    others = select(SourceRow.source_id).where(
        SourceRow.source_id != source_id,
        or_(SourceRow.blob_id == document_id, SourceRow.reading_id.in_(readings)),
    )
    return session.scalar(others.limit(1)) is not None


def records_query() -> Select[*tuple[Any, ...]]:
    return (
        select(
            UploadRow.upload_id,
            UploadRow.submission_id,
            SourceRow.source_id,
            UploadRow.cost_centre,
            UploadRow.key_id,
            UploadRow.details,
            UploadRow.callback_url,
            UploadRow.created_at_s,
            UploadRow.erased_at_s,
            SubmissionRow.state.label("submission_state"),
            SubmissionRow.priority,
            SubmissionRow.wishes,
            SubmissionRow.finished_at_s,
            SourceRow.name,
            SourceRow.state.label("source_state"),
            SourceRow.reading_id,
            SourceRow.blob_id,
            SourceRow.byte_count,
            SourceRow.error_code,
            SourceRow.error_message,
            DocumentRow.document_id,
            DocumentRow.media_type,
            DocumentRow.page_count,
        )
        .join(SubmissionRow, SubmissionRow.submission_id == UploadRow.submission_id)
        .join(SourceRow, SourceRow.submission_id == UploadRow.submission_id)
        .outerjoin(ReadingRow, ReadingRow.reading_id == SourceRow.reading_id)
        .outerjoin(DocumentRow, DocumentRow.document_id == ReadingRow.document_id)
    )


def conditions(wanted: UploadFilter, after: UploadPlace | None) -> tuple[ColumnElement[bool], ...]:
    parts: list[ColumnElement[bool]] = [UploadRow.erased_at_s.is_(None)]
    if wanted.cost_centre is not None:
        parts.append(is_paid_by(UploadRow.cost_centre, wanted.cost_centre))
    if wanted.state is not None:
        parts.append(_is_in(wanted.state))
    if wanted.name is not None:
        parts.append(SourceRow.name.contains(wanted.name, autoescape=True))
    if after is not None:
        place = tuple_(UploadRow.created_at_s, UploadRow.upload_id)
        parts.append(place < (after.created_at_s, after.upload_id))
    return tuple(parts)


def _is_in(state: DocumentState) -> ColumnElement[bool]:
    """As ``UploadRecord.state`` has it."""
    match state:
        case DocumentState.QUEUED:
            return and_(SubmissionRow.state == SubmissionState.OPEN, SourceRow.state == SourceState.RECEIVED)
        case DocumentState.READING:
            return and_(SubmissionRow.state == SubmissionState.OPEN, SourceRow.state != SourceState.RECEIVED)
        case DocumentState.CANCELLED:
            is_cancelled = func.coalesce(SourceRow.error_code, Cancelled.code) == Cancelled.code
            return and_(SubmissionRow.state == SubmissionState.CANCELLED, is_cancelled)
        case DocumentState.FINISHED:
            return and_(SubmissionRow.state == SubmissionState.FINISHED, SourceRow.error_code.is_(None))
        case DocumentState.FAILED:
            is_over = SubmissionRow.state != SubmissionState.OPEN
            return and_(is_over, SourceRow.error_code.is_not(None), ~_is_in(DocumentState.CANCELLED))


def with_pages(session: Session, rows: Sequence[Row[Any]]) -> tuple[UploadRecord, ...]:
    readings = {row.reading_id for row in rows if row.reading_id is not None}
    counts = _page_counts(session, readings)
    return tuple(_record(dict(row._mapping), counts.get(row.reading_id, ())) for row in rows)


Count = tuple[PageState, str | None, int]


def _page_counts(session: Session, readings: set[int]) -> dict[int, list[Count]]:
    """State, route and number of pages, by reading."""
    query = (
        select(PageRow.reading_id, PageRow.state, PageRow.route, func.count())
        .where(PageRow.reading_id.in_(sorted(readings)))
        .group_by(PageRow.reading_id, PageRow.state, PageRow.route)
    )
    counts: dict[int, list[Count]] = {}
    for reading_id, state, route, count in session.execute(query) if readings else ():
        counts.setdefault(reading_id, []).append((state, route, count))
    return counts


def _record(row: Mapping[str, Any], counts: Sequence[Count]) -> UploadRecord:
    pages: dict[PageState, int] = {}
    routes: dict[str, int] = {}
    for state, route, count in counts:
        pages[state] = pages.get(state, 0) + count
        if state is PageState.DONE and route is not None:
            routes[route] = routes.get(route, 0) + count
    return UploadRecord(
        **{**row, "wishes": row["wishes"] or {}},
        pages=pages,
        routes=routes,
        degraded_pages=routes.get(Route.OCR_DEGRADED, 0),
    )
