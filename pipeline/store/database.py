"""The database file of one state folder: opening, transactions, and errors in words a user can act on."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, CursorResult, Engine, Update, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.orm import Session, sessionmaker

from models.errors import StoreUnavailable

DATABASE_NAME = "doctriage.sqlite3"
BUSY_TIMEOUT_S = 60
"""How long a write waits for another process's write. Each takes milliseconds: a minute means a stuck one."""

PRIVATE_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600


class Database:
    """Safe to use from many processes, each with its own instance. Raises ``StoreUnavailable``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._engine = _sqlite_engine(home / DATABASE_NAME)
        self._readers = sessionmaker(self._engine)
        self._writers = sessionmaker(self._engine.execution_options(sqlite_begin="BEGIN IMMEDIATE"))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One snapshot for all that the block reads."""
        with self._translated(), self._readers.begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction that holds the write lock from its start, so it never fails half-way for a lock."""
        with self._translated(), self._writers.begin() as session:
            yield session

    def migrate(self, upgrade: Callable[[Connection], None]) -> None:
        writer = self._engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        with self._translated(), writer.begin() as connection:
            upgrade(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StoreUnavailable(f"{self.home}: {_advice(str(cause))}") from error
        except StatementError as error:
            raise (error.orig or error) from error  # the value, not the database, is at fault


def open_database(home: Path) -> Database:
    """Make the state folder (private) where needed and bring its database up to date."""
    from alembic.util import CommandError  # not needed by workers, and slow to import

    from models.migrations import upgrade

    try:
        home.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
        with _one_at_a_time(home / "upgrade.lock"):
            os.close(os.open(home / DATABASE_NAME, os.O_CREAT | os.O_RDWR, PRIVATE_FILE_MODE))
            database = Database(home)
            database.migrate(upgrade)
    except OSError as error:
        raise StoreUnavailable(
            f"{home}: cannot keep state here ({error.strerror}); make it writable or set DOCTRIAGE_HOME"
        ) from error
    except CommandError as error:
        raise StoreUnavailable(
            f"{home}: the database belongs to a newer doctriage; upgrade, or set DOCTRIAGE_HOME anew"
        ) from error
    return database


def rows_changed(session: Session, statement: Update) -> int:
    result = session.execute(statement)
    assert isinstance(result, CursorResult)
    return result.rowcount


@contextmanager
def _one_at_a_time(lock_path: Path) -> Iterator[None]:
    descriptor = os.open(lock_path, os.O_CREAT | os.O_RDWR, PRIVATE_FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        json_serializer=_strict_json,
        connect_args={"timeout": BUSY_TIMEOUT_S},
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
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))


def _strict_json(value: object) -> str:
    """JSON proper: NaN and infinity, which JSON does not have, raise ValueError."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _advice(driver_message: str) -> str:
    if "full" in driver_message:
        return "the disk is full; free some space and run again, finished pages are kept"
    if "locked" in driver_message:
        return "another program holds the database; end it and run again"
    if "readonly" in driver_message or "unable to open" in driver_message:
        return "the database cannot be written; make the folder writable or set DOCTRIAGE_HOME"
    return f"the database failed ({driver_message}); restore it, or set DOCTRIAGE_HOME to a new folder"
