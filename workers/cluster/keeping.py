"""What whoever looks after a pool does at each look: ``doctriage beat``, and the keeper of the embedded pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from models.errors import StoreUnavailable
from pipeline.blobs import open_blobs
from pipeline.settings import Settings
from pipeline.store import Store
from workers.cluster.deployment import Deployment
from workers.cluster.reconciler import Reconciled, Reconciler
from workers.orphan_bytes import OrphanBytes
from workers.result_lifetimes import ResultExpiry
from workers.tickets import Tickets

if TYPE_CHECKING:
    from workers.callbacks.desk import CallbackDesk

log = structlog.get_logger()


class Keeping:
    """Any number of them may look after one pool."""

    def __init__(self, deployment: Deployment, store: Store, tickets: Tickets) -> None:
        settings = deployment.settings
        blobs = open_blobs(settings.home, settings.blobs)
        self._reconciler = Reconciler(deployment, store, tickets)
        self._expiry = ResultExpiry(store, blobs, settings.blobs.results_kept_s)
        self._orphans = OrphanBytes(store, blobs)
        self._callbacks = _callback_desk(settings, store)

    def look_once(self) -> Reconciled:
        """Raises ``StoreUnavailable``."""
        reconciled = self._reconciler.reconcile()
        self._expiry.look()
        self._orphans.look()
        if self._callbacks is not None:
            self._callbacks.look()
        return reconciled

    def look(self) -> None:
        """A database or a blob store that is away is asked again at the next look."""
        try:
            self.look_once()
        except StoreUnavailable as error:
            log.warning("not_reconciled", code=error.code, reason=str(error))

    def finish(self) -> None:
        """For whoever looks once: until every callback that is due was tried."""
        if self._callbacks is not None:
            self._callbacks.wait()

    def close(self, *, patience_s: float) -> None:
        """Callbacks under way have so long; what they come to is told again by another."""
        if self._callbacks is not None:
            self._callbacks.close(patience_s=patience_s)


def _callback_desk(settings: Settings, store: Store) -> CallbackDesk | None:
    """None where none are sent."""
    if settings.api.callback_secret is None:
        return None
    from workers.api.document_json import document_of
    from workers.callbacks.desk import CallbackDesk

    return CallbackDesk(store.callbacks, settings.api, lambda upload_id: document_of(store, upload_id))
