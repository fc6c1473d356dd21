"""Pages that need the VLM, in the pool: many threads, several processes' worth of hosts, one service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from models.errors import StoreUnavailable
from models.pool import Queue
from models.tables import LedgerKind, LedgerRow, VlmAttemptRow
from pipeline.store import Store
from tests.fakes.pages import page_image, write_tiff
from tests.fakes.vlm_server import FakeVlm
from tests.fakes.wordy_ocr import WordyEngines, WordyOcr
from tests.integration.pool.bench import PoolBench, pool_bench
from tests.integration.vlm_runs import FIRST_WIDTH_PX, answer_on, ends_of, fake_vlm
from workers import vlm_pages
from workers.cluster.vlm_host import VlmHost
from workers.messages import TranscribeTask
from workers.vlm_pages import VlmPages

PAGES = 8
CAPACITY = 2


@dataclass(frozen=True, slots=True)
class Station:
    bench: PoolBench
    hosts: tuple[VlmHost, ...]

    def transcribe(self, pages: int, *, at_once: int) -> Counter[Queue]:
        with ThreadPoolExecutor(at_once) as threads:
            ends = threads.map(lambda number: self.hosts[number % len(self.hosts)].transcribe(), range(pages))
            return sum(ends, Counter())


@contextmanager
def station(
    tmp_path: Path,
    url: SecretStr,
    fake: FakeVlm,
    *,
    hosts: int = 1,
    pool: Mapping[str, Any] = MappingProxyType({}),
    **vlm: Any,
) -> Iterator[Station]:
    chosen = {
        "route": "vlm",
        "pool": pool,
        "vlm": {"url": fake.base_url, "concurrency": CAPACITY, "timeout_s": 30, "wait_s": 20, **vlm},
    }
    builder = WordyEngines(ocr=WordyOcr(folder=tmp_path))
    with ExitStack() as stack:
        benches = [
            stack.enter_context(pool_bench(tmp_path / "pool", url, build_engines=builder, **chosen))
            for _ in range(hosts)
        ]
        opened = [VlmHost(bench.host) for bench in benches]
        for host in opened:
            stack.callback(host.close)
        yield Station(benches[0], tuple(opened))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    widths = range(FIRST_WIDTH_PX, FIRST_WIDTH_PX + PAGES)
    write_tiff(made / "a.tif", [page_image(f"page of width {width}", width_px=width) for width in widths])
    return made


def test_every_page_is_transcribed_once_and_every_call_booked(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    with (
        fake_vlm(answer=answer_on(), seconds_a_request=0.2) as fake,
        station(tmp_path, postgres_url, fake) as one,
    ):
        submission_id = one.bench.submit(folder)
        one.bench.work()
        assert one.bench.tickets.sent[Queue.VLM] == PAGES
        follow = one.transcribe(PAGES + 3, at_once=PAGES)
        assert follow[Queue.ASSEMBLE] == 1
        one.bench.tickets.sent.update({Queue.ASSEMBLE: 1})
        one.bench.work()
        pages = one.bench.pages(one.bench.sources(submission_id)["a.tif"])
        assert set(ends_of(pages).values()) == {"vlm"}
        with one.bench.host.store.database.read() as session:
            billed = session.execute(
                select(func.count(), func.sum(LedgerRow.prompt_tokens)).where(
                    LedgerRow.kind == LedgerKind.VLM_CALL
                )
            ).one()
        seen = [request.billed.prompt_tokens for request in fake.seen if request.billed is not None]
        assert tuple(billed) == (PAGES, sum(seen))


def test_several_workers_of_one_service_share_its_places(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    with (
        fake_vlm(answer=answer_on(), seconds_a_request=0.3) as fake,
        station(tmp_path, postgres_url, fake, hosts=3) as three,
    ):
        submission_id = three.bench.submit(folder)
        three.bench.work()
        three.transcribe(PAGES, at_once=PAGES)
        assert fake.peak_in_flight <= CAPACITY
        assert three.bench.host.store.pool.progress(submission_id).settled_pages == PAGES


def test_a_page_that_the_machine_fails_goes_back_though_its_worker_lives(
    tmp_path: Path, folder: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("the blob store does not answer")

    with fake_vlm() as fake, station(tmp_path, postgres_url, fake) as one:
        one.bench.submit(folder)
        one.bench.work()
        monkeypatch.setattr(VlmPages, "bring_to_end", fail)
        with pytest.raises(StoreUnavailable):
            one.hosts[0].transcribe()
        backlog = one.bench.host.store.pool.backlog().queues[Queue.VLM]
        assert (backlog.waiting, backlog.held, backlog.losses) == (PAGES, 0, 0)


def test_a_page_for_which_the_service_is_away_keeps_the_cpus_text_and_says_why(
    tmp_path: Path, folder: Path, postgres_url: SecretStr
) -> None:
    fake = fake_vlm()
    with fake:
        pass
    with station(tmp_path, postgres_url, fake, wait_s=1) as one:
        submission_id = one.bench.submit(folder)
        one.bench.work()
        follow = one.transcribe(PAGES, at_once=PAGES)
        one.bench.tickets.sent.update(follow)
        one.bench.work()
        pages = one.bench.pages(one.bench.sources(submission_id)["a.tif"])
        assert set(ends_of(pages).values()) == {"vlm_unavailable"}
        with one.bench.host.store.database.read() as session:
            open_calls = select(func.count()).where(VlmAttemptRow.verdict.is_(None))
            assert session.scalar(open_calls) == 0


def test_a_page_that_nobody_foresaw_is_given_up_after_a_few_tries(
    tmp_path: Path, folder: Path, postgres_url: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs its own text and no other's, and each answer that it had is booked."""
    settle = vlm_pages.settle_page

    def fail_at_the_first(store: Store, task: TranscribeTask, *rest: Any, **more: Any) -> Any:
        if task.page_number == 1:
            raise RuntimeError("nobody foresaw this")
        return settle(store, task, *rest, **more)

    monkeypatch.setattr(vlm_pages, "settle_page", fail_at_the_first)
    with (
        fake_vlm(answer=answer_on()) as fake,
        station(tmp_path, postgres_url, fake, pool={"max_losses": 3}) as one,
    ):
        submission_id = one.bench.submit(folder)
        one.bench.work()
        tries = 0
        while one.bench.host.store.pool.backlog().queues[Queue.VLM].waiting:
            tries += 1
            assert tries < 3 + PAGES
            with suppress(RuntimeError):
                one.transcribe(1, at_once=1)
        one.bench.tickets.sent.update({Queue.ASSEMBLE: 1})
        one.bench.work()
        first, *others = one.bench.pages(one.bench.sources(submission_id)["a.tif"])
        assert (first["route"], first["degraded"]["code"]) == ("ocr_degraded", "worker_lost")
        assert {page["route"] for page in others} == {"vlm"}
        with one.bench.host.store.database.read() as session:
            booked = session.scalars(select(LedgerRow).where(LedgerRow.kind == LedgerKind.VLM_CALL)).all()
        assert len(booked) == len(fake.seen)
