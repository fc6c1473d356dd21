"""The PostgreSQL server that tests share, started by the first that needs it, and a database of its own for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from pydantic import SecretStr

# A busy machine is no fault of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


if TYPE_CHECKING:
    from tests.postgres import PostgresServer

TEMPLATE = "template_doctriage"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One a session, so one for each of pytest-xdist's workers. What it takes is imported by who needs it."""
    from pipeline.store import open_store
    from tests.postgres import running_postgres

    with running_postgres() as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        open_store(tmp_path_factory.mktemp("home"), server.url(TEMPLATE)).close()
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[SecretStr]:
    """A database with our tables and nothing in them."""
    with postgres.database(TEMPLATE) as name:
        yield postgres.url(name)


@pytest.fixture
def empty_postgres_url(postgres: PostgresServer) -> Iterator[SecretStr]:
    """A database without tables."""
    with postgres.database() as name:
        yield postgres.url(name)
