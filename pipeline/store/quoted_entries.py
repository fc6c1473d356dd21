"""What the ledger has booked about the documents of a quote. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import and_, case, select
from sqlalchemy.orm import aliased

from models.tables import LedgerKind, LedgerRow
from pipeline.chargeback.quote_comparison import BilledEntry
from pipeline.store.database import Database, streamed

DOCUMENTS_AT_A_TIME: Final = 500
ROWS_AT_A_TIME: Final = 1_000


class QuotedEntryStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def entries_of(
        self, document_ids: Sequence[str], *, cost_centre: str, since_s: float
    ) -> Iterator[BilledEntry]:
        """Booked at that moment or later, on the account of the cost centre; those about a page in the order in which
        they were booked."""
        reversed_row = aliased(LedgerRow)
        kind = case((LedgerRow.kind == LedgerKind.REVERSAL, reversed_row.kind), else_=LedgerRow.kind)
        query = (
            select(
                LedgerRow.document_id,
                LedgerRow.page_number,
                (kind == LedgerKind.VLM_CALL).label("is_call"),
                (LedgerRow.kind == LedgerKind.REVERSAL).label("is_reversal"),
                LedgerRow.is_wasted,
                LedgerRow.route,
                LedgerRow.pages,
                LedgerRow.cpu_pages,
                LedgerRow.predicted_visual_tokens,
                LedgerRow.prompt_tokens,
                LedgerRow.completion_tokens,
                LedgerRow.currency,
                LedgerRow.cost_micro,
            )
            .outerjoin(reversed_row, reversed_row.entry_id == LedgerRow.reverses_entry_id)
            .order_by(LedgerRow.entry_id)
        )
        for start in range(0, len(document_ids), DOCUMENTS_AT_A_TIME):
            some = document_ids[start : start + DOCUMENTS_AT_A_TIME]
            about_them = query.where(
                and_(
                    LedgerRow.document_id.in_(some),
                    LedgerRow.cost_centre == cost_centre,
                    LedgerRow.booked_at_s >= since_s,
                )
            )
            with (
                self._database.read() as session,
                streamed(session, about_them, at_a_time=ROWS_AT_A_TIME) as rows,
            ):
                for row in rows:
                    yield BilledEntry(**row._mapping)
