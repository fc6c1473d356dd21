"""A store over each of the two databases: every test of it runs on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from pipeline.store import Store, open_store

if TYPE_CHECKING:
    from tests.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> SecretStr | None:
    """None for the file in ``tmp_path``."""
    url: SecretStr | None = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def store(tmp_path: Path, database_url: SecretStr | None) -> Iterator[Store]:
    opened = open_store(tmp_path, database_url)
    yield opened
    opened.close()


@pytest.fixture
def waits(database_url: SecretStr | None, request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Somebody waits for a lock; SQLite does not tell, and whoever writes waits there for whoever wrote first."""

    def surely_by_now() -> bool:
        time.sleep(0.2)
        return True

    if database_url is None:
        return surely_by_now
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.has_waiting
