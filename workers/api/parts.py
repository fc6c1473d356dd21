"""What a server holds from its start to its end, for whoever answers a request."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request

from models.errors import TooManyAtOnce
from pipeline.blobs import BlobStore
from pipeline.chargeback.cost_centres import most_of_one_team
from pipeline.settings import Settings
from pipeline.store import PoolLimits, Store
from workers.api.access import Access, Caller, ShownBearer, ShownKey, caller
from workers.tickets import Tickets

if TYPE_CHECKING:
    from workers.api.drawing import Drawing
    from workers.api.exports import Exports
    from workers.api.readiness import Readiness

RETRY_AFTER_S = 5

UPLOAD_THREADS = 4
"""Uploads hash, write and enter on so many threads, whatever the crowd: all others ask on theirs."""


class Gate:
    """At most so many at a time, and of one team fewer; the next is sent away."""

    def __init__(self, most: int, what: str) -> None:
        self._what = what
        self._places = _Places(most)
        self._lock = threading.Lock()

    @contextmanager
    def entered(self, team: str | None) -> Iterator[None]:
        """Raises ``TooManyAtOnce``."""
        with self._lock:
            if not self._places.has_room_for(team):
                raise _too_many(self._what, self._places, team)
            self._places.take(team)
        try:
            yield
        finally:
            with self._lock:
                self._places.give_back(team)


class WaitingGate:
    """At most so many at a time, and of one team fewer; the next waits its turn, and is sent away when that has not
    come in time. The turn is that of the team with the fewest inside, and of those of the one that came in longest
    ago."""

    def __init__(self, most: int, what: str, *, wait_s: float) -> None:
        self._what = what
        self._wait_s = wait_s
        self._places = _Places(most)
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def entered(self, team: str | None) -> AsyncIterator[None]:
        """Raises ``TooManyAtOnce``."""
        one = _Waiting(team)
        self._waiting.append(one)
        self._let_in()
        try:
            await self._turn_of(one)
            yield
        finally:
            if one.turn.is_set():
                self._places.give_back(team)
                self._let_in()
            else:
                self._waiting.remove(one)

    async def _turn_of(self, one: _Waiting) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await one.turn.wait()
        except TimeoutError as error:
            if not one.turn.is_set():
                raise _too_many(self._what, self._places, one.team) from error

    def _let_in(self) -> None:
        while welcome := [one for one in self._waiting if self._places.has_room_for(one.team)]:
            one = min(welcome, key=lambda one: self._places.turn_of(one.team))
            self._waiting.remove(one)
            self._places.take(one.team)
            one.turn.set()


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    team: str | None
    turn: asyncio.Event = field(default_factory=asyncio.Event)


class _Places:
    """One team has not all of them. None is everybody, on a server that asks nobody who they are."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_of_one = most_of_one_team(most)
        self._inside: Counter[str | None] = Counter()
        self._came_in: dict[str | None, int] = {}
        self._entries = 0

    def has_room_for(self, team: str | None) -> bool:
        return self._inside.total() < self.most and (team is None or self._inside[team] < self.most_of_one)

    def turn_of(self, team: str | None) -> tuple[int, int]:
        """The smallest comes next."""
        return self._inside[team], self._came_in.get(team, 0)

    def take(self, team: str | None) -> None:
        self._entries += 1
        self._inside[team] += 1
        self._came_in[team] = self._entries

    def give_back(self, team: str | None) -> None:
        self._inside[team] -= 1


def _too_many(what: str, places: _Places, team: str | None) -> TooManyAtOnce:
    most = f"{places.most}" if team is None else f"{places.most}, of one team {places.most_of_one},"
    return TooManyAtOnce(
        f"{what}: at most {most} at a time; try again in {RETRY_AFTER_S} s", retry_after_s=RETRY_AFTER_S
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """``owner`` is this process, in the notes about bytes that arrive."""

    settings: Settings
    store: Store
    blobs: BlobStore
    access: Access
    tickets: Tickets
    owner: str
    uploads: WaitingGate
    upload_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(UPLOAD_THREADS))
    streams: Gate
    quotes: Gate
    pictures: Gate
    drawing: Drawing
    exporting: WaitingGate
    exports: Exports
    readiness: Readiness

    @property
    def limits(self) -> PoolLimits:
        pool = self.settings.pool
        return PoolLimits(
            max_waiting_pages=pool.max_waiting_pages, max_waiting_sources=pool.max_waiting_sources
        )

    @property
    def max_upload_bytes(self) -> int:
        return self.settings.api.max_upload_bytes or self.settings.intake.max_bytes


async def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


House = Annotated[Parts, Depends(parts_of)]
Asking = Annotated[Caller, Depends(caller)]


async def _sending(request: Request, parts: House, bearer: ShownBearer, key: ShownKey) -> Caller:
    return await run_sync(caller, request, bearer, key, limiter=parts.upload_threads)


Sending = Annotated[Caller, Depends(_sending)]
"""Whoever asks, of a request with a document."""
