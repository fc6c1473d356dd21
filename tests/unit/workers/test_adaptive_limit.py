"""How many calls may be in flight, by a service's answers and metrics."""

from __future__ import annotations

import pytest

from workers.adaptive_limit import AdaptiveLimit
from workers.vllm_metrics import VllmMetrics


def metrics(running: int, waiting: int, kv_cache_usage: float | None = 0.5) -> VllmMetrics:
    return VllmMetrics(running=running, waiting=waiting, kv_cache_usage=kv_cache_usage)


@pytest.mark.parametrize(
    ("reading", "in_flight", "limit"),
    [
        (metrics(running=16, waiting=16), 32, 16),
        (metrics(running=16, waiting=8), 24, 16),
        (metrics(running=16, waiting=16), 16, 8),  # half of what is there is somebody else's
        (metrics(running=16, waiting=400), 2, 1),
        (metrics(running=32, waiting=0, kv_cache_usage=0.96), 32, 29),
        (metrics(running=4, waiting=0, kv_cache_usage=0.96), 4, 3),
        (metrics(running=32, waiting=0, kv_cache_usage=0.95), 32, 32),
        (metrics(running=32, waiting=0, kv_cache_usage=None), 32, 32),
        (metrics(running=16, waiting=16), 0, 32),
        (None, 32, 32),
    ],
)
def test_pressure_that_lasts_takes_away_what_waits(
    reading: VllmMetrics | None, in_flight: int, limit: int
) -> None:
    adaptive = AdaptiveLimit(32)
    for _ in range(2):
        adaptive.observe(reading, in_flight=in_flight)
        assert adaptive.limit == 32, "a short queue is none"
    adaptive.observe(reading, in_flight=in_flight)
    assert adaptive.limit == limit


@pytest.mark.parametrize("relief", [None, metrics(running=16, waiting=0)])
def test_pressure_that_comes_and_goes_changes_nothing(relief: VllmMetrics | None) -> None:
    adaptive = AdaptiveLimit(32)
    for _ in range(5):
        for reading in (metrics(16, 16), metrics(16, 16), relief):
            adaptive.observe(reading, in_flight=32)
    assert adaptive.limit == 32


def test_under_pressure_the_limit_does_not_grow() -> None:
    adaptive = AdaptiveLimit(8)
    adaptive.overloaded(adaptive.era)
    adaptive.observe(metrics(4, 1), in_flight=4)
    for _ in range(20):
        adaptive.answered(adaptive.era)
    assert adaptive.limit == 4
    adaptive.observe(metrics(4, 0), in_flight=4)
    adaptive.answered(adaptive.era)
    assert adaptive.limit == 5


def test_a_limit_under_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        AdaptiveLimit(0)
