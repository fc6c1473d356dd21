"""A broker that answers and refuses is waited for: a worker goes on when it is used to its full again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from models.pool import Queue
from tests.integration.pool.traced_worker import drained, tickets_over, traced_worker
from tests.server_parts import Broker

pytestmark = pytest.mark.slow


@pytest.fixture
def client(redis_broker: Broker) -> Iterator[redis.Redis]:
    with closing(redis.Redis.from_url(redis_broker.url.get_secret_value())) as opened:
        yield opened


def take_all_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory", "1mb")


def give_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory", "0")


def take_the_queues_name(client: redis.Redis) -> None:
    client.set("ocr", "of another program")


def give_the_name_back(client: redis.Redis) -> None:
    client.delete("ocr")


@pytest.mark.parametrize(
    ("refuse", "relent"),
    [(take_all_memory, give_memory), (take_the_queues_name, give_the_name_back)],
    ids=["no memory left", "another program's key"],
)
def test_a_worker_outlives_what_redis_refuses(
    client: redis.Redis,
    redis_broker: Broker,
    tmp_path: Path,
    refuse: Callable[[redis.Redis], None],
    relent: Callable[[redis.Redis], None],
) -> None:
    tickets = tickets_over(redis_broker)
    with traced_worker(redis_broker, tmp_path) as worker:
        (tmp_path / "hold").touch()
        tickets.send(Queue.OCR)
        worker.await_begun(1)
        try:
            refuse(client)
            (tmp_path / "hold").unlink()
            worker.await_word("broker_refuses", times=2)
        finally:
            relent(client)
        tickets.send(Queue.OCR)
        worker.await_ended(2)
        assert worker.process.poll() is None
        worker.wait_until(lambda: drained(tickets, Queue.OCR))
