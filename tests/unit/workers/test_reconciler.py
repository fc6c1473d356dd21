"""Tickets that were lost are replaced, as many as there are to replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from models.errors import BrokerUnavailable
from models.pool import Queue
from pipeline.settings import Settings
from pipeline.store import open_store
from tests.integration.pool.bench import CountedTickets
from tests.unit.store.pool_parts import Pool
from workers.cluster import reconciler as module
from workers.cluster.deployment import load_deployment
from workers.cluster.reconciler import Reconciler

PAGES = 7


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with closing(open_store(tmp_path)) as store:
        yield Pool(store)


def reconciler_of(pool: Pool, tickets: CountedTickets, home: Path) -> Reconciler:
    return Reconciler(load_deployment(Settings(home=home)), pool.store, tickets)


def test_what_waits_has_tickets_and_what_has_them_gets_no_more(pool: Pool, tmp_path: Path) -> None:
    pool.submit(PAGES)
    pool.add(pool.open())
    work = pool.claim()
    assert work is not None
    pool.finish(work, awaits_vlm=True)
    tickets = CountedTickets()
    reconciler = reconciler_of(pool, tickets, tmp_path)
    wanted = {Queue.INTAKE: 1, Queue.OCR: PAGES - 1, Queue.VLM: 1}
    assert reconciler.reconcile().tickets == wanted
    assert reconciler.reconcile().tickets == {}
    tickets.take(Queue.OCR, 1)
    assert reconciler.reconcile().tickets == {Queue.OCR: 1}
    tickets.sent.clear()
    assert reconciler.reconcile().tickets == wanted


def test_no_more_tickets_are_sent_at_once_than_a_broker_takes_quickly(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TICKETS", 2)
    pool.submit(3)
    reconciler = reconciler_of(pool, CountedTickets(), tmp_path)
    assert [reconciler.reconcile().tickets for _ in range(3)] == [{Queue.OCR: 2}, {Queue.OCR: 1}, {}]


def test_without_a_broker_the_rest_is_done_and_that_is_told(pool: Pool, tmp_path: Path) -> None:
    class Away(CountedTickets):
        def depth(self, queue: Queue) -> int:
            raise BrokerUnavailable("redis://redis:6379: it does not answer")

    submitted = pool.submit(1)
    assert pool.claim(lease_s=-1) is not None
    reconciled = reconciler_of(pool, Away(), tmp_path).reconcile()
    assert (reconciled.is_broker_away, reconciled.tickets) == (True, {})
    assert reconciled.reclaimed.freed_pages == 1
    assert pool.store.pages.pending_pages(submitted.reading_id) == (1,)
