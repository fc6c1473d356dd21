"""What tests of single commands share: a database with real submissions, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pipeline.blobs import BlobStore
    from tests.acceptance.pool_commands import Commands


@pytest.fixture(params=["sqlite", "postgresql"])
def commands(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Commands]:
    from pipeline.store import open_store
    from tests.acceptance.pool_commands import Commands
    from tests.unit.store.pool_parts import Pool

    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    store = open_store(home, url)
    yield Commands(home, Pool(store), url)
    store.close()


@pytest.fixture
def blobs(commands: Commands) -> BlobStore:
    from pipeline.blobs import open_blobs
    from pipeline.settings import BlobSettings

    return open_blobs(commands.home, BlobSettings())
