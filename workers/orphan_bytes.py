"""Bytes in the blob store that belong to nothing: what was arriving when its server was killed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog

from pipeline.blobs import BlobStore
from pipeline.store import Store
from workers.owner import is_alive

log = structlog.get_logger()


ENTERED_WITHIN_S: Final = 3_600.0
"""It takes as long as giving the bytes their name, seconds or minutes; a server of another machine that has not done so
in an hour is gone."""


@dataclass(frozen=True, slots=True)
class OrphanBytes:
    store: Store
    blobs: BlobStore

    def look(self) -> int:
        """How many uploads were cleared away. Raises ``StoreUnavailable``."""
        self.blobs.remove_abandoned(is_alive)
        erased = self.store.uploads.erase_orphans(is_alive, self.blobs.drop, older_than_s=ENTERED_WITHIN_S)
        if erased:
            log.info("orphans_erased", uploads=erased)
        return erased
