"""Tickets without a broker: a send wakes a reader of this machine that has nothing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Semaphore
from typing import Final

from models.pool import Queue

MOST_WAKES: Final = 64
"""Kept for those who are busy; more say nothing new."""

LOOK_EVERY_S: Final = 1.0
"""How often a reader that nobody wakes looks at the database all the same."""


@dataclass(frozen=True, slots=True)
class LocalTickets:
    """Passed on to processes that are spawned. A process that is killed takes a wake with it and blocks nobody: a
    semaphore has no holder."""

    wakes: Mapping[Queue, Semaphore]

    def send(self, queue: Queue, count: int = 1) -> None:
        wake = self.wakes[queue]
        for _ in range(min(count, MOST_WAKES)):
            if wake.get_value() >= MOST_WAKES:
                return
            wake.release()

    def take(self, queue: Queue, count: int) -> None:
        """Wakes are not counted against the work."""

    def depth(self, queue: Queue) -> int:
        """Wakes are no tickets: whatever waits is worth a new one."""
        return 0

    def wait(self, queue: Queue, timeout_s: float = LOOK_EVERY_S) -> None:
        """Until somebody sends, or for so long."""
        self.wakes[queue].acquire(timeout=timeout_s)


def local_tickets(context: SpawnContext) -> LocalTickets:
    """Readers share one semaphore, as each of them does all that is not the VLM's."""
    readers, vlm = context.Semaphore(0), context.Semaphore(0)
    return LocalTickets({queue: vlm if queue is Queue.VLM else readers for queue in Queue})
