"""``doctriage serve``: the API, and with it the embedded pool or the way to the workers of another."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
from collections.abc import Iterator
from types import FrameType
from typing import Final

import structlog
import uvicorn

from models.errors import SettingsError
from pipeline.blobs import BlobStore
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.api.access import open_access, require_loopback
from workers.api.app import make_app
from workers.api.connections import BoundedConnection, allow_many_connections
from workers.api.drawing import Drawing
from workers.api.exports import Exports
from workers.api.metrics import ApiMetrics
from workers.api.parts import Gate, Parts, WaitingGate
from workers.api.readiness import Readiness
from workers.cluster.connection import pool_tickets
from workers.cluster.deployment import load_deployment
from workers.cluster.start_checks import check_parts
from workers.cluster.worker_plan import DEFAULT_QUEUES, plan_worker
from workers.local_pool.pool import LocalPool, running_pool
from workers.local_pool.secret_key import with_secret_key
from workers.logs import set_up_service_logs
from workers.orphan_bytes import OrphanBytes
from workers.owner import current_owner
from workers.tickets import Tickets

GRACE_S: Final = 5
"""What requests under way have to end when the server is told to stop."""

QUOTES_AT_ONCE: Final = 1
PICTURES_WAITING: Final = 8
"""For each process that draws: each waits in a thread, and the others are needed too."""

EXPORT_WAIT_S: Final = 30.0
"""What an output waits for its turn to be made."""

BACKLOG: Final = 512

log = structlog.get_logger()


def run_server(settings: Settings, *, is_open: bool) -> None:
    """Until told to stop, and a few seconds more. ``is_open``: nobody is asked who they are. Raises SettingsError,
    ``StoreUnavailable``, ``EngineUnavailable``, PriceBookInvalid and ProfileInvalid where it cannot begin."""
    if is_open:
        require_loopback(settings.api.host)
    settings = settings.model_copy(update={"home": settings.home.absolute()})
    stopping = _Stopping()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listening(settings))
        store = stack.enter_context(contextlib.closing(open_store(settings.home, settings.database_url)))
        if settings.executor.kind == "local":
            settings = with_secret_key(settings)
        set_up_service_logs(settings)
        pool = stack.enter_context(_embedded_pool(settings))
        tickets = pool_tickets(settings) if pool is None else pool.tickets
        parts = stack.enter_context(_parts(settings, store, tickets, pool, is_open=is_open))
        metrics = (
            ApiMetrics(store, pool_tickets(settings), None)
            if pool is None
            else ApiMetrics(store, None, pool.metrics_folder)
        )
        _serve(parts, metrics, listener, stopping)


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Raises SettingsError where the address cannot be had."""
    host, port = settings.api.host, settings.api.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise SettingsError(
            f"cannot listen on {host}, port {port} ({error}); name others with --host and --port"
        ) from error
    with contextlib.closing(listener):
        yield listener


@contextlib.contextmanager
def _embedded_pool(settings: Settings) -> Iterator[LocalPool | None]:
    if settings.executor.kind != "local":
        yield None
        return
    deployment = load_deployment(settings)
    check_parts(settings, plan_worker(settings, DEFAULT_QUEUES))
    with running_pool(deployment) as pool:
        yield pool


@contextlib.contextmanager
def _parts(
    settings: Settings, store: Store, tickets: Tickets, pool: LocalPool | None, *, is_open: bool
) -> Iterator[Parts]:
    owner = current_owner()
    blobs = BlobStore(settings.home, settings.blobs, owner=owner)
    blobs.require()
    OrphanBytes(store, blobs).look()
    with (
        contextlib.closing(Drawing(settings)) as drawing,
        contextlib.closing(Exports(settings)) as exports,
    ):
        yield Parts(
            settings=settings,
            store=store,
            blobs=blobs,
            access=open_access(settings, store, is_open=is_open),
            tickets=tickets,
            owner=owner,
            uploads=WaitingGate(
                settings.api.max_uploads_at_once, "uploads", wait_s=settings.api.upload_wait_s
            ),
            streams=Gate(settings.api.max_event_streams, "followers of documents"),
            quotes=Gate(QUOTES_AT_ONCE, "quotes"),
            pictures=Gate(PICTURES_WAITING * settings.api.drawing_processes, "pictures"),
            drawing=drawing,
            exporting=WaitingGate(
                settings.api.export_processes, "outputs that are made", wait_s=EXPORT_WAIT_S
            ),
            exports=exports,
            readiness=Readiness(settings, store, blobs, tickets, pool),
        )


class _Stopping:
    """SIGTERM and Ctrl-C: while it serves they are uvicorn's, which sends them again when it has ended."""

    def __init__(self) -> None:
        self.server: uvicorn.Server | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)

    def _told(self, _number: int, _frame: FrameType | None) -> None:
        if self.server is None or not self.server.started:
            raise SystemExit(0)


def _serve(parts: Parts, metrics: ApiMetrics, listener: socket.socket, stopping: _Stopping) -> None:
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(parts, metrics),
            log_config=None,
            access_log=False,
            server_header=False,
            loop="uvloop",
            http=BoundedConnection,
            timeout_graceful_shutdown=GRACE_S,
        )
    )

    stopping.server = server
    allow_many_connections()
    host, port = listener.getsockname()[:2]
    log.info("serving", url=f"http://{f'[{host}]' if ':' in host else host}:{port}")
    _keep_out_of_collections()
    server.run(sockets=[listener])
    log.info("stopping")


def _keep_out_of_collections() -> None:
    """What is there at the start stays to the end: looking through it for garbage would hold up every answer."""
    gc.collect()
    gc.freeze()
