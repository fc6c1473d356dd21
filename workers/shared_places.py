"""Places for calls in flight to one VLM service, shared through the database by all processes that call it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from pipeline.store import SlotStore

FIRST_LOOK_S: Final = 0.02
LOOK_EVERY_S: Final = 0.25
"""Who finds no free place looks again after the first, then after twice as long each time, up to the second; up to half
of it is left to chance, so that processes do not look all at once."""


class DatabasePlaces:
    """For the calls of one event loop: ``capacity`` places over all processes that name the same ``service``.

    A place is the ``owner``'s until it is released, or for ``lease_s`` where the owner does not renew its leases.
    Calls go in the order in which they asked, and one at a time asks the database: each look is short and is made on
    the event loop itself, so that no place is taken for a call that has been cancelled meanwhile.
    """

    def __init__(
        self,
        slots: SlotStore,
        service: str,
        capacity: int,
        owner: str,
        lease_s: float,
        *,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._slots = slots
        self._service = service
        self._capacity = capacity
        self._owner = owner
        self._lease_s = lease_s
        self._jitter = jitter
        self._turn = asyncio.Lock()

    async def acquire(self) -> int:
        """Raises ``StoreUnavailable``."""
        async with self._turn:
            pause_s = FIRST_LOOK_S
            while True:
                place = self._slots.acquire(self._service, self._capacity, self._owner, self._lease_s)
                if place is not None:
                    return place
                await asyncio.sleep(pause_s * (1 + self._jitter()) / 2)
                pause_s = min(2 * pause_s, LOOK_EVERY_S)

    async def release(self, place: int) -> None:
        """Raises ``StoreUnavailable``."""
        self._slots.release(self._service, place, self._owner)
