"""Lets calls to the VLM service through: as many as it bears, none while it asks for a pause, none while it is down
but for one that finds out whether it is back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from models.errors import VlmError, VlmOverloaded, VlmRateLimited, VlmTimedOut, VlmWaitedOut
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import BreakerState, CircuitBreaker, Passage
from workers.vllm_metrics import VllmMetrics, VllmMetricsReader

OVERLOAD = (VlmRateLimited, VlmOverloaded, VlmTimedOut)
PAUSE = (VlmRateLimited, VlmOverloaded)
"""Where these name a time to come back, it holds for every page: the server asked its client, not a page."""

LOOK_EVERY_S: Final = 0.25
"""How soon a page that has no patience left finds out that the service has fallen ill."""


class SharedPlaces(Protocol):
    """Places for calls in flight to one service, which several processes share. Each has a number."""

    async def acquire(self) -> int:
        """Takes a place as soon as one is free. Who is cancelled meanwhile has none."""
        ...

    async def release(self, place: int) -> None:
        """Gives it to whoever waits, without waiting itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    passage: Passage
    limit_era: int
    shared: int | None


class VlmAdmission:
    """For the pages of one event loop. ``clock`` gives seconds and must run as the loop's does. With ``places`` each
    call takes one of them besides; only the call that is next waits for it, so none is held by a call that may not be
    made.

    Calls go in the order in which they asked. The service counts as ill while the breaker is not closed, and
    through a pause that it asked for; waiting for a place is no illness.
    """

    def __init__(
        self,
        limit: AdaptiveLimit,
        breaker: CircuitBreaker,
        *,
        places: SharedPlaces | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._breaker = breaker
        self._places = places
        self._clock = clock
        self._in_flight = 0
        self._not_before_s = 0.0
        self._ill_s = 0.0
        self._ill_counted_at_s = clock()
        self._turnstile = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def limit(self) -> int:
        return self._limit.limit

    @property
    def breaker_state(self) -> BreakerState:
        return self._breaker.state

    @contextlib.asynccontextmanager
    async def slot(self, *, wait_s: float | None = None) -> AsyncIterator[None]:
        """One call is made inside; how it ends is seen from the VlmError that leaves the block.

        Waits its turn, however long that takes: each call before it ends. Of the time of waiting, the service may
        be ill for ``wait_s`` (None: for ever); then VlmWaitedOut is raised.
        """
        place = await self._enter(wait_s)
        is_settled = False
        try:
            yield
            self._answered(place)
            is_settled = True
        except VlmError as error:
            self._failed(place, error)
            is_settled = True
            raise
        finally:
            if not is_settled:
                self._breaker.withdraw(place.passage)
            self._in_flight -= 1
            self._changed.set()
            if self._places is not None and place.shared is not None:
                await self._places.release(place.shared)

    def observe(self, metrics: VllmMetrics | None) -> None:
        self._limit.observe(metrics, in_flight=self._in_flight)
        self._changed.set()

    def pause_s(self) -> float | None:
        """0 if a call could be made now, else the seconds to wait; None where that depends on calls in flight."""
        breaker_s = self._breaker.wait_s()
        if breaker_s is None or self._in_flight >= self._limit.limit:
            return None
        return max(0.0, breaker_s, self._not_before_s - self._clock())

    @property
    def is_ill(self) -> bool:
        return self.breaker_state is not BreakerState.CLOSED or self._clock() < self._not_before_s

    def ill_s(self) -> float:
        """For how many seconds the service has been ill, all in all."""
        now_s = self._clock()
        is_down = self.breaker_state is not BreakerState.CLOSED
        ill_until_s = now_s if is_down else min(now_s, self._not_before_s)
        self._ill_s += max(0.0, ill_until_s - self._ill_counted_at_s)
        self._ill_counted_at_s = now_s
        return self._ill_s

    async def _enter(self, wait_s: float | None) -> _Place:
        try:
            async with asyncio.timeout(None) as timer:
                with self._patience(timer, wait_s):
                    return await self._turn()
        except TimeoutError as error:
            raise VlmWaitedOut(
                f"the VLM service took no call for {wait_s:g} s; see whether it runs and keeps up, or wait longer",
                retry_after_s=self.pause_s(),
            ) from error

    async def _turn(self) -> _Place:
        async with self._turnstile:
            shared = await self._shared_place()
            self._in_flight += 1
            return _Place(passage=self._breaker.admit(), limit_era=self._limit.era, shared=shared)

    async def _shared_place(self) -> int | None:
        """Waits until a call may be made. What was so before the wait for a place may not be so after it."""
        while True:
            while (pause_s := self.pause_s()) != 0.0:
                await self._until_changed(pause_s)
            if self._places is None:
                return None
            place = await self._places.acquire()
            if self.pause_s() == 0.0:
                return place
            await self._places.release(place)

    @contextlib.contextmanager
    def _patience(self, timer: asyncio.Timeout, wait_s: float | None) -> Iterator[None]:
        """Lets ``timer`` run out once the service has been ill for ``wait_s`` from now on, and is."""
        loop = asyncio.get_running_loop()
        check: asyncio.TimerHandle | None = None
        ends_at_s = self.ill_s() + (wait_s or 0.0)

        def look() -> None:
            nonlocal check
            left_s = ends_at_s - self.ill_s()
            if left_s <= 0 and self.is_ill:
                timer.reschedule(loop.time())
            else:
                check = loop.call_later(max(left_s, LOOK_EVERY_S), look)

        if wait_s is not None:
            look()
        try:
            yield
        finally:
            if check is not None:
                check.cancel()

    async def _until_changed(self, pause_s: float | None) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._changed.wait()

    def _answered(self, place: _Place) -> None:
        self.ill_s()
        self._breaker.settle(place.passage, None)
        self._limit.answered(place.limit_era)

    def _failed(self, place: _Place, error: VlmError) -> None:
        self.ill_s()
        self._breaker.settle(place.passage, error)
        if isinstance(error, OVERLOAD):
            self._limit.overloaded(place.limit_era)
        if isinstance(error, PAUSE) and error.retry_after_s is not None:
            self._not_before_s = max(self._not_before_s, self._clock() + error.retry_after_s)


async def watch(
    reader: VllmMetricsReader,
    admission: VlmAdmission,
    *,
    interval_s: float = 2.0,
    unknown_interval_s: float = 60.0,
) -> None:
    """Tells ``admission`` of the service's load until it is cancelled; seldom where the service says nothing."""
    while True:
        metrics = await reader.read()
        admission.observe(metrics)
        await asyncio.sleep(interval_s if metrics is not None else unknown_interval_s)
