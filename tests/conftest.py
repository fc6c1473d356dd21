"""The servers that tests share, each started by the first that needs it, and a database of its own for each."""

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
    from tests.integration.blob_places import S3Place
    from tests.postgres import PostgresServer
    from tests.rabbitmq_server import RabbitmqServer
    from tests.redis_server import RedisServer
    from tests.server_parts import Broker

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


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    from tests.redis_server import running_redis

    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitmqServer]:
    from tests.rabbitmq_server import running_rabbitmq

    with running_rabbitmq() as server:
        yield server


@pytest.fixture
def redis_broker(redis_server: RedisServer) -> Broker:
    """Up, and without a message."""
    return redis_server.broker()


@pytest.fixture
def rabbitmq_broker(rabbitmq_server: RabbitmqServer) -> Broker:
    """Up, and without a message."""
    return rabbitmq_server.broker()


@pytest.fixture(params=["redis", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """The test runs on both, and starts the one that it runs on."""
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The address of an S3-compatible server."""
    from tests.integration.blob_places import running_s3

    with running_s3() as url:
        yield url


@pytest.fixture
def s3_place(s3_url: str) -> Iterator[S3Place]:
    """An empty bucket."""
    from tests.integration.blob_places import empty_bucket

    with empty_bucket(s3_url) as place:
        yield place
