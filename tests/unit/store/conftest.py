"""A store over each of the two databases: every test of it runs on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline.store import Store, open_store


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
