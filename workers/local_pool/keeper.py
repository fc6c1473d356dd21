"""The process that looks after the embedded pool: what ``doctriage beat`` is for the pool of workers."""

from __future__ import annotations

import time
from contextlib import closing
from multiprocessing.connection import Connection
from typing import Final

from pipeline.store import connect_store
from workers.cluster.keeping import Keeping
from workers.local_pool.beginning import StopFlag, begin
from workers.local_pool.roles import PoolSetup, Ready
from workers.owner import current_owner

SLICE_S: Final = 0.5
"""How soon it notices that it is to stop."""
CALLBACKS_UNDER_WAY_S: Final = 2.0
"""They have so long then."""


def keep(connection: Connection, setup: PoolSetup, place: str) -> None:
    """The whole life of the keeper: a look at once, then every few seconds, and whenever a process was lost."""
    stop = begin(setup, place)
    settings = setup.deployment.settings
    with closing(connect_store(settings.home, settings.database_url)) as store:
        keeping = Keeping(setup.deployment, store, setup.tickets)
        connection.send(Ready(owner=current_owner()))
        while not stop.is_set:
            keeping.look()
            _wait(setup, stop, settings.pool.reconcile_every_s)
        keeping.close(patience_s=CALLBACKS_UNDER_WAY_S)


def _wait(setup: PoolSetup, stop: StopFlag, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not stop.is_set and time.monotonic() < deadline_s:
        if setup.losses.acquire(timeout=SLICE_S):
            return
