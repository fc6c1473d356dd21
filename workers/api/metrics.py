"""What the server counts of its own requests, beside what its readers count and what the database says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.store import Store
from workers.cluster import metric_names as names
from workers.cluster.pool_metrics import PoolCollector
from workers.tickets import Tickets

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
UNKNOWN_ROUTE: Final = "none"


class ApiMetrics:
    """``readers_folder`` is where the embedded pool's processes count; None without one."""

    def __init__(self, store: Store, tickets: Tickets | None, readers_folder: Path | None) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(PoolCollector(store, tickets))
        if readers_folder is not None:
            MultiProcessCollector(self.registry, path=str(readers_folder))  # type: ignore[no-untyped-call]
        requests, seconds, received = names.API_REQUESTS, names.API_SECONDS, names.API_BYTES
        self._requests = Counter(requests.name, requests.told, requests.labels, registry=self.registry)
        self._seconds = Histogram(
            seconds.name, seconds.told, seconds.labels, registry=self.registry, buckets=BUCKETS_S
        )
        self._received = Counter(received.name, received.told, registry=self.registry)

    def answered(self, method: str, route: str, status: int, elapsed_s: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(elapsed_s)

    def received(self, byte_count: int) -> None:
        self._received.inc(byte_count)


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class CountedRequests:
    """ASGI middleware. Routes are counted by their pattern, so that no label holds what a client chose."""

    def __init__(self, app: ASGIApp, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, status = time.monotonic(), 500

        async def counted() -> Message:
            message = await receive()
            self._metrics.received(len(message.get("body", b"")))
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, counted, noted)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.answered(method, _route(scope), status, time.monotonic() - began_s)


def _route(scope: Mapping[str, object]) -> str:
    return str(getattr(scope.get("route"), "path", UNKNOWN_ROUTE))
