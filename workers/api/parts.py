"""What a server holds from its start to its end, for whoever answers a request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request

from models.errors import TooManyAtOnce
from pipeline.blobs import BlobStore
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
    """At most so many at a time; the next is sent away."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._free = threading.BoundedSemaphore(most)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises ``TooManyAtOnce``."""
        if not self._free.acquire(blocking=False):
            raise _too_many(self._what, self._most)
        try:
            yield
        finally:
            self._free.release()


class WaitingGate:
    """At most so many at a time; the next waits its turn, and is sent away when that has not come in time."""

    def __init__(self, most: int, what: str, *, wait_s: float) -> None:
        self._most = most
        self._what = what
        self._wait_s = wait_s
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Raises ``TooManyAtOnce``."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError as error:
            raise _too_many(self._what, self._most) from error
        try:
            yield
        finally:
            self._free.release()


def _too_many(what: str, most: int) -> TooManyAtOnce:
    return TooManyAtOnce(
        f"{what}: {most} are under way, and no more at a time; try again in {RETRY_AFTER_S} s",
        retry_after_s=RETRY_AFTER_S,
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


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


House = Annotated[Parts, Depends(parts_of)]
Asking = Annotated[Caller, Depends(caller)]


async def _sending(request: Request, parts: House, bearer: ShownBearer, key: ShownKey) -> Caller:
    return await run_sync(caller, request, bearer, key, limiter=parts.upload_threads)


Sending = Annotated[Caller, Depends(_sending)]
"""Whoever asks, of a request with a document."""
