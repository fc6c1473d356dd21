"""What is found out before a worker takes its first ticket, while whoever starts it still looks on."""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

from models.errors import EngineUnavailable
from pipeline.settings import Settings
from workers.cluster.worker_plan import PoolKind, WorkerPlan


def check_parts(settings: Settings, plan: WorkerPlan) -> None:
    """That the database is there, which is brought up to date, that its clock and ours agree, the blob store, and all
    that the queues need. In a process of its own: what engines load must not be in a process that forks.

    Raises ``StoreUnavailable``, ``EngineUnavailable``, SettingsError, ProfileInvalid and PriceBookInvalid.
    """
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        try:
            pool.submit(_check, settings, plan).result()
        except BrokenProcessPool as error:
            raise EngineUnavailable(
                "the OCR engine dies while it is loaded; run `doctriage doctor`"
            ) from error


def _check(settings: Settings, plan: WorkerPlan) -> None:
    from pipeline.blobs import BlobStore
    from pipeline.store import open_store
    from workers.bootstrap import build_engines, vlm_endpoint
    from workers.cluster.clocks import require_clock_for_leases
    from workers.cluster.deployment import load_deployment

    deployment = load_deployment(settings)
    with closing(open_store(deployment.settings.home, settings.database_url)) as store:
        require_clock_for_leases(store.pool, lease_s=settings.pool.lease_s)
    BlobStore(deployment.settings.home, settings.blobs).require()
    if plan.kind is PoolKind.THREADS:
        vlm_endpoint(settings.vlm, deployment.plan)
    if plan.reads_documents:
        build_engines(settings)
