"""Houses: an empty one for a test, and one with workers that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.pool.house import EVERYTHING, House, opened_house
from tests.conftest import TEMPLATE

if TYPE_CHECKING:
    from tests.postgres import PostgresServer
    from tests.server_parts import Broker


@pytest.fixture(scope="module", params=["redis", "rabbitmq"])
def busy_house(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """On each broker, with a worker of two processes for everything, and a beat."""
    broker = request.getfixturevalue(f"{request.param}_server").broker()
    folder = tmp_path_factory.mktemp("house")
    with (
        postgres.database(TEMPLATE) as database,
        opened_house(broker, postgres, database, folder) as house,
    ):
        house.workers.beat()
        house.workers.worker(EVERYTHING, 2)
        yield house


@pytest.fixture
def house(redis_broker: Broker, postgres: PostgresServer, tmp_path: Path) -> Iterator[House]:
    """On Redis, without a worker."""
    with (
        postgres.database(TEMPLATE) as database,
        opened_house(redis_broker, postgres, database, tmp_path / "house") as found,
    ):
        yield found
