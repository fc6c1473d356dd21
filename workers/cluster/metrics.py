"""What the processes of a worker count of their own work.

A process has one ``WorkerMetrics``. Where a worker has children, they count in files that the parent reads:
``share_between_processes`` says so, before anything is counted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, values
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from models.pool import Queue
from workers.circuit_breaker import BreakerState
from workers.cluster import metric_names as names
from workers.cluster.metric_names import Metric
from workers.vlm_admission import VlmAdmission

STAGE_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1_280)
CALL_BUCKETS_S: Final = (0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320)

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
MAIN: Final = "main"


class WorkerMetrics:
    """In ``registry`` is what is counted in this process; nothing where its parent reads it from files."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each: when it began
        self.registry = CollectorRegistry()
        self._stage_s = self._histogram(names.STAGE_SECONDS, STAGE_BUCKETS_S)
        self._call_s = self._histogram(names.CALL_SECONDS, CALL_BUCKETS_S)
        self._pages = self._counter(names.PAGES_READ)
        self._retries = self._counter(names.RETRIES)
        self._refused = self._counter(names.REFUSED)
        self._unused = self._counter(names.UNUSED_TICKETS)
        self._put_off = self._counter(names.PUT_OFF)
        self._admission = _Admission()
        self.registry.register(self._admission)

    def watch(self, admission: VlmAdmission) -> None:
        """How many of its calls are under way, and how many may be, is told from now on."""
        self._admission.watched = admission

    @contextlib.contextmanager
    def timed(self, queue: Queue) -> Iterator[None]:
        """A piece of work is done inside, well or not."""
        started_s = time.monotonic()
        try:
            yield
        finally:
            self._stage_s.labels(str(queue)).observe(time.monotonic() - started_s)

    def ticket_unused(self, queue: Queue) -> None:
        self._unused.labels(str(queue)).inc()

    def source_refused(self, queue: Queue, code: str) -> None:
        self._refused.labels(str(queue), code).inc()

    def work_put_off(self, queue: Queue, code: str) -> None:
        self._put_off.labels(str(queue), code).inc()

    def page_ended(self, queue: Queue, outcome: str) -> None:
        """``outcome`` is the page's route, or ``escalated``, ``retried``, ``failed`` or ``not_ours``."""
        self._pages.labels(str(queue), outcome).inc()

    def page_retried(self, code: str) -> None:
        self._retries.labels(code).inc()

    def call_ended(self, code: str, elapsed_s: float) -> None:
        self._call_s.labels(code).observe(elapsed_s)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.told, metric.labels, registry=self.registry)

    def _histogram(self, metric: Metric, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(metric.name, metric.told, metric.labels, registry=self.registry, buckets=buckets)


class _Admission(Collector):
    """Tells nothing of a process that does not call the VLM."""

    def __init__(self) -> None:
        self.watched: VlmAdmission | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        admission = self.watched
        if admission is None:
            return
        for metric, value in (
            (names.CALLS_IN_FLIGHT, admission.in_flight),
            (names.CALL_LIMIT, admission.limit),
        ):
            yield GaugeMetricFamily(metric.name, metric.told, value=value)
        family = GaugeMetricFamily(names.BREAKER.name, names.BREAKER.told, labels=names.BREAKER.labels)
        for state in BreakerState:
            family.add_metric([str(state)], admission.breaker_state is state)
        yield family


@cache
def worker_metrics() -> WorkerMetrics:
    """This process's; children that are forked go on with it."""
    return WorkerMetrics()


def share_between_processes(folder: Path, place: Callable[[], str] | None = None) -> None:
    """Count in files of ``folder``, which is empty, from now on: one set of them for each place in the pool of
    children, by default Celery's. A child that takes the place of one that has ended goes on counting where that one
    stopped, so that there are never more files than children. Raises RuntimeError where this process has begun to
    count."""
    if worker_metrics.cache_info().currsize:
        raise RuntimeError("this process has begun to count by itself")
    os.environ[FOLDER_VARIABLE] = str(folder)
    values.ValueClass = values.MultiProcessValue(process_identifier=place or _place)  # type: ignore[no-untyped-call]


def _place() -> str:
    """A child's number in its pool, which is given away again once the child has ended."""
    from billiard import current_process  # Celery's children alone have such a number

    return str(getattr(current_process(), "index", MAIN))
