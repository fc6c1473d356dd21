"""What a process of the pool holds when its work breaks off goes back at once, or as soon as the database answers: it
lives, so nobody would take it from it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from models.errors import StoreUnreachable
from models.pool import Queue, SubmissionState
from tests.fakes.engines import FakeEngines, FakeOcr
from tests.fakes.pages import tiff_of_widths
from tests.integration.pool.bench import STAGES, PoolBench, pool_bench
from tests.postgres import PostgresServer
from workers.cluster import host
from workers.cluster.turn import Turn, take_turn

AWAY_S = 1.5


@pytest.fixture
def bench(tmp_path: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch) -> Iterator[PoolBench]:
    """Its blob store is a shared folder, and a document of two pages was submitted."""
    monkeypatch.setattr(host, "ASK_EVERY_S", 0.2)
    tiff_of_widths(tmp_path / "in" / "a.tif", [500, 501])
    shared = tmp_path / "shared"
    shared.mkdir()
    fakes = FakeEngines(ocr=FakeOcr(folder=tmp_path))
    blobs = {"url": shared.as_uri()}
    with pool_bench(tmp_path / "pool", postgres_url, build_engines=fakes, blobs=blobs) as opened:
        opened.submit(tmp_path / "in")
        yield opened


def turn_of(bench: PoolBench, queue: Queue) -> Turn:
    return take_turn(partial(STAGES[queue], bench.host), queue, bench.tickets)


def held(bench: PoolBench) -> int:
    return sum(queue.held for queue in bench.host.store.pool.backlog().queues.values())


def assert_it_is_read(bench: PoolBench) -> None:
    bench.tickets.sent.update(tuple(STAGES))
    bench.work()
    [summary] = bench.host.store.pool.submissions(limit=9)
    assert (summary.state, summary.failed_sources, summary.failed_pages) == (SubmissionState.FINISHED, 0, 0)


def work_before(bench: PoolBench, queue: Queue) -> None:
    for earlier in takewhile(lambda one: one is not queue, STAGES):
        bench.work((earlier,))


@pytest.mark.parametrize("queue", STAGES)
def test_work_for_which_the_blob_store_is_away_is_given_back(
    bench: PoolBench, queue: Queue, tmp_path: Path
) -> None:
    work_before(bench, queue)
    shutil.move(tmp_path / "shared", tmp_path / "away")
    assert turn_of(bench, queue) is Turn.PUT_OFF
    assert held(bench) == 0
    shutil.move(tmp_path / "away", tmp_path / "shared")
    assert_it_is_read(bench)


@pytest.mark.parametrize("queue", STAGES)
def test_a_claim_whose_answer_was_lost_is_given_back(
    bench: PoolBench, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_before(bench, queue)
    name = {Queue.INTAKE: "claim_source", Queue.OCR: "claim_pages", Queue.ASSEMBLE: "claim_assembly"}[queue]
    with monkeypatch.context() as lost:
        lost.setattr(bench.host.store.pool, name, without_answer(getattr(bench.host.store.pool, name)))
        assert turn_of(bench, queue) is Turn.PUT_OFF
    assert held(bench) == 0
    assert_it_is_read(bench)


def without_answer(claim: Callable[..., object]) -> Callable[..., None]:
    def claimed(**arguments: Any) -> None:
        assert claim(**arguments) is not None
        raise StoreUnreachable("the connection was lost")

    return claimed


@pytest.mark.parametrize(
    ("queue", "part", "method"),
    [
        (Queue.INTAKE, "pool", "source_has_reading"),
        (Queue.OCR, "pages", "finish_page"),
        (Queue.ASSEMBLE, "pool", "source_written"),
    ],
)
def test_work_that_ends_while_the_database_is_away_is_given_back_when_it_answers(
    bench: PoolBench,
    queue: Queue,
    part: str,
    method: str,
    postgres: PostgresServer,
    postgres_url: SecretStr,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work_before(bench, queue)
    store = getattr(bench.host.store, part)
    ending = getattr(store, method)

    def away(*arguments: Any, **named: Any) -> object:
        take_away(postgres, make_url(postgres_url.get_secret_value()).database or "")
        return ending(*arguments, **named)

    with monkeypatch.context() as outage:
        outage.setattr(store, method, away)
        assert turn_of(bench, queue) is Turn.PUT_OFF
    assert held(bench) == 0
    assert_it_is_read(bench)


def take_away(postgres: PostgresServer, database: str) -> None:
    """For a moment: whoever is connected loses the connection, and gets no other."""
    postgres.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    back = partial(postgres.execute, f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
    threading.Timer(AWAY_S, back).start()


@pytest.mark.parametrize(
    ("queue", "place"),
    [
        (Queue.INTAKE, "workers.cluster.intake_stage._inspected"),
        (Queue.OCR, "workers.cluster.ocr_stage._is_ours"),
        (Queue.ASSEMBLE, "workers.cluster.assemble_stage.document_outputs"),
    ],
)
def test_work_that_breaks_off_as_nobody_foresaw_is_given_up_after_a_few_tries(
    bench: PoolBench, queue: Queue, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a document needs more memory than a process may have."""
    work_before(bench, queue)

    def swell(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(place, swell)
    tries = 0
    while bench.host.store.pool.has_waiting(queue):
        tries += 1
        with pytest.raises(MemoryError):
            turn_of(bench, queue)
    pages = 2 if queue is Queue.OCR else 1
    assert tries == bench.settings.pool.max_losses * pages
    assert held(bench) == 0
    monkeypatch.undo()
    bench.tickets.sent.update(tuple(STAGES))
    bench.work()
    [summary] = bench.host.store.pool.submissions(limit=9)
    assert (summary.state, summary.failed_sources) == (SubmissionState.FINISHED, 1)
