"""Bytes in the blob store that belong to nothing: what was arriving when its server was killed."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from pipeline.blobs import BlobStore
from pipeline.store import Store
from workers.owner import is_alive

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class OrphanBytes:
    """Of servers of this machine; what another machine's server left is found by that machine."""

    store: Store
    blobs: BlobStore

    def look(self) -> int:
        """How many uploads were cleared away. Raises ``StoreUnavailable``."""
        self.blobs.remove_abandoned(is_alive)
        erased = self.store.uploads.erase_orphans(is_alive, self.blobs.drop)
        if erased:
            log.info("orphans_erased", uploads=erased)
        return erased
