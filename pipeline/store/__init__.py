"""The database: the truth that executors work from. SQLAlchemy is imported here alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from models.transcription import Call, CallOutcome
from pipeline.store.api_keys import ApiKeyStore
from pipeline.store.budgets import BudgetStore
from pipeline.store.callbacks import CallbackStore
from pipeline.store.database import Database, open_database
from pipeline.store.ledger import BookedEntry, LedgerStore
from pipeline.store.page_statements import TakeOver
from pipeline.store.pages import FinishedPage, OpenedReading, PageRecord, PageStore
from pipeline.store.pool import PoolStore
from pipeline.store.pool_records import (
    Backlog,
    DeadPage,
    PageEvidence,
    PagesToRead,
    PageToTranscribe,
    PoolLimits,
    QueueBacklog,
    Reclaimed,
    Repaired,
    SettledPage,
    SourceToAssemble,
    SourceToTakeIn,
    SubmissionProgress,
    SubmissionSummary,
    SubmissionTerms,
)
from pipeline.store.purge import HeldDocument, PurgeStore
from pipeline.store.reviews import ReviewStore
from pipeline.store.slots import SlotStore
from pipeline.store.submissions import SourceRecord, SubmissionStore
from pipeline.store.transcriptions import ClosedCall, EscalatedPage, TranscriptionStore
from pipeline.store.uploads import UploadStore
from pipeline.store.watched import WatchedFile, WatchStore

__all__ = [
    "ApiKeyStore",
    "Backlog",
    "BookedEntry",
    "BudgetStore",
    "Call",
    "CallOutcome",
    "CallbackStore",
    "ClosedCall",
    "DeadPage",
    "EscalatedPage",
    "FinishedPage",
    "HeldDocument",
    "LedgerStore",
    "OpenedReading",
    "PageEvidence",
    "PageRecord",
    "PageStore",
    "PageToTranscribe",
    "PagesToRead",
    "PoolLimits",
    "PoolStore",
    "PurgeStore",
    "QueueBacklog",
    "Reclaimed",
    "Repaired",
    "ReviewStore",
    "SettledPage",
    "SlotStore",
    "SourceRecord",
    "SourceToAssemble",
    "SourceToTakeIn",
    "Store",
    "SubmissionProgress",
    "SubmissionStore",
    "SubmissionSummary",
    "SubmissionTerms",
    "TakeOver",
    "TranscriptionStore",
    "UploadStore",
    "WatchStore",
    "WatchedFile",
    "connect_store",
    "open_store",
]


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    pages: PageStore
    submissions: SubmissionStore
    transcriptions: TranscriptionStore
    ledger: LedgerStore
    budgets: BudgetStore
    pool: PoolStore
    slots: SlotStore
    watched: WatchStore
    purge: PurgeStore
    api_keys: ApiKeyStore
    callbacks: CallbackStore
    reviews: ReviewStore
    uploads: UploadStore

    def close(self) -> None:
        self.database.close()


def open_store(home: Path, database_url: SecretStr | None = None) -> Store:
    """Make or upgrade the database and open it: the state folder's own, or a PostgreSQL server's. Raises
    ``StoreUnavailable``."""
    return _store(open_database(home, database_url))


def connect_store(home: Path, database_url: SecretStr | None = None) -> Store:
    """Open a database that ``open_store`` has brought up to date, as worker processes do."""
    return _store(Database(home, database_url))


def _store(database: Database) -> Store:
    return Store(
        database=database,
        pages=PageStore(database),
        submissions=SubmissionStore(database),
        transcriptions=TranscriptionStore(database),
        ledger=LedgerStore(database),
        budgets=BudgetStore(database),
        pool=PoolStore(database),
        slots=SlotStore(database),
        watched=WatchStore(database),
        purge=PurgeStore(database),
        uploads=UploadStore(database),
        api_keys=ApiKeyStore(database),
        callbacks=CallbackStore(database),
        reviews=ReviewStore(database),
    )
