"""The embedded pool's own processes: they share the work, are replaced when they are lost, and stop soon."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import text

from models.pool import Queue, SubmissionState
from pipeline.blobs import BlobStore
from pipeline.chargeback.price_book import load_price_book
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from tests.fakes.pages import tiff_of_widths
from tests.fakes.wordy_ocr import WordyEngines, WordyOcr
from tests.integration.vlm_runs import FIRST_WIDTH_PX, answer_on, fake_vlm
from workers.cluster.deployment import load_deployment
from workers.cluster.submitting import SubmissionOrder, Submitter
from workers.cluster.wishes import Wishes
from workers.local_pool import pool as pool_module
from workers.local_pool.pool import LocalPool
from workers.local_pool.roles import Role
from workers.logs import set_up_logs
from workers.messages import EngineBuilder
from workers.owner import is_alive
from workers.sources import find_sources
from workers.task_limits import TaskLimit, task_limits

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Shop:
    """``folder`` has the documents, ``calls`` what the engine was asked to read: width and process number."""

    settings: Settings
    store: Store
    pool: LocalPool
    folder: Path

    def submit(self, *documents: list[int]) -> int:
        for number, widths in enumerate(documents):
            tiff_of_widths(self.folder / f"{number}.tif", widths)
        submitter = Submitter(
            settings=self.settings,
            pool=self.store.pool,
            uploads=self.store.uploads,
            blobs=BlobStore(self.settings.home, self.settings.blobs),
            tickets=self.pool.tickets,
            on_busy=_fail,
        )
        order = SubmissionOrder(cost_centre="harbour", submitter="ada", priority=5, wishes=Wishes())
        submission_id = submitter.open(order)
        submitter.send(submission_id, find_sources([self.folder], left_out=()))
        return submission_id

    def await_end(self, submission_id: int) -> None:
        self.wait_until(lambda: self.store.pool.progress(submission_id).state is SubmissionState.FINISHED)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline_s
            time.sleep(0.05)

    def calls(self) -> list[tuple[int, int]]:
        lines = (self.settings.home / "calls").read_text("ascii").splitlines()
        return [(int(width), int(pid)) for width, pid in (line.split() for line in lines)]

    def counted(self, query: str) -> Counter[Any]:
        with self.store.database.read() as session:
            return Counter({row[0]: row[1] for row in session.execute(text(query))})

    def pages_by_state(self) -> Counter[str]:
        return self.counted("SELECT state, count(*) FROM pages GROUP BY state")

    def outcomes(self) -> Counter[str]:
        return self.counted("SELECT outcome, count(*) FROM ledger GROUP BY outcome")


def _fail(error: Exception) -> None:
    raise error


@contextmanager
def shop(
    tmp_path: Path,
    *,
    faults: Mapping[int, Fault] | None = None,
    read_s: float = 0.0,
    engines: EngineBuilder | None = None,
    **settings: Any,
) -> Iterator[Shop]:
    home, folder = tmp_path / "home", tmp_path / "in"
    folder.mkdir()
    chosen = Settings(home=home, **settings)
    with closing(open_store(home, chosen.database_url)) as store:
        engines = engines or FakeEngines(ocr=FakeOcr(folder=home, faults=faults or {}, read_s=read_s))
        deployment = replace(load_deployment(chosen), build_engines=engines)
        pool = LocalPool(deployment)
        pool.start()
        try:
            yield Shop(deployment.settings, store, pool, folder)
        finally:
            pool.stop()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_readers_share_the_work_and_read_every_page_once(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    url = None if database == "sqlite" else request.getfixturevalue("postgres_url")
    documents = [[400 + 10 * number + page for page in range(4)] for number in range(6)]
    with shop(tmp_path, read_s=0.2, executor={"jobs": 3}, database_url=url) as opened:
        opened.wait_until(lambda: opened.pool.at_work(Role.READER) == 3)
        submission_id = opened.submit(*documents)
        opened.await_end(submission_id)
        calls = opened.calls()
        assert sorted(width for width, _ in calls) == sorted(chain.from_iterable(documents))
        readers = {pid for _, pid in calls}
        assert len(readers) == 3
        assert {psutil.Process(pid).nice() for pid in readers} == {min(19, psutil.Process().nice() + 10)}
        assert opened.outcomes() == {"read": 24}
        assert opened.counted("SELECT 'lost', sum(losses) FROM pages") == {"lost": 0}
        results = opened.counted(
            "SELECT state, count(*) FROM sources WHERE error_code IS NULL GROUP BY state"
        )
        assert results == {"settled": 6}


def test_a_reader_that_dies_is_replaced_and_its_page_read_again(tmp_path: Path) -> None:
    with shop(tmp_path, faults={402: Fault.CRASH_ONCE}, executor={"jobs": 1}) as opened:
        submission_id = opened.submit([400, 401, 402, 403])
        opened.await_end(submission_id)
        assert opened.pages_by_state() == {"done": 4}
        assert opened.outcomes() == {"read": 4, "worker_lost": 1}
        assert len({pid for _, pid in opened.calls()}) == 2


def test_a_reader_whose_page_takes_too_long_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a real task begins with five minutes for loading engines."""

    def shorter(settings: Settings) -> Mapping[Queue, TaskLimit]:
        return {queue: replace(limit, longest_s=3.0) for queue, limit in task_limits(settings).items()}

    monkeypatch.setattr(pool_module, "task_limits", shorter)
    with shop(tmp_path, faults={401: Fault.STALL}, executor={"jobs": 1}, pool={"max_losses": 1}) as opened:
        submission_id = opened.submit([400, 401, 402])
        opened.await_end(submission_id)
        assert opened.pages_by_state() == {"done": 2, "failed": 1}
        assert opened.counted("SELECT error_code, count(*) FROM pages GROUP BY error_code") == {
            None: 2,
            "worker_lost": 1,
        }


def test_a_stop_gives_back_what_is_not_read(tmp_path: Path) -> None:
    widths = list(range(400, 440))
    with shop(tmp_path, read_s=0.5, executor={"jobs": 2}, pool={"pages_per_claim": 8}) as opened:
        opened.submit(widths)
        opened.wait_until(lambda: opened.pages_by_state()["done"] >= 2)
        opened.pool.stop()
        states = opened.pages_by_state()
        assert states.keys() == {"done", "pending"}
        assert opened.outcomes() == {"read": states["done"]}
        assert opened.counted("SELECT 'attempts', sum(attempts) FROM pages") == {"attempts": states["done"]}


def test_a_stop_does_not_wait_for_a_page_that_hangs(tmp_path: Path) -> None:
    with shop(tmp_path, faults={400: Fault.STALL}, executor={"jobs": 1}) as opened:
        opened.submit([400, 401])
        opened.wait_until(lambda: opened.pages_by_state()["running"] == 1 and bool(opened.calls()))
        opened.pool.stop()
        assert opened.pages_by_state() == {"pending": 2}
        assert opened.outcomes() == {}


def test_a_reader_that_has_read_enough_is_replaced(tmp_path: Path) -> None:
    executor, pool = {"jobs": 1, "max_pages_per_worker": 2}, {"pages_per_claim": 1}
    with shop(tmp_path, executor=executor, pool=pool) as opened:
        submission_id = opened.submit([400, 401, 402, 403, 404, 405])
        opened.await_end(submission_id)
        assert len({pid for _, pid in opened.calls()}) == 3
        assert opened.outcomes() == {"read": 6}


def vlm_shop(tmp_path: Path, url: str) -> AbstractContextManager[Shop]:
    return shop(
        tmp_path,
        engines=WordyEngines(ocr=WordyOcr(folder=tmp_path)),
        route="vlm",
        executor={"jobs": 1},
        vlm={"url": url, "concurrency": 2, "timeout_s": 60, "wait_s": 20},
    )


def test_pages_that_need_the_vlm_get_it_many_at_a_time(tmp_path: Path) -> None:
    with (
        fake_vlm(answer=answer_on(), seconds_a_request=0.2) as fake,
        vlm_shop(tmp_path, fake.base_url) as opened,
    ):
        submission_id = opened.submit([FIRST_WIDTH_PX + page for page in range(6)])
        opened.await_end(submission_id)
        assert opened.counted("SELECT route, count(*) FROM pages GROUP BY route") == {"vlm": 6}
        kinds = opened.counted("SELECT kind, count(*) FROM ledger GROUP BY kind")
        assert kinds == {"cpu_page": 6, "vlm_call": 6}


def test_a_stop_does_not_wait_for_a_call_and_the_call_is_booked(tmp_path: Path) -> None:
    with (
        fake_vlm(answer=answer_on(), seconds_a_request=50.0) as fake,
        vlm_shop(tmp_path, fake.base_url) as opened,
    ):
        opened.submit([FIRST_WIDTH_PX, FIRST_WIDTH_PX + 1])
        opened.wait_until(lambda: opened.counted("SELECT 'open', count(*) FROM vlm_attempts")["open"] == 2)
        opened.pool.stop()
        assert opened.pages_by_state() == {"awaiting_vlm": 2}
        opened.store.pool.reclaim(is_alive, max_losses=5, price_book=load_price_book())
        verdicts = opened.counted("SELECT verdict, count(*) FROM vlm_attempts GROUP BY verdict")
        assert verdicts == {"abandoned": 2}
        assert opened.counted("SELECT kind, count(*) FROM ledger GROUP BY kind")["vlm_call"] == 2


def test_a_pool_that_nobody_keeps_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(pool_module, "wait", fail)
    set_up_logs("error")  # an earlier test's standard error is closed
    open_store(tmp_path).close()
    failed = threading.Event()
    deployment = load_deployment(Settings(home=tmp_path, executor={"jobs": 1}))
    pool = LocalPool(deployment, on_failure=failed.set)
    pool.start()
    assert failed.wait(PATIENCE_S)
    pool.stop()
    assert pool.has_failed
    assert multiprocessing.active_children() == []
