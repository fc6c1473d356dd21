"""Submissions, the sources they named, and the way back from a source's name to its pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update

from models.pool import SourceState
from models.tables import (
    DocumentRow,
    PageRow,
    PageState,
    ReadingRow,
    ReadingState,
    SourceRow,
    SubmissionRow,
)
from pipeline.store.database import Database, streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One source of a submission: its document and pages, or the error that refused it (or its files). ``state`` is
    None for a source of the embedded executor."""

    source_id: int
    state: SourceState | None
    name: str
    output_stem: str
    reading_id: int | None
    document_id: str | None
    page_count: int | None
    error_code: str | None
    error_message: str | None
    is_written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSource:
    name: str
    output_stem: str


class SubmissionStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def start_submission(
        self, *, out_dir: str, cost_centre: str, submitter: str | None, fingerprint: str
    ) -> int:
        row = SubmissionRow(
            out_dir=out_dir,
            cost_centre=cost_centre,
            submitter=submitter,
            fingerprint=fingerprint,
            created_at_s=time.time(),
        )
        with self._database.write() as session:
            session.add(row)
            session.flush()
            return row.submission_id

    def finish_submission(self, submission_id: int) -> None:
        with self._database.write() as session:
            session.execute(
                update(SubmissionRow)
                .where(SubmissionRow.submission_id == submission_id)
                .values(finished_at_s=time.time())
            )

    def add_source(
        self,
        submission_id: int,
        *,
        name: str,
        output_stem: str,
        reading_id: int | None = None,
        error_code: str | None = None,
        error_message: str | None = None,
    ) -> int:
        row = SourceRow(
            submission_id=submission_id,
            name=name,
            output_stem=output_stem,
            reading_id=reading_id,
            error_code=error_code,
            error_message=error_message,
        )
        with self._database.write() as session:
            session.add(row)
            session.flush()
            return row.source_id

    def fail_source(self, source_id: int, *, code: str, message: str) -> None:
        self._update_source(source_id, error_code=code, error_message=message)

    def mark_written(self, source_id: int) -> None:
        self._update_source(source_id, written_at_s=time.time())

    def sources(self, submission_id: int) -> Iterator[SourceRecord]:
        """The submission's sources in the order of their names."""
        named = (
            select(
                SourceRow.source_id,
                SourceRow.state,
                SourceRow.name,
                SourceRow.output_stem,
                SourceRow.reading_id,
                ReadingRow.document_id,
                DocumentRow.page_count,
                SourceRow.error_code,
                SourceRow.error_message,
                SourceRow.written_at_s.is_not(None).label("is_written"),
            )
            .outerjoin(ReadingRow, ReadingRow.reading_id == SourceRow.reading_id)
            .outerjoin(DocumentRow, DocumentRow.document_id == ReadingRow.document_id)
            .where(SourceRow.submission_id == submission_id)
            .order_by(SourceRow.name)
        )
        with self._database.read() as session, streamed(session, named, at_a_time=100) as rows:
            for row in rows:
                yield SourceRecord(**row._mapping)

    def documents_named(self, name: str) -> tuple[str, ...]:
        """Ids of the documents that sources of this name had, newest first."""
        query = (
            select(ReadingRow.document_id)
            .join(SourceRow, SourceRow.reading_id == ReadingRow.reading_id)
            .where(SourceRow.name == name)
            .group_by(ReadingRow.document_id)
            .order_by(func.max(SourceRow.source_id).desc())
        )
        with self._database.read() as session:
            return tuple(session.scalars(query))

    def documents_starting(self, id_prefix: str) -> tuple[str, ...]:
        query = select(DocumentRow.document_id).where(DocumentRow.document_id.startswith(id_prefix))
        with self._database.read() as session:
            return tuple(session.scalars(query.order_by(DocumentRow.document_id).limit(20)))

    def newest_page(self, document_id: str, page_number: int) -> Mapping[str, Any] | None:
        """The result of the newest reading that has one, also while the page is being read again."""
        query = (
            select(PageRow.result)
            .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
            .where(
                ReadingRow.document_id == document_id,
                PageRow.page_number == page_number,
                PageRow.result.is_not(None),
            )
            .order_by(ReadingRow.created_at_s.desc(), ReadingRow.reading_id.desc())
            .limit(1)
        )
        with self._database.read() as session:
            return session.scalar(query)

    def newest_failure(self, document_id: str, page_number: int) -> tuple[str, str] | None:
        """Code and message of the newest reading in which this page failed."""
        query = (
            select(PageRow.error_code, PageRow.error_message)
            .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
            .where(
                ReadingRow.document_id == document_id,
                PageRow.page_number == page_number,
                PageRow.state == PageState.FAILED,
            )
            .order_by(ReadingRow.created_at_s.desc(), ReadingRow.reading_id.desc())
            .limit(1)
        )
        with self._database.read() as session:
            row = session.execute(query).first()
            return None if row is None else (row.error_code or "", row.error_message or "")

    def newest_source_name(self, document_id: str, *, name: str | None = None) -> str | None:
        """``name`` where the document was called so."""
        named = self.newest_source(document_id, name=name)
        return None if named is None else named.name

    def newest_source(self, document_id: str, *, name: str | None = None) -> NamedSource | None:
        """The last source with these bytes, of those called ``name`` where one is."""
        query = (
            select(SourceRow.name, SourceRow.output_stem)
            .join(ReadingRow, ReadingRow.reading_id == SourceRow.reading_id)
            .where(ReadingRow.document_id == document_id)
            .order_by((SourceRow.name == (name or "")).desc(), SourceRow.source_id.desc())
            .limit(1)
        )
        with self._database.read() as session:
            row = session.execute(query).first()
            return None if row is None else NamedSource(name=row.name, output_stem=row.output_stem)

    def newest_complete_reading(self, document_id: str) -> int | None:
        """The reading of the document that was begun last, of those whose pages are all settled."""
        query = (
            select(ReadingRow.reading_id)
            .where(ReadingRow.document_id == document_id, ReadingRow.state == ReadingState.COMPLETE)
            .order_by(ReadingRow.created_at_s.desc(), ReadingRow.reading_id.desc())
            .limit(1)
        )
        with self._database.read() as session:
            return session.scalar(query)

    def _update_source(self, source_id: int, **values: object) -> None:
        with self._database.write() as session:
            session.execute(update(SourceRow).where(SourceRow.source_id == source_id).values(**values))
