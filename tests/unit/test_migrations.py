"""The migrations, up and down, and that they make what ``models.tables`` declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, text

from models.errors import StoreUnavailable
from models.migrations import downgrade, upgrade
from models.tables import Base
from pipeline.store import open_store
from pipeline.store.database import DATABASE_NAME


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path / 'database'}")
    with engine.connect() as opened:
        yield opened
    engine.dispose()


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


def test_a_database_of_a_newer_version_is_refused_in_words(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    engine = create_engine(f"sqlite:///{tmp_path / DATABASE_NAME}")
    with engine.begin() as opened:
        opened.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreUnavailable, match="newer doctriage"):
        open_store(tmp_path)


def test_something_else_in_the_database_place_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreUnavailable, match="set DOCTRIAGE_HOME"):
        open_store(tmp_path)


def test_the_state_folder_is_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    open_store(home).close()
    assert home.stat().st_mode & 0o077 == 0
    assert (home / DATABASE_NAME).stat().st_mode & 0o077 == 0
