"""Where Prometheus reads what is counted: ``http://host:port/metrics``, without a key, as nothing there is secret."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from wsgiref.simple_server import WSGIServer

import psutil
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from models.errors import SettingsError
from workers.cluster import metric_names as names
from workers.cluster.metrics import MAIN, share_between_processes, worker_metrics
from workers.owner import current_owner
from workers.scratch import FOLDER, SLASH


@contextmanager
def serving_worker_metrics(port: int, *, home: Path, has_children: bool) -> Iterator[None]:
    """A worker's own metrics are at ``port`` for as long as the block runs. With ``has_children`` it must begin before
    the first of them is forked: they count in files in a folder of this process in the state folder, which is removed
    in the end. Raises SettingsError where the port cannot be had."""
    registry = CollectorRegistry()
    registry.register(_Memory(has_children=has_children))
    if not has_children:
        registry.register(worker_metrics().registry)
        with serving(port, registry):
            yield
        return
    folder = home / FOLDER / current_owner().replace("/", SLASH) / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        share_between_processes(folder)
        MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
        with serving(port, registry):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def serving(port: int, registry: CollectorRegistry) -> Iterator[None]:
    """Raises SettingsError where the port cannot be had."""
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise SettingsError(
            f"port {port} is not free for metrics ({error.strerror}); name another with --metrics-port"
        ) from error
    _leave_to_parent(server)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _leave_to_parent(server: WSGIServer) -> None:
    """A child that outlives its parent must not keep the port."""
    os.register_at_fork(after_in_child=server.socket.close)


class _Memory(Collector):
    def __init__(self, *, has_children: bool) -> None:
        self._has_children = has_children

    def collect(self) -> Iterator[Metric]:
        family = _family(names.MEMORY)
        main = psutil.Process()
        children = [one for one in main.children() if not _keeps_books(one)] if self._has_children else []
        family.add_metric([MAIN], _resident_bytes(main, with_programs=not self._has_children))
        sizes = [_resident_bytes(child, with_programs=True) for child in sorted(children, key=_age)]
        for number, size_bytes in enumerate(filter(None, sizes), start=1):
            family.add_metric([str(number)], size_bytes)
        yield family


def _family(metric: names.Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.told, labels=metric.labels)


def _keeps_books(process: psutil.Process) -> bool:
    """Python's own process that tidies up after processes that were spawned."""
    with suppress(psutil.Error):
        return "multiprocessing.resource_tracker" in " ".join(process.cmdline())
    return False


def _age(process: psutil.Process) -> tuple[float, int]:
    with suppress(psutil.Error):
        return process.create_time(), process.pid
    return 0.0, process.pid


def _resident_bytes(process: psutil.Process, *, with_programs: bool) -> int:
    """0 for a process that has ended meanwhile."""
    total = 0
    with suppress(psutil.Error):
        total += process.memory_info().rss
        for program in process.children(recursive=True) if with_programs else ():
            with suppress(psutil.Error):
                total += program.memory_info().rss
    return total
