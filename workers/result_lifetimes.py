"""Outputs that were kept long enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from pipeline.blobs import BlobStore
from pipeline.store import Store

SOURCES_AT_A_TIME: Final = 200
LEAST_PAUSE_S: Final = 60.0
MOST_PAUSE_S: Final = 3_600.0
"""Between two looks for outputs to delete."""


def expire_results(store: Store, blobs: BlobStore, *, kept_s: float, now_s: float) -> int:
    """Delete the outputs of sources that were settled more than ``kept_s`` ago; of how many. The pages stay in the
    database. Raises ``StoreUnavailable``; what was deleted until then is."""
    expired = 0
    while True:
        source_ids = store.purge.outputs_settled_before(now_s - kept_s, limit=SOURCES_AT_A_TIME)
        if not source_ids:
            return expired
        for source_id in source_ids:
            blobs.delete_results(source_id)
        store.purge.outputs_deleted(source_ids)
        expired += len(source_ids)


@dataclass(slots=True)
class ResultExpiry:
    """For whoever looks after the pool: looks when it is time to. ``kept_s`` None is for ever."""

    store: Store
    blobs: BlobStore
    kept_s: float | None
    _next_at_s: float = field(default=0.0, init=False)

    def look(self) -> int:
        """Of how many sources outputs were deleted. Raises ``StoreUnavailable``."""
        now_s = time.time()
        if self.kept_s is None or now_s < self._next_at_s:
            return 0
        self._next_at_s = now_s + min(MOST_PAUSE_S, max(LEAST_PAUSE_S, self.kept_s / 10))
        return expire_results(self.store, self.blobs, kept_s=self.kept_s, now_s=now_s)
