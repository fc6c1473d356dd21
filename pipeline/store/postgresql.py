"""PostgreSQL: one database for the workers of many machines. psycopg is imported with the first engine, not before.

A write is READ COMMITTED: each of its statements sees what was committed before that statement, and a row that it
waited for as it is now. What the store relies on:

* A change of state is one UPDATE with its condition in the WHERE, which is looked at again when the row was waited
  for. So of two who want a page one gets it, and only its owner settles it.
* ``INSERT … ON CONFLICT DO NOTHING`` waits for an insert of the same key, and the next statement sees that row. (In a
  stricter transaction it would not.)
* What a condition says of *other* rows is not looked at again. Completing a reading depends on its pages, so whoever
  completes or reopens one locks its row first and looks at the pages in a later statement (``complete``,
  ``make_reading``). Whether an open call was abandoned depends on its page: a page taken since is taken by a new
  owner, who did not make that call.
* A budget has room by what its month's row says alone (``pipeline.store.budgets``), so that the condition holds for the
  row as it is when it is changed. Whoever opens a call locks its page first, then the rows of budgets.
* Updates of many rows that may meet lock them in the order of their keys (``in_key_order``), so no two wait for each
  other. Nothing is tried again here: a deadlock would be a fault of this program.

A read is one snapshot, REPEATABLE READ and read only, which cannot fail for what others write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pydantic import SecretStr
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text

from models.errors import StoreUnavailable, StoreUnreachable
from pipeline.store.json_text import json_text

CONNECTIONS_KEPT: Final = 2
CONNECTIONS_BEYOND: Final = 3
"""A worker has one transaction at a time; at the end of a run one read is inside another."""

LOCK_TIMEOUT_S: Final = 60
IDLE_TIMEOUT_S: Final = 30
"""A write takes milliseconds. One whose process stands still ends before those who wait for its locks give up."""

UPGRADE_LOCK: Final = int.from_bytes(b"doctriag")
"""What upgrades of one database lock in it."""

CONNECT_ARGS: Final[Mapping[str, str | int]] = {
    "application_name": "doctriage",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""libpq's, in seconds: a server that is gone without a word is noticed within a minute."""


class PostgresqlServer:
    """The database and how to speak to it. ``reading`` and ``writing`` are execution options of a transaction."""

    reading: Mapping[str, object] = {"isolation_level": "REPEATABLE READ", "is_read": True}
    writing: Mapping[str, object] = {}
    another = "name another one in DOCTRIAGE_DATABASE_URL"

    def __init__(self, database_url: SecretStr) -> None:
        url = make_url(database_url.get_secret_value()).set(drivername="postgresql+psycopg")
        self.place = URL.create(
            "postgresql", username=url.username, host=url.host, port=url.port, database=url.database
        ).render_as_string()
        self._password = str(url.password or url.query.get("password") or "")
        self.engine = _engine(url)

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """A transaction that no other upgrade is in. Raises ``StoreUnavailable`` where not every text can be kept."""
        with self.engine.begin() as connection:
            encoding = connection.scalar(text("SHOW server_encoding"))
            if encoding != "UTF8":
                raise StoreUnavailable(
                    f"{self.place}: its encoding is {encoding}; create the database anew, with ENCODING 'UTF8'"
                )
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
            yield connection

    def empty_log(self) -> bool:
        """When the server's files, logs and backups let go of what was deleted is set up there."""
        return True

    def refusal(self, cause: BaseException) -> StoreUnavailable:
        """The driver's error in words that say what to do; the password is not among them."""
        message = str(cause).strip().partition("\n")[0]
        if self._password:
            message = message.replace(self._password, "***")
        return refusal_of(self.place, getattr(cause, "sqlstate", None), message)


def _engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        json_serializer=json_text,
        connect_args={name: value for name, value in CONNECT_ARGS.items() if name not in url.query},
        use_native_hstore=False,
        pool_size=CONNECTIONS_KEPT,
        max_overflow=CONNECTIONS_BEYOND,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Read only, or with limits. Those are the transaction's, not the session's: a pooler in between gives a session to
    one after the other. A write is not said to be one, so that a server which takes none can refuse it."""
    is_read = connection.get_execution_options().get("is_read", False)
    driver_connection: Any = connection.connection.driver_connection
    driver_connection.read_only = True if is_read else None
    if not is_read:
        connection.exec_driver_sql(
            f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_S}s', true), "
            f"set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_S}s', true)"
        )


def refusal_of(place: str, sqlstate: str | None, message: str) -> StoreUnavailable:
    """``message`` is the server's or the driver's. While a connection is made there is no ``sqlstate``."""
    for kind, pattern, advice in _ADVICE:
        if pattern.search(f"{sqlstate}: {message}"):
            return kind(f"{place}: {advice} ({message})")
    return StoreUnavailable(f"{place}: the database failed ({message}); the server's log may say more")


_ADVICE: Final = tuple(
    (kind, re.compile(pattern), advice)
    for kind, pattern, advice in (
        (
            StoreUnavailable,
            r"^28|authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist",
            "the server refuses this user or password; correct DOCTRIAGE_DATABASE_URL",
        ),
        (
            StoreUnavailable,
            r"^3D000|^None: .*database .* does not exist",
            "there is no such database; create it with ENCODING 'UTF8', or correct DOCTRIAGE_DATABASE_URL",
        ),
        (
            StoreUnavailable,
            r"^53100|No space left on device",
            "the server's disk is full; free some space and run again, finished pages are kept",
        ),
        (
            StoreUnavailable,
            r"^25006|during recovery",
            "the server takes no changes now; name the one that does in DOCTRIAGE_DATABASE_URL",
        ),
        (StoreUnavailable, r"^42501", "the user may not do this; make it the database's owner"),
        (StoreUnavailable, r"^42P01|^42703", "tables are missing or old; `doctriage ingest` makes them"),
        (
            StoreUnreachable,
            r"^53300|too many clients|too many connections|remaining connection slots",
            "the server has no connection left; raise its max_connections, or run fewer workers",
        ),
        (
            StoreUnreachable,
            r"^55P03|^40",
            "another program holds what this one needs; end it if it stands still, and run again",
        ),
        (
            StoreUnreachable,
            r"^57P0|^08|^25P03|^None: .*connection|^None: .*resolve host",
            "the server is away or the connection was lost; check that it runs and that DOCTRIAGE_DATABASE_URL "
            "names it, and run again, finished pages are kept",
        ),
    )
)
