"""The database behind the store, SQLite's or PostgreSQL's: transactions, and errors in words a user can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from pydantic import SecretStr
from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Engine,
    Executable,
    Result,
    Update,
    and_,
    inspect,
    select,
    tuple_,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DataError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.orm import Session, sessionmaker

from models.errors import StoreUnavailable, StoreUnreachable
from models.tables import Base
from pipeline.store.postgresql import PostgresqlServer
from pipeline.store.sqlite import DATABASE_NAME, SqliteServer

__all__ = [
    "DATABASE_NAME",
    "Database",
    "in_key_order",
    "insert_missing",
    "open_database",
    "rows_changed",
    "streamed",
]

PRIVATE_FOLDER_MODE = 0o700


class Server(Protocol):
    """What SQLite and PostgreSQL do each in their way. ``place`` names the database in messages, ``another`` says how
    to use a different one; ``reading`` and ``writing`` are execution options of a transaction."""

    engine: Engine
    place: str
    another: str
    reading: Mapping[str, object]
    writing: Mapping[str, object]

    def upgrading(self) -> AbstractContextManager[Connection]: ...

    def refusal(self, cause: BaseException) -> StoreUnavailable: ...

    def empty_log(self) -> bool: ...


class Database:
    """Safe to use from many processes, each with its own instance. Raises ``StoreUnavailable``, and ``ValueError`` for
    a value that the database does not take."""

    def __init__(self, home: Path, database_url: SecretStr | None = None) -> None:
        self.server: Server = SqliteServer(home) if database_url is None else PostgresqlServer(database_url)
        engine = self.server.engine
        self._readers = sessionmaker(engine.execution_options(**self.server.reading))
        self._writers = sessionmaker(engine.execution_options(**self.server.writing))

    def close(self) -> None:
        self.server.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One snapshot for all that the block reads."""
        with self._translated(), self._readers.begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction. On SQLite it is the only write there is; on PostgreSQL others go on beside it:
        ``pipeline.store.postgresql`` says what holds then."""
        with self._translated(), self._writers.begin() as session:
            yield session

    def migrate(self, upgrade: Callable[[Connection], None]) -> None:
        """One upgrade at a time, whole or not at all."""
        with self._translated(), self.server.upgrading() as connection:
            upgrade(connection)

    def empty_log(self) -> bool:
        """Whether what was deleted is out of the log too, as far as that is ours."""
        with self._translated():
            return self.server.empty_log()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise ValueError(f"{self.server.place}: no such value can be kept ({error.orig})") from error
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise self.server.refusal(cause or error) from error
        except NoConnectionFree as error:
            raise StoreUnreachable(f"{self.server.place}: too many reads at once in one process") from error
        except StatementError as error:
            raise (error.orig or error) from error  # the value, not the database, is at fault


def open_database(home: Path, database_url: SecretStr | None = None) -> Database:
    """Make the state folder (private) where needed and bring its database up to date."""
    from alembic.util import CommandError  # not needed by workers, and slow to import

    from models.migrations import upgrade

    with ExitStack() as undone:
        try:
            home.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
            database = Database(home, database_url)
            undone.callback(database.close)
            database.migrate(upgrade)
        except OSError as error:
            raise StoreUnavailable(
                f"{home}: cannot keep state here ({error.strerror}); make it writable or set DOCTRIAGE_HOME"
            ) from error
        except CommandError as error:
            server = database.server
            raise StoreUnavailable(
                f"{server.place}: the database belongs to a newer doctriage; upgrade, or {server.another}"
            ) from error
        undone.pop_all()
    return database


def insert_missing(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those of the rows whose key is not there yet."""
    if session.get_bind().dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # slow to import, and not for SQLite

        session.execute(postgresql.insert(table).on_conflict_do_nothing(), rows)
    else:
        session.execute(sqlite.insert(table).on_conflict_do_nothing(), rows)


def streamed(session: Session, query: Executable, *, at_a_time: int) -> Result[*tuple[Any, ...]]:
    """The rows of a query that has more than fit in memory. Used in a ``with``, which closes PostgreSQL's cursor."""
    return session.execute(query, execution_options={"yield_per": at_a_time})


def rows_changed(session: Session, statement: Update, parameters: Mapping[str, Any] | None = None) -> int:
    result = session.execute(statement, parameters, execution_options={"synchronize_session": False})
    assert isinstance(result, CursorResult)
    return result.rowcount


def in_key_order(table: type[Base], condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, for an UPDATE of many rows. PostgreSQL locks them in the order of their keys, so that two such
    UPDATEs never wait for each other; SQLite has one lock for all and passes over FOR UPDATE."""
    keys = inspect(table).primary_key
    rows = select(*keys).where(condition).order_by(*keys).with_for_update(key_share=True).correlate(None)
    return and_(condition, tuple_(*keys).in_(rows))
