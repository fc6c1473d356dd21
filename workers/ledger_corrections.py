"""Entries of the ledger that are taken back."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pipeline.chargeback.entries import LedgerEntry
from pipeline.settings import Settings
from pipeline.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """``entry`` is what was taken back, and ``source`` the newest name of its document, or the start of its id."""

    entry_id: int
    entry: LedgerEntry
    reversal_id: int
    source: str


def reverse_entry(settings: Settings, entry_id: int) -> TakenBack:
    """Book the entry's reversal; budgets follow. Raises ``EntryNotReversible``."""
    with closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        reversal_id = store.ledger.reverse(entry_id)
        entry = store.ledger.entry(entry_id).entry
        return TakenBack(
            entry_id=entry_id,
            entry=entry,
            reversal_id=reversal_id,
            source=store.submissions.newest_source_name(entry.document_id) or entry.document_id[:12],
        )
