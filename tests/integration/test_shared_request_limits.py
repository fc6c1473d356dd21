"""How often somebody may ask, counted in the pool's Redis by all servers together."""

from __future__ import annotations

import pytest

from pipeline.settings import Settings, load_settings
from tests.server_parts import Broker
from workers.api.limits import REDIS_LEFT_ALONE_S, request_limits


@pytest.fixture
def settings(redis_broker: Broker) -> Settings:
    return load_settings({"pool": {"broker_url": redis_broker.url}})


def test_two_servers_count_together(settings: Settings) -> None:
    first, second = request_limits(settings), request_limits(settings)
    answers = [server.take("ada", most_per_min=3) for server in (first, second, first, second)]
    assert [is_taken for _, is_taken in answers] == [True, True, True, False]
    assert [room.left for room, _ in answers] == [2, 1, 0, 0]
    assert all(1 <= room.more_in_s <= 60 for room, _ in answers)


def test_while_redis_is_away_each_counts_for_itself_and_then_together_again(
    settings: Settings, redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = request_limits(settings)
    assert server.take("ada", most_per_min=1)[1]
    redis_broker.stop()
    try:
        assert [server.take("ada", most_per_min=1)[1] for _ in range(2)] == [True, False]
    finally:
        redis_broker.start()
    monkeypatch.setattr(server, "_shared_from_s", server._shared_from_s - REDIS_LEFT_ALONE_S)
    assert server.take("ben", most_per_min=1)[1]
    assert not request_limits(settings).take("ben", most_per_min=1)[1]


def test_what_is_kept_there_goes_by_itself_and_names_nobody(settings: Settings, redis_broker: Broker) -> None:
    import redis

    request_limits(settings).take("token ada@harbour.example", most_per_min=3)
    with redis.Redis.from_url(redis_broker.url.get_secret_value()) as client:
        [key] = client.keys("doctriage-requests*")
        assert 0 < client.ttl(key) <= 60
        assert b"ada" not in key
