"""``doctriage beat``: the reconciler on a timer, and what it sees of the whole pool as metrics."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Final

from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.broker import require_broker
from workers.celery_app import celery_app
from workers.cluster.clocks import require_clock_for_leases
from workers.cluster.connection import pool_tickets
from workers.cluster.deployment import load_deployment
from workers.cluster.keeping import Keeping
from workers.logs import set_up_service_logs

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
CALLBACKS_UNDER_WAY_S: Final = 12.0
"""They have so long when it is to stop: a little longer than any takes."""


def run_beat(settings: Settings, *, every_s: float, once: bool = False) -> None:
    """Until told to stop, which waits for the look under way. A database or a broker that goes away later is waited
    for. Raises ``BrokerUnavailable`` and ``StoreUnavailable`` where they are away at the start, and SettingsError."""
    set_up_service_logs(settings)
    tickets, app = pool_tickets(settings), celery_app(settings)
    require_broker(app)
    deployment = load_deployment(settings)
    with (
        _stopped_between_looks(),
        contextlib.closing(open_store(deployment.settings.home, settings.database_url)) as store,
        _metrics(settings, store),
    ):
        require_clock_for_leases(store.pool, lease_s=settings.pool.lease_s)
        keeping = Keeping(deployment, store, tickets)
        if once:
            reconciled = keeping.look_once()
            keeping.finish()
            if reconciled.is_broker_away:
                require_broker(app)
            return
        while True:
            keeping.look()
            if signal.sigtimedwait(STOP_SIGNALS, every_s) is not None:
                keeping.close(patience_s=CALLBACKS_UNDER_WAY_S)
                return


@contextlib.contextmanager
def _stopped_between_looks() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _metrics(settings: Settings, store: Store) -> Iterator[None]:
    port = settings.pool.metrics_port
    if port is None:
        yield
        return
    from prometheus_client import CollectorRegistry

    from workers.cluster.metrics_server import serving
    from workers.cluster.pool_metrics import PoolCollector

    registry = CollectorRegistry()
    registry.register(PoolCollector(store, pool_tickets(settings)))
    with serving(port, registry):
        yield
