"""What a claim gives to the worker that made it: all that it needs to know, read in the claim's own transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from models.tables import PageRow, SourceRow
from pipeline.store.pool_records import PagesToRead, PageToTranscribe, SourceToAssemble, SourceToTakeIn
from pipeline.store.pool_statements import document_of, terms_of
from pipeline.store.transcriptions import last_attempt


@dataclass(frozen=True, slots=True)
class ClaimedPages:
    submission_id: int
    reading_id: int
    page_numbers: tuple[int, ...]
    losses: int


def source_to_take_in(session: Session, source_id: int) -> SourceToTakeIn:
    row = session.execute(
        select(
            SourceRow.submission_id,
            SourceRow.name,
            SourceRow.output_stem,
            SourceRow.blob_id,
            SourceRow.byte_count,
            SourceRow.losses,
        ).where(SourceRow.source_id == source_id)
    ).one()
    assert row.blob_id is not None
    return SourceToTakeIn(
        source_id=source_id,
        name=row.name,
        output_stem=row.output_stem,
        blob_id=row.blob_id,
        byte_count=row.byte_count or 0,
        losses=row.losses,
        terms=terms_of(session, row.submission_id),
    )


def source_to_assemble(session: Session, source_id: int) -> SourceToAssemble:
    row = session.execute(
        select(
            SourceRow.submission_id,
            SourceRow.name,
            SourceRow.output_stem,
            SourceRow.reading_id,
            SourceRow.losses,
        ).where(SourceRow.source_id == source_id)
    ).one()
    assert row.reading_id is not None
    _, document = document_of(session, row.reading_id)
    return SourceToAssemble(
        source_id=source_id,
        name=row.name,
        output_stem=row.output_stem,
        reading_id=row.reading_id,
        document=document,
        losses=row.losses,
        terms=terms_of(session, row.submission_id),
    )


def pages_to_read(session: Session, claimed: ClaimedPages) -> PagesToRead:
    fingerprint, document = document_of(session, claimed.reading_id)
    return PagesToRead(
        reading_id=claimed.reading_id,
        fingerprint=fingerprint,
        document=document,
        source_name=_source_name(session, claimed.submission_id, claimed.reading_id),
        page_numbers=claimed.page_numbers,
        losses=claimed.losses,
        terms=terms_of(session, claimed.submission_id),
    )


def page_to_transcribe(session: Session, claimed: ClaimedPages) -> PageToTranscribe:
    fingerprint, document = document_of(session, claimed.reading_id)
    [page_number] = claimed.page_numbers
    page = session.scalars(
        select(PageRow.result).where(
            PageRow.reading_id == claimed.reading_id, PageRow.page_number == page_number
        )
    ).one()
    return PageToTranscribe(
        reading_id=claimed.reading_id,
        fingerprint=fingerprint,
        document=document,
        source_name=_source_name(session, claimed.submission_id, claimed.reading_id),
        page_number=page_number,
        losses=claimed.losses,
        page=page or {},
        calls_before=last_attempt(session, claimed.reading_id, page_number),
        terms=terms_of(session, claimed.submission_id),
    )


def _source_name(session: Session, submission_id: int, reading_id: int) -> str:
    """It may have no name yet: its source gets its reading in a transaction of its own."""
    names = (
        select(SourceRow.name)
        .where(SourceRow.reading_id == reading_id, SourceRow.submission_id == submission_id)
        .order_by(SourceRow.source_id)
        .limit(1)
    )
    return session.scalar(names) or f"reading {reading_id}"
