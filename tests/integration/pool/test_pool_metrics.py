"""The pool's metrics, scraped over HTTP, with a real database and real brokers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from models.errors import BrokerUnavailable
from models.pool import Queue
from pipeline.settings import PoolSettings, Settings
from pipeline.store import Store, connect_store, open_store
from tests.fakes.ledger import QWEN, book, cache_hit, cpu_page, reversal, vlm_call
from tests.fakes.scraped import Scraped, scrape
from tests.integration.pool.bench import CountedTickets
from tests.server_parts import Broker, free_port
from tests.unit.store.pool_parts import LEASE_S, Pool
from workers.cluster.connection import pool_tickets
from workers.cluster.metric_names import POOL_METRICS, MetricKind
from workers.cluster.metrics_server import serving
from workers.cluster.pool_metrics import KEPT_S, PoolCollector
from workers.tickets import Tickets


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, postgres_url: SecretStr) -> Iterator[Store]:
    with closing(open_store(tmp_path, postgres_url)) as opened:
        yield opened


@contextmanager
def served(store: Store, tickets: Tickets, clock: Clock) -> Iterator[int]:
    registry = CollectorRegistry()
    registry.register(PoolCollector(store, tickets, clock=clock))
    port = free_port()
    with serving(port, registry):
        yield port


def told(store: Store, tickets: Tickets | None = None) -> Scraped:
    with served(store, tickets or CountedTickets(), Clock()) as port:
        return scrape(port)


def test_what_waits_and_what_is_held_is_told_by_queue(store: Store) -> None:
    pool = Pool(store)
    pool.submit(5)
    pool.add(pool.open("museum"))
    assert store.pool.claim_pages(owner="me", lease_s=LEASE_S, max_pages=2, weights={}) is not None
    tickets = CountedTickets()
    tickets.send(Queue.OCR, 3)
    seen = told(store, tickets)
    assert seen.values("doctriage_queue_waiting") == {
        ("assemble",): 0,
        ("intake",): 1,
        ("ocr",): 3,
        ("vlm",): 0,
    }
    assert seen.value("doctriage_queue_leases", "ocr") == 2
    assert seen.value("doctriage_queue_messages", "ocr") == 3
    assert seen.value("doctriage_queue_losses", "ocr") == 0
    assert 0 < (seen.value("doctriage_queue_oldest_waiting_seconds", "ocr") or 0) < 600
    assert seen.value("doctriage_queue_oldest_waiting_seconds", "vlm") == 0
    assert seen.value("doctriage_submissions_open") == 2
    assert seen.value("doctriage_database_up") == seen.value("doctriage_broker_up") == 1


def test_what_was_booked_is_told_by_route_reason_code_verdict_and_payer(store: Store) -> None:
    mistaken = vlm_call("2026-11-02", cost_centre="museum", attempt=9, page_number=9)
    book(
        store,
        mistaken,
        cpu_page("2026-11-02", cost_centre="harbour/ships"),
        cpu_page("2026-11-02", cost_centre="harbour/cranes"),
        cpu_page("2026-11-02", cost_centre="museum", route=None, reason="handwriting"),
        cpu_page("2026-11-02", cost_centre="museum", outcome="worker_lost", pages=0, route=None),
        cpu_page("2026-11-02", cost_centre="museum", outcome="page_timed_out", pages=1, route=None),
        vlm_call("2026-11-03", cost_centre="museum"),
        vlm_call("2026-11-03", cost_centre="museum", outcome="truncated", route=None, attempt=2),
        cache_hit("2026-11-03", 12, cost_centre="harbour"),
    )
    book(store, reversal(mistaken, "2026-11-04"))
    seen = told(store)
    assert seen.values("doctriage_pages_total") == {("harbour", "ocr"): 2, ("museum", "vlm"): 2}
    assert seen.values("doctriage_pages_escalated_total") == {("museum",): 1}
    assert seen.values("doctriage_page_reasons_total") == {("handwriting",): 1}
    assert seen.values("doctriage_pages_failed_total") == {("worker_lost",): 0, ("page_timed_out",): 1}
    assert seen.values("doctriage_page_attempts_failed_total") == {
        ("worker_lost",): 1,
        ("page_timed_out",): 1,
    }
    assert seen.values("doctriage_pages_cached_total") == {("harbour",): 12}
    assert seen.values("doctriage_vlm_calls_total") == {(QWEN, "accepted"): 2, (QWEN, "truncated"): 1}
    payer = ("museum", QWEN)
    assert seen.value("doctriage_prompt_tokens_total", *payer) == 3 * 2_330
    assert seen.value("doctriage_cached_prompt_tokens_total", *payer) == 3 * 90
    assert seen.value("doctriage_completion_tokens_total", *payer) == 3 * 410
    assert seen.value("doctriage_predicted_prompt_tokens_total", *payer) == 3 * 2_300
    assert seen.value("doctriage_reversed_cost_microunits_total", "museum", "USD") == mistaken.cost_micro
    assert (seen.value("doctriage_cost_microunits_total", "museum", "USD") or 0) > 3 * (
        mistaken.cost_micro or 0
    )


def test_a_service_is_named_without_what_lets_one_in(store: Store) -> None:
    store.slots.acquire("qwen http://me:word@gpu:8000/v1", 4, "me", 600.0)
    seen = told(store)
    assert seen.values("doctriage_vlm_places") == {("qwen http://gpu:8000/v1",): 4}
    assert seen.values("doctriage_vlm_places_taken") == {("qwen http://gpu:8000/v1",): 1}


def test_nothing_is_told_that_is_not_listed_and_each_says_what_it_is(store: Store) -> None:
    book(store, cpu_page("2026-11-02"), vlm_call("2026-11-02"))
    families = told(store).families
    listed = {metric.name.removesuffix("_total"): metric for metric in POOL_METRICS}
    assert set(families) <= set(listed)
    for name, family in families.items():
        assert family.documentation == listed[name].told
        assert family.type == str(listed[name].kind)
        assert (listed[name].kind is MetricKind.COUNTER) == listed[name].name.endswith("_total")
        for sample in family.samples:
            assert set(sample.labels) == set(listed[name].labels)


def test_the_database_is_asked_again_after_five_seconds(store: Store, clock: Clock) -> None:
    pool = Pool(store)
    with served(store, CountedTickets(), clock) as port:
        assert scrape(port).value("doctriage_submissions_open") == 0
        pool.open()
        clock.now_s = KEPT_S - 0.1
        assert scrape(port).value("doctriage_submissions_open") == 0
        clock.now_s = KEPT_S
        assert scrape(port).value("doctriage_submissions_open") == 1


def test_a_broker_that_is_away_costs_its_own_figures_alone(store: Store) -> None:
    class Away(CountedTickets):
        def depth(self, queue: Queue) -> int:
            raise BrokerUnavailable("away")

    seen = told(store, Away())
    assert (seen.value("doctriage_broker_up"), seen.value("doctriage_database_up")) == (0, 1)
    assert seen.values("doctriage_queue_messages") == {}
    assert seen.value("doctriage_queue_waiting", "ocr") == 0


def test_a_database_that_is_away_costs_its_own_figures_alone(tmp_path: Path) -> None:
    nowhere = SecretStr(f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    with closing(connect_store(tmp_path, nowhere)) as away:
        seen = told(away)
    assert (seen.value("doctriage_database_up"), seen.value("doctriage_broker_up")) == (0, 1)
    assert seen.values("doctriage_queue_waiting") == {}
    assert seen.value("doctriage_queue_messages", "ocr") == 0


def test_tickets_are_counted_at_the_broker_itself(
    tmp_path: Path, store: Store, postgres_url: SecretStr, broker: Broker
) -> None:
    settings = Settings(home=tmp_path, database_url=postgres_url, pool=PoolSettings(broker_url=broker.url))
    pool_tickets(settings).send(Queue.VLM, 2)
    seen = told(store, pool_tickets(settings))
    assert seen.value("doctriage_queue_messages", "vlm") == 2
    assert seen.value("doctriage_queue_messages", "intake") == 0
