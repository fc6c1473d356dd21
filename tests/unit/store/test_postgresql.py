"""What is PostgreSQL's own: what goes wrong with a server, in words; its transactions, locks and cursors."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError
from sqlalchemy import text

from models.document import Document, MediaType
from models.errors import StoreUnavailable, StoreUnreachable
from models.page import Route
from models.tables import PageState
from pipeline.settings import Settings
from pipeline.store import Store, connect_store, open_store
from pipeline.store.page_statements import read_again
from pipeline.store.postgresql import PostgresqlServer, refusal_of
from tests.postgres import PostgresServer
from tests.unit.store.booking import cpu_entry

DOCUMENT = Document(document_id="ab" * 32, media_type=MediaType.PDF, byte_count=10, page_count=40)


@pytest.fixture
def store(tmp_path: Path, postgres_url: SecretStr) -> Iterator[Store]:
    opened = connect_store(tmp_path, postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def reading_id(store: Store) -> int:
    store.pages.save_document(DOCUMENT)
    return store.pages.open_reading(DOCUMENT, "f" * 64, force=False).reading_id


def refusal(home: Path, url: SecretStr) -> StoreUnavailable:
    store = connect_store(home, url)
    with pytest.raises(StoreUnavailable) as refused:
        store.pages.is_complete(1)
    store.close()
    return refused.value


# What goes wrong


def test_a_wrong_password_is_said_and_not_shown(tmp_path: Path, postgres: PostgresServer) -> None:
    said = refusal(tmp_path, postgres.url("postgres", password="hunter2"))
    assert "refuses this user or password; correct DOCTRIAGE_DATABASE_URL" in str(said)
    assert "hunter2" not in str(said)
    assert not said.retryable


def test_a_server_that_is_not_there_is_named(tmp_path: Path, postgres: PostgresServer) -> None:
    said = refusal(tmp_path, postgres.url("name", port=1))
    assert isinstance(said, StoreUnreachable)
    assert str(said).startswith("postgresql://doctriage@127.0.0.1:1/name: the server is away")
    assert said.retryable
    unknown = refusal(tmp_path, postgres.url("name", host="no-such-host.invalid"))
    assert "the server is away" in str(unknown)


def test_a_database_that_is_not_there_is_to_be_created(tmp_path: Path, postgres: PostgresServer) -> None:
    said = refusal(tmp_path, postgres.url("missing"))
    assert "there is no such database; create it" in str(said)


def test_tables_that_are_not_there_are_made_by_ingest(tmp_path: Path, empty_postgres_url: SecretStr) -> None:
    assert "`doctriage ingest` makes them" in str(refusal(tmp_path, empty_postgres_url))


def test_a_database_that_cannot_hold_every_text_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(StoreUnavailable, match="encoding is LATIN1; create the database anew"):
            open_store(tmp_path, postgres.url("latin"))
    finally:
        postgres.execute("DROP DATABASE latin WITH (FORCE)")


def test_a_server_without_a_free_connection_says_so(
    store: Store, tmp_path: Path, postgres: PostgresServer, postgres_url: SecretStr
) -> None:
    name = postgres_url.get_secret_value().rpartition("/")[2]
    postgres.execute("CREATE ROLE crowded LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
    try:
        said = refusal(tmp_path, postgres.url(name, user="crowded", password="x"))
    finally:
        postgres.execute("DROP ROLE crowded")
    assert isinstance(said, StoreUnreachable)
    assert "no connection left; raise its max_connections, or run fewer workers" in str(said)


def test_a_server_that_takes_no_changes_is_read_and_says_so_when_written_to(
    store: Store, reading_id: int, tmp_path: Path, postgres: PostgresServer, postgres_url: SecretStr
) -> None:
    name = postgres_url.get_secret_value().rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    standby = connect_store(tmp_path, postgres_url)
    assert not standby.pages.is_complete(reading_id)
    with pytest.raises(StoreUnavailable, match="takes no changes now; name the one that does"):
        standby.pages.claim_pages(reading_id, [1], owner="me", lease_s=60)
    standby.close()


@pytest.mark.parametrize(
    ("sqlstate", "message", "advice", "may_pass"),
    [
        ("28P01", "password authentication failed for user", "user or password", False),
        (None, 'connection failed: FATAL:  role "me" does not exist', "user or password", False),
        (None, "connection failed: FATAL:  no pg_hba.conf entry for host", "user or password", False),
        (None, 'connection failed: FATAL:  database "x" does not exist', "no such database", False),
        ("53100", "could not extend file: No space left on device", "disk is full", False),
        ("25006", "cannot execute UPDATE in a read-only transaction", "takes no changes", False),
        ("42501", "permission denied for table pages", "the database's owner", False),
        ("42P01", 'relation "pages" does not exist', "tables are missing", False),
        ("53300", "sorry, too many clients already", "no connection left", True),
        (None, "FATAL:  remaining connection slots are reserved", "no connection left", True),
        ("55P03", "canceling statement due to lock timeout", "end it if it stands still", True),
        ("40P01", "deadlock detected", "run again", True),
        ("57P01", "terminating connection due to administrator command", "check that it runs", True),
        ("57P03", "the database system is starting up", "check that it runs", True),
        ("25P03", "terminating connection due to idle-in-transaction timeout", "check that it runs", True),
        (None, "connection failed: Connection refused", "check that it runs", True),
        (None, "server closed the connection unexpectedly", "check that it runs", True),
        (None, "connection timeout expired", "check that it runs", True),
        ("XX001", "invalid page in block 7", "server's log may say more", False),
    ],
)
def test_what_a_server_says_becomes_what_to_do(
    sqlstate: str | None, message: str, advice: str, may_pass: bool
) -> None:
    said = refusal_of("postgresql://me@host/name", sqlstate, message)
    assert str(said).startswith("postgresql://me@host/name: ")
    assert advice in str(said)
    assert message in str(said)
    assert said.retryable is may_pass


@given(st.text(min_size=1, max_size=12))
def test_no_part_of_a_password_is_taken_for_a_place(password: str) -> None:
    """Spelled as it should be it is taken; as it is, only where it can be told from the rest."""
    for spelled in (password, quote(password, safe="")):
        url = SecretStr(f"postgresql://me:{spelled}@host:5432/name")
        if is_taken(url):
            assert PostgresqlServer(url).place == "postgresql://me@host:5432/name"
        else:
            assert spelled != quote(password, safe="")


def is_taken(url: SecretStr) -> bool:
    try:
        Settings(database_url=url)
    except ValidationError:
        return False
    return True


def test_a_connection_that_is_lost_fails_one_transaction_and_not_the_next(
    store: Store, reading_id: int, postgres: PostgresServer
) -> None:
    def lose_it_half_way() -> None:
        with store.database.write() as session:
            session.execute(read_again(reading_id, PageState.PENDING))
            postgres.cut_connections()
            session.execute(read_again(reading_id, PageState.DONE))

    assert store.pages.pending_pages(reading_id)
    postgres.cut_connections()
    assert store.pages.pending_pages(reading_id)
    with pytest.raises(StoreUnreachable, match="check that it runs"):
        lose_it_half_way()
    assert store.pages.pending_pages(reading_id)


# Transactions, locks and cursors


def test_a_read_is_one_snapshot_and_a_write_does_not_stand_still_for_ever(store: Store) -> None:
    settings = (
        "transaction_isolation",
        "transaction_read_only",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
    )
    shown = text(f"SELECT {', '.join(f'current_setting({name!r})' for name in settings)}")
    for _ in range(2):
        with store.database.read() as session:
            assert tuple(session.execute(shown).one()) == ("repeatable read", "on", "0", "0")
        with store.database.write() as session:
            assert tuple(session.execute(shown).one()) == ("read committed", "off", "1min", "30s")


def test_pages_are_claimed_in_their_order_though_they_lie_in_another(
    store: Store, reading_id: int, tmp_path: Path, postgres: PostgresServer, postgres_url: SecretStr
) -> None:
    """Whoever waits for a page holds none after it, so no two wait for each other."""
    for number in (3, 2, 1):
        store.pages.claim_pages(reading_id, [number], owner="me", lease_s=60)
        store.pages.release_leases("me")
    lock = "SELECT page_number FROM pages WHERE page_number = :number FOR NO KEY UPDATE NOWAIT"
    own = connect_store(tmp_path, postgres_url)
    with ThreadPoolExecutor(1) as thread:
        with store.database.write() as session:
            session.execute(text(lock), {"number": 1})
            claimed = thread.submit(own.pages.claim_pages, reading_id, [1, 2, 3], owner="b", lease_s=60)
            while not (claimed.done() or postgres.has_waiting()):
                time.sleep(0.01)
            session.execute(text(lock), {"number": 2})
            session.execute(text(lock), {"number": 3})
        assert claimed.result() == (1, 2, 3)
    own.close()


def test_a_stream_is_fetched_a_few_at_a_time(store: Store, reading_id: int, postgres: PostgresServer) -> None:
    for number in range(1, 41):
        store.pages.claim_pages(reading_id, [number], owner="me", lease_s=60)
        store.pages.finish_page(
            reading_id,
            number,
            owner="me",
            page={},
            summary={},
            route=Route.OCR,
            elapsed_s=1,
            entry=cpu_entry(reading_id, number),
        )
    stream = store.pages.stream_pages(reading_id)
    next(stream)
    fetching = postgres.execute("SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction'")
    [(query,)] = fetching
    assert re.match(r"FETCH FORWARD [1-8] ", str(query))
    assert len(list(stream)) == 39
