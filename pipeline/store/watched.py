"""Files of watched folders as they were when they were submitted last."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from models.tables import WatchedFileRow
from pipeline.store.database import Database, insert_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """``outcome`` says what came of it; ``submission_id`` is that of the submission that it went into."""

    name: str
    byte_count: int
    mtime_ns: int
    outcome: str
    submission_id: int | None
    seen_at_s: float


class WatchStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def seen(self, folder: str) -> Mapping[str, WatchedFile]:
        """The folder's files by name."""
        query = select(WatchedFileRow).where(WatchedFileRow.folder == folder).order_by(WatchedFileRow.name)
        with self._database.read() as session:
            return {
                row.name: WatchedFile(
                    name=row.name,
                    byte_count=row.byte_count,
                    mtime_ns=row.mtime_ns,
                    outcome=row.outcome,
                    submission_id=row.submission_id,
                    seen_at_s=row.seen_at_s,
                )
                for row in session.scalars(query)
            }

    def note(
        self,
        folder: str,
        name: str,
        *,
        byte_count: int,
        mtime_ns: int,
        outcome: str,
        submission_id: int | None,
    ) -> None:
        """In the place of what was noted of the file before."""
        found = {
            "byte_count": byte_count,
            "mtime_ns": mtime_ns,
            "outcome": outcome,
            "submission_id": submission_id,
            "seen_at_s": time.time(),
        }
        with self._database.write() as session:
            insert_missing(session, WatchedFileRow, [{"folder": folder, "name": name, **found}])
            session.execute(
                update(WatchedFileRow)
                .where(WatchedFileRow.folder == folder, WatchedFileRow.name == name)
                .values(**found)
            )

    def forget(self, folder: str, name: str) -> None:
        with self._database.write() as session:
            session.execute(
                delete(WatchedFileRow).where(WatchedFileRow.folder == folder, WatchedFileRow.name == name)
            )
