"""Whether a server can do what it is there for, and what is missing."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from models.errors import DoctriageError
from models.pool import Queue
from pipeline.blobs import BlobStore
from pipeline.settings import Settings
from pipeline.store import Store
from workers.local_pool.pool import LocalPool
from workers.local_pool.roles import Role
from workers.tickets import Tickets

KEPT_S: Final = 2.0
"""Whoever asks more often gets the same answer."""

LEAST_FREE_BYTES: Final = 512 * 2**20

Check = Callable[[], str | None]
"""What is wrong; None for nothing."""


class Readiness:
    def __init__(
        self, settings: Settings, store: Store, blobs: BlobStore, tickets: Tickets, pool: LocalPool | None
    ) -> None:
        self._checks: Mapping[str, Check] = {
            "database": lambda: _refusal(lambda: store.pool.has_waiting(Queue.INTAKE)),
            "blob_store": lambda: _refusal(blobs.require),
            **(
                {"broker": lambda: _refusal(lambda: tickets.depth(Queue.INTAKE))}
                if pool is None
                else {"readers": lambda: _no_readers(pool)}
            ),
            "disk": lambda: _full_disk(settings),
        }
        self._lock = threading.Lock()
        self._kept: dict[str, str | None] = {}
        self._kept_until_s = 0.0

    def look(self) -> dict[str, str | None]:
        """By part, what is wrong with it."""
        with self._lock:
            if time.monotonic() >= self._kept_until_s:
                self._kept = {name: check() for name, check in self._checks.items()}
                self._kept_until_s = time.monotonic() + KEPT_S
            return self._kept


def _refusal(ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except DoctriageError as error:
        return str(error)
    return None


def _no_readers(pool: LocalPool) -> str | None:
    return (
        None if pool.at_work(Role.READER) else "no reading process is at work yet; wait, or look at the log"
    )


def _full_disk(settings: Settings) -> str | None:
    free_bytes = shutil.disk_usage(settings.home).free
    if free_bytes >= LEAST_FREE_BYTES:
        return None
    return f"{free_bytes:,} bytes are free for {settings.home}, and {LEAST_FREE_BYTES:,} are needed; free some space"
