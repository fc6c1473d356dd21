"""The migrations, up and down on both databases, and that they make what ``models.tables`` declares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from sqlalchemy import Connection, inspect, text

from models.errors import StoreUnavailable
from models.migrations import downgrade, migration_config, upgrade
from models.tables import Base
from pipeline.store import open_store
from pipeline.store.database import DATABASE_NAME, Database
from tests.unit.store.pool_parts import Pool
from tests.unit.store.test_purge import read_with_marker


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> SecretStr | None:
    """Of a database without tables."""
    url: SecretStr | None = None
    if request.param == "postgresql":
        url = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def connection(tmp_path: Path, database_url: SecretStr | None) -> Iterator[Connection]:
    database = Database(tmp_path, database_url)
    with database.server.engine.connect() as opened:
        yield opened
    database.close()


def test_up_makes_the_declared_tables(connection: Connection) -> None:
    upgrade(connection)
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    assert compare_metadata(context, Base.metadata) == []


def test_down_leaves_nothing_and_up_works_again(connection: Connection) -> None:
    upgrade(connection)
    downgrade(connection, "base")
    assert inspect(connection).get_table_names() == ["alembic_version"]
    inspect(connection).clear_cache()
    upgrade(connection)
    assert set(Base.metadata.tables) <= set(inspect(connection).get_table_names())


def test_down_and_up_step_by_step_with_rows_in_the_tables(
    tmp_path: Path, database_url: SecretStr | None
) -> None:
    """Pages of the pool, with their calls and entries. What the first version knew of them stays."""
    with closing(open_store(tmp_path, database_url)) as store:
        read_with_marker(Pool(store))
        with store.database.server.engine.connect() as connection:
            steps = ScriptDirectory.from_config(migration_config(connection)).walk_revisions()
            for revision in [step.revision for step in steps][1:]:
                downgrade(connection, revision)
            pages = connection.execute(
                text("SELECT page_number, state FROM pages ORDER BY page_number")
            ).all()
            assert [(number, state) for number, state in pages] == [(1, "done"), (2, "done"), (3, "failed")]
            upgrade(connection)
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, Base.metadata) == []


def test_a_step_that_fails_leaves_no_half_of_it(tmp_path: Path, database_url: SecretStr | None) -> None:
    def fail_half_way(connection: Connection) -> None:
        upgrade(connection)
        raise RuntimeError("the machine stops here")

    database = Database(tmp_path, database_url)
    with pytest.raises(RuntimeError, match="stops here"):
        database.migrate(fail_half_way)
    with database.server.engine.connect() as opened:
        assert inspect(opened).get_table_names() == []
    database.migrate(upgrade)
    database.close()


def test_keys_from_before_keep_every_priority(connection: Connection) -> None:
    """So do those that programs of before make in a database that was brought up to date."""
    made = text(
        "INSERT INTO api_keys (key_id, prefix, secret_sha256, name, cost_centre, scopes, created_at_s) "
        "VALUES (:key_id, :prefix, 'a', 'scanner', 'harbour', 'submit', 1)"
    )
    upgrade(connection, "0006")
    connection.execute(made, {"key_id": 1, "prefix": "before"})
    upgrade(connection)
    connection.execute(made, {"key_id": 2, "prefix": "since"})
    priorities = text("SELECT max_priority FROM api_keys ORDER BY key_id")
    assert connection.scalars(priorities).all() == [9, 9]
    downgrade(connection, "0006")
    assert connection.scalars(text("SELECT prefix FROM api_keys ORDER BY key_id")).all() == [
        "before",
        "since",
    ]


def test_a_database_of_a_newer_version_is_refused_in_words(
    tmp_path: Path, database_url: SecretStr | None
) -> None:
    store = open_store(tmp_path, database_url)
    with store.database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreUnavailable, match="newer doctriage; upgrade, or") as refused:
        open_store(tmp_path, database_url)
    meant = "DOCTRIAGE_HOME" if database_url is None else "DOCTRIAGE_DATABASE_URL"
    assert str(refused.value).endswith(meant + (" to a new folder" if database_url is None else ""))


def test_something_else_in_the_database_place_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreUnavailable, match="set DOCTRIAGE_HOME"):
        open_store(tmp_path)


def test_the_state_folder_is_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    open_store(home).close()
    assert home.stat().st_mode & 0o077 == 0
    assert (home / DATABASE_NAME).stat().st_mode & 0o077 == 0
