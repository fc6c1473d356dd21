"""SQLite: one file in the state folder, in WAL mode; one writer at a time, and readers beside it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from models.errors import StoreUnavailable
from pipeline.store.json_text import json_text

DATABASE_NAME = "doctriage.sqlite3"
BUSY_TIMEOUT_S = 60
"""How long a write waits for another process's write. Each takes milliseconds: a minute means a stuck one."""

PRIVATE_FILE_MODE = 0o600

_WRITING: Final = {"sqlite_begin": "BEGIN IMMEDIATE"}


class SqliteServer:
    """The file and how to speak to it. ``reading`` and ``writing`` are execution options of a transaction: a write
    holds the file's one write lock from its start, so it never fails half-way for a lock."""

    reading: Mapping[str, object] = {}
    writing: Mapping[str, object] = _WRITING
    another = "set DOCTRIAGE_HOME to a new folder"

    def __init__(self, home: Path) -> None:
        self.place = str(home)
        self._home = home
        self.engine = _engine(home / DATABASE_NAME)

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """A transaction that no other upgrade is in. The file is made, private, where it is missing."""
        with _one_at_a_time(self._home / "upgrade.lock"):
            os.close(os.open(self._home / DATABASE_NAME, os.O_CREAT | os.O_RDWR, PRIVATE_FILE_MODE))
            with self.engine.execution_options(**_WRITING).begin() as connection:
                yield connection

    def empty_log(self) -> bool:
        """False where another program that reads, or is at a write, keeps its part of the log."""
        connection = self.engine.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            row = cursor.fetchone()
            return row is not None and row[0] == 0
        finally:
            connection.close()

    def refusal(self, cause: BaseException) -> StoreUnavailable:
        """The driver's error in words that say what to do."""
        return StoreUnavailable(f"{self.place}: {self._advice(str(cause))}")

    def _advice(self, driver_message: str) -> str:
        if "full" in driver_message:
            return "the disk is full; free some space and run again, finished pages are kept"
        if "locked" in driver_message:
            return "another program holds the database; end it and run again"
        if "readonly" in driver_message or "unable to open" in driver_message:
            return "the database cannot be written; make the folder writable or set DOCTRIAGE_HOME"
        return f"the database failed ({driver_message}); restore it, or {self.another}"


@contextmanager
def _one_at_a_time(lock_path: Path) -> Iterator[None]:
    descriptor = os.open(lock_path, os.O_CREAT | os.O_RDWR, PRIVATE_FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        json_serializer=json_text,
        connect_args={"timeout": BUSY_TIMEOUT_S},
        hide_parameters=True,
    )
    event.listen(engine, "connect", _set_up_connection)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up_connection(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin says, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA secure_delete=ON")  # some builds leave what is deleted in the file
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
