"""Copies on this machine of documents that were erased on another."""

from __future__ import annotations

import threading
from typing import Final

import structlog

from models.errors import StoreUnavailable
from pipeline.blobs import BlobStore
from pipeline.store import Store
from workers.purging import drop_purged_copies

LOOK_EVERY_S: Final = 3_600.0

log = structlog.get_logger()


class PurgedCopies:
    """Drops them at ``start`` and then every hour on a thread of its own, to ``stop``: a worker may live for months."""

    def __init__(self, store: Store, blobs: BlobStore, *, every_s: float = LOOK_EVERY_S) -> None:
        self._store = store
        self._blobs = blobs
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_again, name="purged-copies", daemon=True)

    def start(self) -> None:
        """Raises ``StoreUnavailable``."""
        drop_purged_copies(self._store, self._blobs)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _look_again(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                drop_purged_copies(self._store, self._blobs)
            except StoreUnavailable as error:
                log.warning("purged_copies_not_dropped", reason=str(error))
