"""The pool's metrics, asked of its database and its broker when somebody scrapes them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import structlog
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from models.errors import BrokerUnavailable, StoreUnavailable
from models.pool import Queue
from models.tables import LedgerKind
from pipeline.chargeback.entries import READ
from pipeline.store import Backlog, Store
from pipeline.store.pool_figures import BookedKey, BookedSum, PoolFigures
from workers.cluster import metric_names as names
from workers.cluster.booked_totals import BookedTotals
from workers.cluster.metric_names import Metric, MetricKind
from workers.tickets import Tickets

KEPT_S: Final = 5.0
SHARE_OF_TIME: Final = 0.1
"""The database is asked no more often than every five seconds, nor for more than a tenth of the time."""

log = structlog.get_logger()


class PoolCollector(Collector):
    """Asks at most one question at a time, whoever scrapes. A database or a broker that is away leaves out what it
    would have said. ``tickets`` are this collector's own: its questions come on threads of their own. Without a broker
    there are none."""

    def __init__(
        self, store: Store, tickets: Tickets | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = store.pool
        self._figures = PoolFigures(store.database)
        self._totals = BookedTotals(self._figures)
        self._tickets = tickets
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[Family, ...] = ()
        self._kept_until_s = -float("inf")

    def describe(self) -> Iterator[Family]:
        """Nothing is asked to find out the names."""
        return (_family(metric) for metric in names.POOL_METRICS)

    def collect(self) -> Iterator[Family]:
        with self._lock:
            started_s = self._clock()
            if started_s >= self._kept_until_s:
                self._kept = (*self._from_database(), *self._from_broker())
                ended_s = self._clock()
                self._kept_until_s = ended_s + max(KEPT_S, (ended_s - started_s) / SHARE_OF_TIME)
            return iter(self._kept)

    def _from_database(self) -> tuple[Family, ...]:
        try:
            families = (
                *_booked_families(self._totals.look()),
                *_backlog_families(self._pool.backlog()),
                *self._standing_families(),
            )
        except StoreUnavailable as error:
            log.warning("metrics_without_database", reason=str(error))
            return (_gauge(names.DATABASE_UP, [((), 0)]),)
        return (_gauge(names.DATABASE_UP, [((), 1)]), *families)

    def _standing_families(self) -> Iterator[Family]:
        submissions, places = self._figures.open_submissions(), self._figures.places()
        yield _gauge(names.SUBMISSIONS_OPEN, [((), submissions.count)])
        yield _gauge(names.OLDEST_SUBMISSION, [((), _age_s(submissions.oldest_at_s))])
        yield _gauge(names.DEAD_PAGES, [((code,), n) for code, n in self._figures.dead_pages().items()])
        yield _gauge(names.PLACES, [((_shown(one.service),), one.capacity) for one in places])
        yield _gauge(names.PLACES_TAKEN, [((_shown(one.service),), one.taken) for one in places])

    def _from_broker(self) -> tuple[Family, ...]:
        if self._tickets is None:
            return ()
        try:
            depths = [((str(queue),), self._tickets.depth(queue)) for queue in Queue]
        except BrokerUnavailable as error:
            log.warning("metrics_without_broker", reason=str(error))
            return (_gauge(names.BROKER_UP, [((), 0)]),)
        return (_gauge(names.BROKER_UP, [((), 1)]), _gauge(names.MESSAGES, depths))


Samples = Sequence[tuple[tuple[str, ...], float]]


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    return kind(metric.name, metric.told, labels=metric.labels)


def _gauge(metric: Metric, samples: Samples) -> Family:
    family = _family(metric)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _backlog_families(backlog: Backlog) -> Iterator[Family]:
    queues = {(str(queue),): figures for queue, figures in backlog.queues.items()}
    yield _gauge(names.WAITING, [(labels, one.waiting) for labels, one in queues.items()])
    yield _gauge(names.OLDEST_WAITING, [(labels, _age_s(one.oldest_at_s)) for labels, one in queues.items()])
    yield _gauge(names.LEASES, [(labels, one.held) for labels, one in queues.items()])
    yield _gauge(names.LOSSES, [(labels, one.losses) for labels, one in queues.items()])


def _age_s(since_s: float | None) -> float:
    """0 where there is none."""
    return 0.0 if since_s is None else max(0.0, time.time() - since_s)


def _shown(service: str) -> str:
    """The name of a service holds its address, and that may hold a password."""
    model, _, url = service.partition(" ")
    parts = urlsplit(url)
    return f"{model} {urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2]))}"


Counted = Iterator[tuple[Metric, tuple[str, ...], int]]


def _booked_families(totals: dict[BookedKey, BookedSum]) -> Iterator[Family]:
    counts: defaultdict[Metric, defaultdict[tuple[str, ...], int]] = defaultdict(lambda: defaultdict(int))
    counts[names.UNPRICED][()] = 0
    for key, booked in totals.items():
        for metric, labels, count in _counted(key, booked):
            counts[metric][labels] += count
    for metric, by_labels in counts.items():
        yield _gauge(metric, list(by_labels.items()))


def _counted(key: BookedKey, booked: BookedSum) -> Counted:
    """What a counter must not lose is not taken from it: reversals are counted by themselves."""
    if key.kind is LedgerKind.REVERSAL:
        yield names.REVERSED_COST, (key.currency, key.team), max(0, -booked.cost_micro)
        return
    yield names.COST, (key.currency, key.team), booked.cost_micro
    yield names.UNPRICED, (), booked.unpriced_entries
    match key.kind:
        case LedgerKind.CPU_PAGE:
            yield from _counted_on_cpu(key, booked)
        case LedgerKind.VLM_CALL:
            yield from _counted_calls(key, booked)
        case LedgerKind.CACHE_HIT:
            yield names.PAGES_CACHED, (key.team,), booked.cached_pages


def _counted_on_cpu(key: BookedKey, booked: BookedSum) -> Counted:
    if key.outcome != READ:
        yield names.ATTEMPTS_FAILED, (key.outcome,), booked.entries
        yield names.PAGES_FAILED, (key.outcome,), booked.pages
        return
    if key.reason is not None:
        yield names.PAGE_REASONS, (key.reason,), booked.entries
    if key.route is None:
        yield names.PAGES_ESCALATED, (key.team,), booked.entries
    else:
        yield names.PAGES, (key.route, key.team), booked.entries


def _counted_calls(key: BookedKey, booked: BookedSum) -> Counted:
    model, payer = key.model_id or "", key.team
    yield names.VLM_CALLS, (key.outcome, model), booked.entries
    yield names.PROMPT_TOKENS, (model, payer), booked.prompt_tokens
    yield names.CACHED_TOKENS, (model, payer), booked.cached_tokens
    yield names.COMPLETION_TOKENS, (model, payer), booked.completion_tokens
    yield names.PREDICTED_TOKENS, (model, payer), booked.predicted_prompt_tokens
    if key.route is not None:
        yield names.PAGES, (key.route, payer), booked.entries
