"""The circuit breaker, by its table of states and by what must hold whatever happens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import (
    VlmBadResponse,
    VlmConnectionLost,
    VlmError,
    VlmModelNotFound,
    VlmOverloaded,
    VlmRateLimited,
    VlmRequestRefused,
    VlmServerError,
    VlmTimedOut,
    VlmUnauthorised,
    VlmUnreachable,
)
from workers.circuit_breaker import BreakerLimits, BreakerState, CircuitBreaker, Passage

FAULTS = [VlmUnreachable, VlmConnectionLost, VlmTimedOut, VlmServerError, VlmOverloaded]
OTHER_ENDS = [VlmRateLimited, VlmRequestRefused, VlmUnauthorised, VlmModelNotFound, VlmBadResponse]
LIMITS = BreakerLimits(faults_to_open=3, first_open_s=4.0, longest_open_s=10.0)
DOWN = VlmUnreachable("down")


class Bench:
    """A breaker with a clock that a test turns by hand."""

    def __init__(self, limits: BreakerLimits = LIMITS, jitter: float = 0.0) -> None:
        self.now_s = 100.0
        self.breaker = CircuitBreaker(limits, clock=lambda: self.now_s, jitter=lambda: jitter)

    def call(self, error: VlmError | None = None) -> None:
        self.breaker.settle(self.breaker.admit(), error)

    def fail(self, times: int) -> None:
        for _ in range(times):
            self.call(DOWN)

    def opened(self) -> Bench:
        self.fail(LIMITS.faults_to_open)
        assert self.breaker.state == BreakerState.OPEN
        return self


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_service_in_a_row_open_it(fault: type[VlmError]) -> None:
    bench = Bench()
    for _ in range(LIMITS.faults_to_open - 1):
        bench.call(fault("x"))
    assert bench.breaker.state == BreakerState.CLOSED
    bench.call(fault("x"))
    assert bench.breaker.state == BreakerState.OPEN
    assert bench.breaker.wait_s() == 4.0
    with pytest.raises(RuntimeError):
        bench.breaker.admit()


@pytest.mark.parametrize("error", [None, *(kind("x") for kind in OTHER_ENDS)])
def test_any_other_end_shows_that_the_service_is_there(error: VlmError | None) -> None:
    bench = Bench()
    for _ in range(5):
        bench.fail(LIMITS.faults_to_open - 1)
        bench.call(error)
    assert bench.breaker.state == BreakerState.CLOSED


def test_when_the_time_is_over_exactly_one_call_probes() -> None:
    bench = Bench().opened()
    bench.now_s += 3.9
    assert bench.breaker.state == BreakerState.OPEN
    bench.now_s += 0.1
    assert bench.breaker.state == BreakerState.HALF_OPEN
    assert bench.breaker.wait_s() == 0.0
    assert bench.breaker.admit().is_probe
    assert bench.breaker.wait_s() is None
    with pytest.raises(RuntimeError):
        bench.breaker.admit()


def test_a_probe_that_is_answered_closes_it() -> None:
    bench = Bench().opened()
    bench.now_s += 4
    bench.call()
    assert bench.breaker.state == BreakerState.CLOSED
    bench.fail(LIMITS.faults_to_open - 1)
    assert bench.breaker.state == BreakerState.CLOSED


def test_probes_that_fail_keep_it_open_longer_and_longer_up_to_the_longest() -> None:
    bench = Bench().opened()
    waits_s = []
    for _ in range(4):
        waits_s.append(wait_s := bench.breaker.wait_s())
        assert wait_s
        bench.now_s += wait_s
        bench.call(DOWN)
    assert waits_s == [4.0, 8.0, 10.0, 10.0]
    bench.now_s += 10
    bench.call()
    bench.opened()
    assert bench.breaker.wait_s() == 4.0, "an answer begins anew"


def test_a_probe_that_was_given_up_leaves_room_for_the_next() -> None:
    bench = Bench().opened()
    bench.now_s += 4
    bench.breaker.withdraw(bench.breaker.admit())
    assert bench.breaker.admit().is_probe


def test_jitter_takes_away_up_to_half() -> None:
    assert Bench(jitter=0.5).opened().breaker.wait_s() == 3.0
    assert Bench(jitter=1.0).opened().breaker.wait_s() == 2.0


def test_it_stays_open_at_least_as_long_as_the_service_asks() -> None:
    bench = Bench(jitter=1.0)
    bench.fail(LIMITS.faults_to_open - 1)
    bench.call(VlmOverloaded("x", retry_after_s=25.0))
    assert bench.breaker.wait_s() == 25.0


def test_calls_from_before_it_opened_say_nothing_new_when_they_fail() -> None:
    bench = Bench()
    early = [bench.breaker.admit() for _ in range(6)]
    bench.fail(LIMITS.faults_to_open)
    wait_s = bench.breaker.wait_s()
    bench.now_s += 1
    for passage in early[:3]:
        bench.breaker.settle(passage, DOWN)
    assert bench.breaker.wait_s() == (wait_s or 0) - 1
    bench.now_s += 3
    bench.call()
    for passage in early[3:]:
        bench.breaker.settle(passage, DOWN)
    assert bench.breaker.state == BreakerState.CLOSED


def test_a_call_from_before_it_opened_that_is_answered_closes_it() -> None:
    bench = Bench()
    early = bench.breaker.admit()
    bench.opened()
    bench.breaker.settle(early, None)
    assert bench.breaker.state == BreakerState.CLOSED


steps = st.lists(
    st.one_of(
        st.floats(min_value=0, max_value=30),
        st.sampled_from(["admit", "answer", "fault", "withdraw"]),
    ),
    max_size=80,
)


@given(steps=steps)
def test_while_it_is_not_closed_at_most_one_call_is_under_way_that_began_since(
    steps: Sequence[float | str],
) -> None:
    bench = Bench()
    under_way: list[Passage] = []
    for step in steps:
        if isinstance(step, float):
            bench.now_s += step
        elif step == "admit":
            if bench.breaker.wait_s() == 0.0:
                under_way.append(bench.breaker.admit())
        elif under_way and step == "withdraw":
            bench.breaker.withdraw(under_way.pop(0))
        elif under_way:
            bench.breaker.settle(under_way.pop(0), DOWN if step == "fault" else None)
        newest = max((passage.era for passage in under_way), default=0)
        probes = [passage for passage in under_way if passage.is_probe and passage.era == newest]
        if bench.breaker.state != BreakerState.CLOSED:
            assert len(probes) <= 1
        wait_s = bench.breaker.wait_s()
        assert wait_s is None or 0 <= wait_s <= LIMITS.longest_open_s
        assert wait_s is not None or probes, "only a probe under way may make others wait for its end"
