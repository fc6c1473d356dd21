"""One server for the tests that leave it as it was: SQLite, one reader, no keys, small uploads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api_server import ApiServer, api_server

MOST_UPLOAD_BYTES = 3 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api")
    with api_server(folder, DOCTRIAGE_API__MAX_UPLOAD_BYTES=str(MOST_UPLOAD_BYTES)) as running:
        yield running
