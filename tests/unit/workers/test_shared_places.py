"""Places that the processes which call one service share, in virtual time: each process is an admission of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import StoreUnavailable, VlmError, VlmRateLimited, VlmServerError, VlmUnreachable
from pipeline.store import SlotStore
from tests.fakes.slots import MemorySlots
from tests.fakes.virtual_time import now_s, run_in_virtual_time
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import BreakerLimits, CircuitBreaker
from workers.shared_places import FIRST_LOOK_S, LOOK_EVERY_S, DatabasePlaces
from workers.vlm_admission import VlmAdmission

SERVICE = "http://gpu:8000/v1"


def places_of(
    slots: MemorySlots, owner: str = "a", *, capacity: int = 1, jitter: Callable[[], float] = lambda: 1.0
) -> DatabasePlaces:
    return DatabasePlaces(cast(SlotStore, slots), SERVICE, capacity, owner, 60, jitter=jitter)


@dataclass(slots=True)
class Caller:
    """A process that calls the service, and what became of its calls."""

    slots: MemorySlots
    owner: str = "a"
    capacity: int = 1
    cap: int = 8
    breaker: BreakerLimits = field(default_factory=lambda: BreakerLimits(faults_to_open=3, first_open_s=4.0))
    admission: VlmAdmission = field(init=False)
    started_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admission = VlmAdmission(
            AdaptiveLimit(self.cap),
            CircuitBreaker(self.breaker, clock=now_s, jitter=lambda: 0.0),
            places=places_of(self.slots, self.owner, capacity=self.capacity, jitter=random.Random(1).random),
            clock=now_s,
        )

    async def call(
        self, error: VlmError | None = None, *, takes_s: float = 1.0, wait_s: float | None = None
    ) -> str:
        try:
            async with self.admission.slot(wait_s=wait_s):
                self.started_s.append(now_s())
                await asyncio.sleep(takes_s)
                if error is not None:
                    raise error
        except VlmError as caught:
            return caught.code
        return "ok"


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_a_free_place_is_taken_at_once_and_another_is_given_to_the_next() -> None:
    slots = MemorySlots()
    places = places_of(slots, capacity=2)
    assert [await places.acquire(), await places.acquire()] == [1, 2]
    assert now_s() == 0
    await places.release(1)
    assert await places.acquire() == 1
    assert slots.held == {(SERVICE, 1): "a", (SERVICE, 2): "a"}


@in_virtual_time
async def test_who_waits_looks_soon_at_first_and_then_ever_less_often() -> None:
    slots = MemorySlots(held={(SERVICE, 1): "b"})
    looked_s: list[float] = []

    def jitter() -> float:
        looked_s.append(now_s())
        return 1.0

    waiting = asyncio.create_task(places_of(slots, jitter=jitter).acquire())
    await asyncio.sleep(2)
    slots.release(SERVICE, 1, "b")
    assert await waiting == 1
    assert now_s() <= 2 + LOOK_EVERY_S
    pauses_s = [round(later - earlier, 3) for earlier, later in pairwise(looked_s)]
    assert pauses_s[:5] == [FIRST_LOOK_S, 0.04, 0.08, 0.16, LOOK_EVERY_S]
    assert set(pauses_s[4:]) == {LOOK_EVERY_S}


@in_virtual_time
async def test_of_many_that_wait_in_a_process_one_asks_and_they_go_in_their_order() -> None:
    slots, order = MemorySlots(held={(SERVICE, 1): "b"}), []
    places = places_of(slots)

    async def numbered(number: int) -> None:
        place = await places.acquire()
        order.append(number)
        await places.release(place)

    waiting = [asyncio.create_task(numbered(number)) for number in range(20)]
    await asyncio.sleep(1)
    assert len(slots.looks) < 10, "not one for each of those that wait"
    slots.release(SERVICE, 1, "b")
    await asyncio.gather(*waiting)
    assert order == list(range(20))


@in_virtual_time
async def test_who_is_cancelled_while_it_waits_has_no_place_and_stops_nobody() -> None:
    slots = MemorySlots(held={(SERVICE, 1): "b"})
    places = places_of(slots)
    first, second = (asyncio.create_task(places.acquire()) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()
    slots.release(SERVICE, 1, "b")
    assert await second == 1
    assert first.cancelled()
    await places.release(1)
    assert not slots.held


@in_virtual_time
async def test_no_more_calls_are_under_way_over_all_processes_than_there_are_places() -> None:
    slots = MemorySlots()
    callers = [Caller(slots, owner, capacity=3) for owner in ("a", "b", "c")]
    calls = [caller.call() for caller in callers for _ in range(10)]
    assert await asyncio.gather(*calls) == ["ok"] * 30
    assert (slots.peak, slots.held) == (3, {})
    assert now_s() < 10 + 10 * LOOK_EVERY_S, "30 calls of a second, three at a time"


@in_virtual_time
async def test_only_calls_that_have_a_place_count_as_in_flight() -> None:
    caller = Caller(MemorySlots(), capacity=2)
    calls = [asyncio.create_task(caller.call()) for _ in range(6)]
    await asyncio.sleep(0.5)
    assert caller.admission.in_flight == 2
    await asyncio.gather(*calls)
    assert caller.admission.in_flight == 0


@in_virtual_time
async def test_the_wait_for_a_place_is_no_time_of_illness_and_uses_up_no_patience() -> None:
    slots = MemorySlots(held={(SERVICE, 1): "b"})
    caller = Caller(slots)
    call = asyncio.create_task(caller.call(wait_s=1.0))
    await asyncio.sleep(100)
    slots.release(SERVICE, 1, "b")
    assert await call == "ok"
    assert caller.admission.ill_s() == 0


@in_virtual_time
async def test_no_call_that_waited_for_a_place_is_made_in_a_pause_that_began_meanwhile() -> None:
    slots = MemorySlots()
    caller = Caller(slots, capacity=2)
    slots.acquire(SERVICE, 2, "b", 60)
    refused = asyncio.create_task(caller.call(VlmRateLimited("later", retry_after_s=30.0)))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(caller.call())
    assert await refused == "vlm_rate_limited"
    await asyncio.sleep(10)
    assert slots.held == {(SERVICE, 1): "b"}, "nobody holds a place that may make no call"
    assert await waiting == "ok"
    assert caller.started_s == [0.0, 31.0]


@in_virtual_time
async def test_a_page_gives_up_on_an_ill_service_also_while_it_waits_for_a_place() -> None:
    slots = MemorySlots()
    caller = Caller(slots, capacity=3)
    calls = [caller.call(VlmUnreachable("no connection")) for _ in range(3)]
    assert set(await asyncio.gather(*calls)) == {"vlm_unreachable"}
    for _ in range(3):
        slots.acquire(SERVICE, 3, "b", 60)
    assert await caller.call(wait_s=8.0) == "vlm_waited_out"
    assert set(slots.held.values()) == {"b"}
    assert caller.admission.in_flight == 0


@in_virtual_time
async def test_a_database_that_does_not_answer_ends_the_call_and_stops_no_other() -> None:
    slots = MemorySlots(is_down=True)
    caller = Caller(slots)
    with pytest.raises(StoreUnavailable):
        await caller.call()
    slots.is_down = False
    assert await caller.call() == "ok"
    assert caller.admission.in_flight == 0


@settings(max_examples=100)
@given(
    capacity=st.integers(1, 4),
    plans=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([None, None, VlmServerError("x"), VlmRateLimited("x", retry_after_s=2.0)]),
            st.floats(0.0, 3.0),
            st.floats(0.1, 40.0),
        ),
        max_size=30,
    ),
)
def test_whatever_happens_the_places_are_enough_and_all_are_given_back(
    capacity: int, plans: list[tuple[str, VlmError | None, float, float]]
) -> None:
    """Calls answer or fail after a while, and some are given up before."""

    async def test() -> None:
        slots = MemorySlots()
        callers = {owner: Caller(slots, owner, capacity=capacity, cap=5) for owner in ("a", "b", "c")}

        async def given_up(owner: str, error: VlmError | None, takes_s: float, after_s: float) -> None:
            call = asyncio.create_task(callers[owner].call(error, takes_s=takes_s, wait_s=20.0))
            await asyncio.wait([call], timeout=after_s)
            call.cancel()

        await asyncio.gather(*(given_up(*plan) for plan in plans))
        await asyncio.sleep(1)
        assert not slots.held
        assert slots.peak <= capacity
        assert all(caller.admission.in_flight == 0 for caller in callers.values())

    run_in_virtual_time(test())
