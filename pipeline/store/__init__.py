"""The state folder's database: the truth that executors work from. SQLAlchemy is imported here alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.store.database import Database, open_database
from pipeline.store.pages import FinishedPage, OpenedReading, PageRecord, PageStore
from pipeline.store.submissions import SourceRecord, SubmissionStore
from pipeline.store.transcriptions import Call, CallOutcome, EscalatedPage, TranscriptionStore

__all__ = [
    "Call",
    "CallOutcome",
    "EscalatedPage",
    "FinishedPage",
    "OpenedReading",
    "PageRecord",
    "PageStore",
    "SourceRecord",
    "Store",
    "SubmissionStore",
    "TranscriptionStore",
    "connect_store",
    "open_store",
]


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    pages: PageStore
    submissions: SubmissionStore
    transcriptions: TranscriptionStore

    def close(self) -> None:
        self.database.close()


def open_store(home: Path) -> Store:
    """Make or upgrade the state folder's database and open it. Raises ``StoreUnavailable``."""
    return _store(open_database(home))


def connect_store(home: Path) -> Store:
    """Open a database that ``open_store`` has brought up to date, as worker processes do."""
    return _store(Database(home))


def _store(database: Database) -> Store:
    return Store(
        database=database,
        pages=PageStore(database),
        submissions=SubmissionStore(database),
        transcriptions=TranscriptionStore(database),
    )
