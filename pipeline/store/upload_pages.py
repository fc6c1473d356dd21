"""Pages of a reading, a few at a time, for whoever looks at a document."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute

from models.tables import PageRow
from pipeline.store.database import Database
from pipeline.store.pages import PageRecord


class UploadPages:
    def __init__(self, database: Database) -> None:
        self._database = database

    def page_summaries(self, reading_id: int, *, after: int, limit: int) -> Sequence[PageRecord]:
        """With their rows of ``pages.jsonl``, from the one after page ``after`` on."""
        return self._records(reading_id, PageRow.summary, after=after, limit=limit)

    def page_result(self, reading_id: int, page_number: int) -> PageRecord | None:
        """With its JSON; None where the reading has no such page."""
        found = self._records(reading_id, PageRow.result, after=page_number - 1, limit=1)
        return found[0] if found and found[0].page_number == page_number else None

    def _records(
        self,
        reading_id: int,
        content: InstrumentedAttribute[dict[str, object] | None],
        *,
        after: int,
        limit: int,
    ) -> Sequence[PageRecord]:
        query = (
            select(
                PageRow.page_number,
                PageRow.state,
                PageRow.attempts,
                PageRow.elapsed_s,
                PageRow.error_code,
                PageRow.error_message,
                content.label("content"),
            )
            .where(PageRow.reading_id == reading_id, PageRow.page_number > after)
            .order_by(PageRow.page_number)
            .limit(limit)
        )
        with self._database.read() as session:
            return [PageRecord(**row._mapping) for row in session.execute(query)]
