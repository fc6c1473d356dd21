"""A sign of life: while its process lives, what it holds stays its own."""

from __future__ import annotations

import threading
from typing import Final

import structlog

from models.errors import StoreUnavailable
from pipeline.store import PoolStore

BEATS_PER_LEASE: Final = 4
"""Two may fail, and be late, before anything is lost."""

log = structlog.get_logger()


class Heartbeat:
    """Renews the leases of ``owner`` on a thread of its own, from ``start`` to ``stop``. A process that is stopped
    does not beat, and one whose database is away cannot: both lose what they hold to others."""

    def __init__(self, pool: PoolStore, owner: str, *, lease_s: float) -> None:
        self._pool = pool
        self._owner = owner
        self._lease_s = lease_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _beat(self) -> None:
        while not self._ended.wait(self._lease_s / BEATS_PER_LEASE):
            try:
                self._pool.heartbeat(self._owner, lease_s=self._lease_s)
            except StoreUnavailable as error:
                log.warning("heartbeat_missed", owner=self._owner, reason=str(error))
