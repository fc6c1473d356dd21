"""What whoever looks after a pool does at each look: ``doctriage beat``, and the keeper of the embedded pool."""

from __future__ import annotations

import structlog

from models.errors import StoreUnavailable
from pipeline.blobs import open_blobs
from pipeline.store import Store
from workers.cluster.deployment import Deployment
from workers.cluster.reconciler import Reconciled, Reconciler
from workers.orphan_bytes import OrphanBytes
from workers.result_lifetimes import ResultExpiry
from workers.tickets import Tickets

log = structlog.get_logger()


class Keeping:
    """Any number of them may look after one pool."""

    def __init__(self, deployment: Deployment, store: Store, tickets: Tickets) -> None:
        settings = deployment.settings
        blobs = open_blobs(settings.home, settings.blobs)
        self._reconciler = Reconciler(deployment, store, tickets)
        self._expiry = ResultExpiry(store, blobs, settings.blobs.results_kept_s)
        self._orphans = OrphanBytes(store, blobs)

    def look_once(self) -> Reconciled:
        """Raises ``StoreUnavailable``."""
        reconciled = self._reconciler.reconcile()
        self._expiry.look()
        self._orphans.look()
        return reconciled

    def look(self) -> None:
        """A database or a blob store that is away is asked again at the next look."""
        try:
            self.look_once()
        except StoreUnavailable as error:
            log.warning("not_reconciled", code=error.code, reason=str(error))
