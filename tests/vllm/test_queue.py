"""More calls than the service works on at a time: who waits, who is served first, who is turned away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest

from models.errors import VlmOverloaded
from models.transcription import VlmReply
from tests.vllm.calls import engine_for, request_with
from tests.vllm.server import VllmServer
from workers.vllm_metrics import VllmMetricsReader

Result = TypeVar("Result")

DEADLINE_S = 300
"""The machine may be busy with something else."""
ENDLESS_TOKENS = 15_000
"""Nearly all that the context holds; more than the service writes while a test lasts, unless the machine is busy."""

TRIES = 5


class EndedTooSoon(Exception):
    """A call that was to take a place for ever came to its end: the service was not full all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullService:
    """A service whose places are all taken, by calls that go on until they are given up."""

    server: VllmServer
    metrics: VllmMetricsReader
    endless: list[asyncio.Task[VlmReply]] = field(default_factory=list)

    async def until(self, *, running: int, waiting: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if any(task.done() for task in self.endless):
                    raise EndedTooSoon
                load = await self.metrics.read()
                if load is not None and (load.running, load.waiting) == (running, waiting):
                    return
                await asyncio.sleep(0.05)

    def occupy_a_place(self) -> None:
        self.endless.append(
            asyncio.create_task(call(self.server, max_tokens=ENDLESS_TOKENS, priority=0, ignore_eos=True))
        )

    async def give_up(self) -> None:
        """One call, in the midst of its answer: its connection is closed."""
        task = self.endless.pop()
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def full_service(server: VllmServer) -> AsyncIterator[FullService]:
    service = FullService(server=server, metrics=VllmMetricsReader(server.base_url, timeout_s=20))
    try:
        await service.until(running=0, waiting=0)
        for number in range(1, server.plan.concurrency + 1):
            service.occupy_a_place()
            await service.until(running=number, waiting=0)
        yield service
    finally:
        while service.endless:
            await service.give_up()
        await service.metrics.close()


def undisturbed(scenario: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """What the scenario gives when no endless call ends in it."""
    given: list[Result] = []
    for _ in range(TRIES):
        with suppress(EndedTooSoon):
            given.append(asyncio.run(scenario()))
            break
    assert given, f"{TRIES} times over, a call ended that was to be endless"
    return given[0]


async def call(server: VllmServer, *, max_tokens: int = 4, priority: int = 0, **body: object) -> VlmReply:
    engine = engine_for(server, body=body)
    try:
        return await engine.transcribe(request_with(max_tokens=max_tokens, priority=priority))
    finally:
        await engine.close()


async def served_in_order(server: VllmServer, priorities: tuple[int, ...]) -> list[int]:
    """The priorities as their calls were answered, one after the other, on the one place that comes free."""
    answered: list[int] = []

    async def wait_and_note(priority: int) -> None:
        await call(server, priority=priority)
        answered.append(priority)

    async with full_service(server) as service:
        waiting = []
        for number, priority in enumerate(priorities, start=1):
            waiting.append(asyncio.create_task(wait_and_note(priority)))
            await service.until(running=server.plan.concurrency, waiting=number)
        await service.give_up()
        await asyncio.gather(*waiting)
    return answered


@pytest.mark.parametrize("arrived", [(9, 5, 0), (0, 9, 5)], ids=str)
def test_a_lower_priority_is_served_first_whoever_came_first(
    server: VllmServer, arrived: tuple[int, ...]
) -> None:
    assert undisturbed(partial(served_in_order, server, arrived)) == sorted(arrived)


def test_a_call_that_is_given_up_frees_its_place(server: VllmServer) -> None:
    async def give_up_one() -> None:
        async with full_service(server) as service:
            await service.give_up()
            await service.until(running=server.plan.concurrency - 1, waiting=0)

    undisturbed(give_up_one)


def test_a_full_queue_turns_a_call_away_without_saying_for_how_long(server: VllmServer) -> None:
    async def overload() -> VlmOverloaded:
        async with full_service(server) as service:
            places = server.plan.max_queued_requests - server.plan.concurrency
            waiting = [asyncio.create_task(call(server)) for _ in range(places)]
            await service.until(running=server.plan.concurrency, waiting=places)
            with pytest.raises(VlmOverloaded, match="HTTP 503") as refusal:
                await call(server)
            await service.give_up()
            await asyncio.gather(*waiting)
            return refusal.value

    assert undisturbed(overload).retry_after_s is None
