"""How busy the fake VLM service is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator


class Load:
    """The requests that are worked on, ``concurrency`` at most, and those that wait."""

    def __init__(self, concurrency: int) -> None:
        self.running = 0
        self.waiting = 0
        self._concurrency = concurrency
        self._places = asyncio.Semaphore(concurrency)
        self._busy_s = 0.0
        self._started_s: float | None = None
        self._changed_s = 0.0

    @property
    def is_full(self) -> bool:
        return self.running >= self._concurrency

    @property
    def share(self) -> float:
        return self.running / self._concurrency

    @property
    def busy_share(self) -> float:
        """How much of the capacity was used between the first request's start and the last one's end."""
        span_s = self._changed_s - self._started_s if self._started_s is not None else 0.0
        return self._busy_s / (self._concurrency * span_s) if span_s else 0.0

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)
            self._places.release()

    def _change(self, by: int) -> None:
        now_s = time.monotonic()
        if self._started_s is None:
            self._started_s = now_s
        else:
            self._busy_s += self.running * (now_s - self._changed_s)
        self._changed_s = now_s
        self.running += by
