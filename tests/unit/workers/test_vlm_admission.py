"""Who may call the VLM service and when, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import (
    VlmConnectionLost,
    VlmError,
    VlmOverloaded,
    VlmRateLimited,
    VlmRequestRefused,
    VlmServerError,
    VlmTimedOut,
    VlmUnreachable,
    VlmWaitedOut,
)
from models.transcription import Verdict
from tests.fakes.virtual_time import now_s, run_in_virtual_time
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import BreakerLimits, BreakerState, CircuitBreaker
from workers.retry import VlmRetryLimits, verdict_of, vlm_retry_decision
from workers.vllm_metrics import VllmMetrics
from workers.vlm_admission import VlmAdmission

BREAKER = BreakerLimits(faults_to_open=3, first_open_s=4.0, longest_open_s=16.0)


class Gate:
    """An admission in virtual time, and a note of every call that it let through."""

    def __init__(self, cap: int = 4, breaker: BreakerLimits = BREAKER) -> None:
        self.limit = AdaptiveLimit(cap)
        self.breaker = CircuitBreaker(breaker, clock=now_s, jitter=lambda: 0.0)
        self.admission = VlmAdmission(self.limit, self.breaker, clock=now_s)
        self.started_s: list[float] = []
        self.under_way = 0
        self.peak = 0

    async def call(
        self, error: VlmError | None = None, *, takes_s: float = 1.0, wait_s: float | None = None
    ) -> str:
        """How one call ends: "ok", or the error's code."""
        try:
            async with self.admission.slot(wait_s=wait_s):
                self.started_s.append(now_s())
                self.under_way += 1
                self.peak = max(self.peak, self.under_way)
                try:
                    await asyncio.sleep(takes_s)
                finally:
                    self.under_way -= 1
                if error is not None:
                    raise error
        except VlmError as caught:
            return caught.code
        return "ok"

    async def calls(self, *errors: VlmError | None, takes_s: float = 1.0) -> list[str]:
        """All at once."""
        return await asyncio.gather(*(self.call(error, takes_s=takes_s) for error in errors))

    async def calls_with_patience(self, *waits_s: float, takes_s: float = 1.0) -> list[str]:
        return await asyncio.gather(*(self.call(takes_s=takes_s, wait_s=wait_s) for wait_s in waits_s))


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_no_more_calls_are_under_way_than_the_cap_and_all_get_their_turn() -> None:
    gate = Gate(cap=4)
    assert await gate.calls(*[None] * 30) == ["ok"] * 30
    assert gate.peak == 4
    assert now_s() == 8, "30 calls of a second, four at a time"
    assert gate.admission.in_flight == 0


@in_virtual_time
async def test_calls_go_in_the_order_in_which_they_asked() -> None:
    gate, order = Gate(cap=1), []

    async def numbered(number: int) -> None:
        async with gate.admission.slot():
            order.append(number)
            await asyncio.sleep(1)

    await asyncio.gather(*(numbered(number) for number in range(10)))
    assert order == list(range(10))


@pytest.mark.parametrize("error", [VlmRateLimited("x"), VlmOverloaded("x"), VlmTimedOut("x")])
def test_calls_that_fail_together_for_want_of_room_halve_the_limit_once(error: VlmError) -> None:
    async def test() -> None:
        gate = Gate(cap=8, breaker=BreakerLimits(faults_to_open=100))
        await gate.calls(*[error] * 8)
        assert gate.admission.limit == 4
        await gate.calls(*[error] * 4)
        assert gate.admission.limit == 2
        await gate.calls(*[error] * 8)
        assert gate.admission.limit == 1, "never under one"

    run_in_virtual_time(test())


@pytest.mark.parametrize("error", [VlmRequestRefused("x"), VlmServerError("x"), VlmConnectionLost("x")])
def test_other_errors_leave_the_limit_alone(error: VlmError) -> None:
    async def test() -> None:
        gate = Gate(cap=8, breaker=BreakerLimits(faults_to_open=100))
        await gate.calls(*[error] * 8)
        assert gate.admission.limit == 8

    run_in_virtual_time(test())


@in_virtual_time
async def test_as_many_answers_as_the_limit_raise_it_by_one_up_to_the_cap() -> None:
    gate, limits = Gate(cap=4), []
    await gate.calls(*[VlmRateLimited("x")] * 4)
    await gate.call(VlmRateLimited("x"))
    for _ in range(14):
        limits.append(gate.admission.limit)
        assert await gate.call() == "ok"
    assert limits == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("kind", [VlmRateLimited, VlmOverloaded])
def test_a_pause_that_the_server_asks_for_holds_for_every_page(kind: type[VlmError]) -> None:
    async def test() -> None:
        gate = Gate(cap=4)
        assert await gate.call(kind("x", retry_after_s=7.0), takes_s=1.0) == kind.code
        await gate.calls(None, None, None)
        assert min(gate.started_s[1:]) == 8.0

    run_in_virtual_time(test())


@in_virtual_time
async def test_a_shorter_pause_does_not_cut_a_longer_one() -> None:
    gate = Gate(cap=4)
    await gate.calls(VlmRateLimited("x", retry_after_s=9.0), VlmRateLimited("x", retry_after_s=2.0))
    await gate.call()
    assert gate.started_s[-1] == 10.0


@in_virtual_time
async def test_while_the_service_is_down_one_call_at_a_time_finds_out() -> None:
    gate = Gate(cap=8)
    down = VlmUnreachable("x")
    assert await gate.calls(*[down] * 3, takes_s=0.0) == [down.code] * 3
    assert gate.breaker.state == BreakerState.OPEN
    waiting = [asyncio.create_task(gate.call(error, takes_s=1.0)) for error in (down, down, *[None] * 5)]
    await asyncio.gather(*waiting)
    assert gate.started_s[3:] == [4.0, 13.0, 30.0, 31.0, 31.0, 31.0, 31.0]
    assert gate.breaker.state == BreakerState.CLOSED


@in_virtual_time
async def test_a_page_waits_no_longer_than_it_may() -> None:
    gate = Gate(cap=4)
    await gate.calls(*[VlmUnreachable("x")] * 3, takes_s=0.0)
    with pytest.raises(VlmWaitedOut) as caught:
        async with gate.admission.slot(wait_s=1.5):
            raise AssertionError("the service is down")
    assert (now_s(), caught.value.retry_after_s) == (1.5, 2.5)
    assert "1.5 s" in str(caught.value)


@in_virtual_time
async def test_a_page_without_patience_goes_at_once_or_not_at_all_while_the_service_is_ill() -> None:
    gate = Gate(cap=2)
    assert await gate.call(takes_s=0.0, wait_s=0.0) == "ok"
    await gate.call(VlmRateLimited("x", retry_after_s=3.0), takes_s=0.0)
    assert await gate.calls_with_patience(0.0, -1.0) == [VlmWaitedOut.code] * 2
    assert now_s() == 0
    await asyncio.sleep(3)
    assert await gate.call(wait_s=0.0) == "ok"


@in_virtual_time
async def test_the_time_behind_other_calls_is_not_counted() -> None:
    gate = Gate(cap=1)
    assert await gate.calls_with_patience(*[0.5] * 20, takes_s=10.0) == ["ok"] * 20
    assert now_s() == 200


@in_virtual_time
async def test_a_page_in_the_queue_learns_that_the_service_has_fallen_ill() -> None:
    gate = Gate(cap=1)
    first = asyncio.create_task(gate.call(VlmRateLimited("x", retry_after_s=100.0), takes_s=50.0))
    await asyncio.sleep(1)
    ends = await gate.calls_with_patience(0.0, 5.0, 99.0, 101.0)
    assert ends == [VlmWaitedOut.code] * 3 + ["ok"]
    assert (await first, gate.started_s) == (VlmRateLimited.code, [0, 150])


@in_virtual_time
async def test_times_of_illness_add_up_and_health_between_them_costs_nothing() -> None:
    gate = Gate(cap=1)
    ill = [VlmRateLimited("x", retry_after_s=4.0)] * 2
    before = [asyncio.create_task(gate.call(error, takes_s=20.0)) for error in ill]
    await asyncio.sleep(1)
    assert await gate.calls_with_patience(7.0, 9.0) == [VlmWaitedOut.code, "ok"]
    await asyncio.gather(*before)
    assert gate.started_s == [0, 24, 48]
    assert gate.admission.ill_s() == 8


@in_virtual_time
async def test_the_service_is_ill_from_the_last_fault_to_the_answer_of_the_probe() -> None:
    gate = Gate(cap=4)
    await asyncio.sleep(10)
    await gate.calls(*[VlmUnreachable("x")] * 3, takes_s=0.0)
    assert gate.admission.is_ill
    assert await gate.call(takes_s=1.0) == "ok"
    await asyncio.sleep(10)
    assert (gate.admission.is_ill, gate.admission.ill_s()) == (False, 5.0)


@in_virtual_time
async def test_calls_and_waits_that_are_given_up_take_nothing_with_them() -> None:
    gate = Gate(cap=1)
    running = asyncio.create_task(gate.call(takes_s=100.0))
    first, second, last = (asyncio.create_task(gate.call()) for _ in range(3))
    await asyncio.sleep(1)
    for task in (first, running, second):
        task.cancel()
    assert await last == "ok"
    assert now_s() == 2
    assert gate.admission.in_flight == 0


@in_virtual_time
async def test_a_probe_that_is_given_up_is_followed_by_another() -> None:
    gate = Gate(cap=4)
    await gate.calls(*[VlmUnreachable("x")] * 3, takes_s=0.0)
    probe = asyncio.create_task(gate.call(takes_s=100.0))
    behind = asyncio.create_task(gate.call())
    await asyncio.sleep(6)
    assert gate.started_s[3:] == [4.0]
    probe.cancel()
    assert await behind == "ok"
    assert gate.started_s[3:] == [4.0, 6.0]


@in_virtual_time
async def test_an_error_that_is_none_of_the_services_frees_the_place() -> None:
    gate = Gate(cap=1)
    with pytest.raises(ZeroDivisionError):
        async with gate.admission.slot():
            raise ZeroDivisionError
    assert await gate.call() == "ok"


@in_virtual_time
async def test_a_lower_limit_ends_no_call_and_rises_only_by_calls_made_under_it() -> None:
    gate = Gate(cap=4)
    calls = asyncio.gather(*(gate.call(takes_s=10.0) for _ in range(8)))
    await asyncio.sleep(1)
    for _ in range(3):
        gate.admission.observe(VllmMetrics(running=1, waiting=3, kv_cache_usage=None))
    assert (gate.admission.limit, gate.admission.in_flight) == (1, 4)
    assert await calls == ["ok"] * 8
    assert gate.peak == 4
    assert gate.started_s == [0, 0, 0, 0, 10, 20, 20, 30], "one, then two, by the calls begun since"


ends = st.sampled_from(
    [None, None, None, VlmUnreachable, VlmTimedOut, VlmServerError, VlmRateLimited, VlmRequestRefused]
)


@settings(max_examples=60, deadline=None)
@given(
    pages=st.lists(st.tuples(ends, st.floats(0, 20), st.floats(0, 30)), max_size=40),
    cap=st.integers(1, 6),
    retry_after_s=st.none() | st.floats(0, 20),
)
def test_whatever_happens_everybody_comes_to_an_end_and_the_cap_holds(
    pages: list[tuple[type[VlmError] | None, float, float]], cap: int, retry_after_s: float | None
) -> None:
    async def test() -> None:
        gate = Gate(cap=cap)

        async def page(kind: type[VlmError] | None, starts_s: float, takes_s: float) -> str:
            await asyncio.sleep(starts_s)
            error = kind("x", retry_after_s=retry_after_s) if kind else None
            return await gate.call(error, takes_s=takes_s)

        outcomes = await asyncio.gather(*(page(*each) for each in pages))
        assert outcomes == [kind.code if kind else "ok" for kind, _, _ in pages]
        assert gate.peak <= cap
        assert gate.admission.in_flight == 0
        assert 1 <= gate.admission.limit <= cap

    run_in_virtual_time(test())


@pytest.mark.parametrize("seed", range(5))
def test_rate_limits_with_a_pause_cost_few_calls_and_no_page(seed: int) -> None:
    """A service that refuses six times with Retry-After 2 and then answers, and four pages with their ladders."""
    refusals = 6
    dice = random.Random(seed)

    async def answer(*, is_refused: bool) -> None:
        await asyncio.sleep(0.01 if is_refused else 1.0)
        if is_refused:
            raise VlmRateLimited("x", retry_after_s=2.0)

    async def page(gate: Gate, calls_s: list[float]) -> str:
        verdicts: list[Verdict] = []
        waited_s = 0.0
        while True:
            error = None
            try:
                async with gate.admission.slot(wait_s=60.0):
                    calls_s.append(now_s())
                    nonlocal refusals
                    refusals -= 1
                    await answer(is_refused=refusals >= 0)
            except VlmRateLimited as caught:
                error = caught
            if error is None:
                return "ok"
            verdicts.append(verdict_of(error))
            decision = vlm_retry_decision(
                verdicts,
                VlmRetryLimits(),
                retry_after_s=error.retry_after_s,
                waited_s=waited_s,
                jitter=dice.random,
            )
            if decision is None:
                return "given up"
            waited_s += decision.delay_s
            await asyncio.sleep(decision.delay_s)

    async def test() -> None:
        gate = Gate(cap=4)
        calls_s: list[list[float]] = [[] for _ in range(4)]
        assert await asyncio.gather(*(page(gate, each) for each in calls_s)) == ["ok"] * 4
        assert sum(map(len, calls_s)) <= 14
        assert all(later - earlier >= 2.0 for each in calls_s for earlier, later in pairwise(each))

    run_in_virtual_time(test())
