"""Pages that failed for good: what is on record about them, and another try."""

from __future__ import annotations

from sqlalchemy import and_, func, select, update

from models.errors import PageNotFound
from models.pool import SourceState, SubmissionState
from models.tables import PageRow, PageState, ReadingRow, ReadingState, SourceRow, SubmissionRow
from pipeline.store.database import Database, in_key_order, rows_changed
from pipeline.store.ledger import LedgerStore
from pipeline.store.page_statements import read_again
from pipeline.store.pool_records import DeadPage, PageEvidence
from pipeline.store.transcriptions import TranscriptionStore

DEAD_PAGES_SHOWN = 1_000


class PoolDeadPages:
    def __init__(self, database: Database) -> None:
        self._database = database

    def dead_pages(
        self,
        submission_id: int | None = None,
        *,
        document_id: str | None = None,
        limit: int = DEAD_PAGES_SHOWN,
    ) -> tuple[DeadPage, ...]:
        """Of the submission and the document, or of the whole pool: those that failed last first."""
        newest = (
            select(SourceRow.reading_id, func.max(SourceRow.source_id).label("source_id"))
            .where(
                SourceRow.state.is_not(None),
                *([] if submission_id is None else [SourceRow.submission_id == submission_id]),
            )
            .group_by(SourceRow.reading_id)
            .subquery()
        )
        query = (
            select(
                SourceRow.submission_id,
                SourceRow.name.label("source_name"),
                ReadingRow.document_id,
                PageRow.reading_id,
                PageRow.page_number,
                func.coalesce(PageRow.error_code, "").label("code"),
                func.coalesce(PageRow.error_message, "").label("message"),
                PageRow.attempts,
                PageRow.losses,
                PageRow.settled_at_s,
            )
            .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
            .join(newest, newest.c.reading_id == PageRow.reading_id)
            .join(SourceRow, SourceRow.source_id == newest.c.source_id)
            .where(
                PageRow.state == PageState.FAILED,
                *([] if document_id is None else [ReadingRow.document_id == document_id]),
            )
            .order_by(PageRow.settled_at_s.desc(), PageRow.reading_id, PageRow.page_number)
            .limit(limit)
        )
        with self._database.read() as session:
            return tuple(DeadPage(**row._mapping) for row in session.execute(query))

    def evidence_of(self, reading_id: int, page_number: int) -> PageEvidence:
        """Raises PageNotFound."""
        query = select(
            ReadingRow.document_id,
            PageRow.state,
            PageRow.attempts,
            PageRow.losses,
            PageRow.error_code,
            PageRow.error_message,
        ).join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
        with self._database.read() as session:
            row = session.execute(
                query.where(PageRow.reading_id == reading_id, PageRow.page_number == page_number)
            ).one_or_none()
        if row is None:
            raise PageNotFound(
                f"reading {reading_id} has no page {page_number}; `doctriage dead list` shows what failed"
            )
        entries = LedgerStore(self._database).entries_of_page(row.document_id, page_number)
        return PageEvidence(
            **row._mapping,
            reading_id=reading_id,
            page_number=page_number,
            entries=tuple(one for one in entries if one.entry.reading_id == reading_id),
            calls=TranscriptionStore(self._database).attempts(reading_id, page_number),
        )

    def retry_dead(self, reading_id: int, page_number: int) -> bool:
        """The page is to be read again, and the outputs of its sources are to be written again: their submissions are
        open once more, without the passwords that they came with. False where it did not fail, or all of them were
        cancelled."""
        wanting = (
            select(SourceRow.submission_id)
            .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
            .where(
                SourceRow.reading_id == reading_id,
                SubmissionRow.state.in_((SubmissionState.OPEN, SubmissionState.FINISHED)),
            )
            .distinct()
        )
        with self._database.write() as session:
            submissions = select(SubmissionRow).where(SubmissionRow.submission_id.in_(wanting))
            rows = session.scalars(
                submissions.order_by(SubmissionRow.submission_id).with_for_update(key_share=True)
            ).all()
            reading = session.scalar(
                select(ReadingRow).where(ReadingRow.reading_id == reading_id).with_for_update(key_share=True)
            )
            again = read_again(reading_id, PageState.FAILED).where(PageRow.page_number == page_number)
            if not rows or reading is None or rows_changed(session, again) == 0:
                return False
            reading.state, reading.completed_at_s = ReadingState.OPEN, None
            for row in rows:
                row.state, row.finished_at_s = SubmissionState.OPEN, None
            ids = [row.submission_id for row in rows]
            if reading.submission_id not in ids:
                reading.submission_id = ids[-1]
            session.flush()
            theirs = and_(
                SourceRow.reading_id == reading_id,
                SourceRow.submission_id.in_(ids),
                SourceRow.state != SourceState.IN_INTAKE,
            )
            waiting = update(SourceRow).where(in_key_order(SourceRow, theirs))
            rows_changed(
                session,
                waiting.values(
                    state=SourceState.READING,
                    written_at_s=None,
                    settled_at_s=None,
                    failed_pages=None,
                    error_code=None,
                    error_message=None,
                    lease_owner=None,
                    lease_expires_at_s=None,
                ),
            )
            return True
