"""A watch with the embedded executor, worker processes and a database, and engines that only count."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from pipeline.settings import Settings
from tests.fakes.engines import FakeEngines, FakeOcr
from tests.fakes.pages import tiff_of_widths
from tests.postgres import PostgresServer, running_postgres
from workers.events import IngestRequest
from workers.local_run import run_terms
from workers.watch import Watch, WatchRequest
from workers.watch_events import FileFailed, FileRead, Looked, Waiting, WatchEvent
from workers.watch_local import KEPT_S, LocalReader
from workers.watch_memory import StoreMemory


class Bench:
    """A watched folder. ``once`` watches until nothing is left to do."""

    def __init__(self, root: Path, database_url: SecretStr | None = None) -> None:
        self.root = root
        self.inputs, self.out = root / "in", root / "out"
        self.inputs.mkdir()
        self.settings = Settings(
            home=root / "home", database_url=database_url, executor={"jobs": 1, "page_timeout_s": 60}
        )
        self.events: list[WatchEvent] = []
        self.on_event: Callable[[WatchEvent], None] = lambda _event: None
        self.idle_s = 0.0
        self.reader = LocalReader(
            terms=run_terms(self.settings, None, None),
            request=IngestRequest(paths=(self.inputs,), out_dir=self.out),
            on_event=lambda _event: None,
            engine_builder=FakeEngines(ocr=FakeOcr(folder=root)),
            clock=lambda: self.idle_s,
        )

    def put(self, name: str, *widths_px: int) -> None:
        tiff_of_widths(self.inputs / name, widths_px)

    def watch(self, *, once: bool = True) -> None:
        memory = StoreMemory(
            self.settings.home, self.settings.database_url, folder=self.inputs, out_dir=self.out
        )
        request = WatchRequest(
            folder=self.inputs,
            out_dir=self.out,
            home=self.settings.home,
            poll_s=0.1,
            settle_s=0.0,
            grace_s=0.0,
            once=once,
        )
        with contextlib.closing(memory):
            Watch(request=request, reader=self.reader, memory=memory, on_event=self._hear).run()

    def told(self, kind: type[WatchEvent]) -> list[WatchEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def readers(self) -> list[str]:
        """The process that read each page."""
        return [line.split()[1] for line in (self.root / "calls").read_text(encoding="ascii").splitlines()]

    def _hear(self, event: WatchEvent) -> None:
        if not isinstance(event, Looked):
            self.events.append(event)
        self.on_event(event)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    with contextlib.closing(made.reader):
        yield made


def test_worker_processes_wait_for_the_next_batch_and_then_end(bench: Bench) -> None:
    bench.put("a.tif", 300, 301)
    bench.watch()
    bench.put("b.tif", 302)
    bench.watch()
    first = bench.readers()
    assert len(set(first)) == 1
    assert len(first) == 3
    bench.idle_s += KEPT_S + 1
    bench.watch()
    assert not psutil.pid_exists(int(first[0]))
    bench.put("c.tif", 303)
    bench.watch()
    assert len(set(bench.readers())) == 2
    rows = [json.loads(line) for line in (bench.out / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["source"] for row in rows] == ["a.tif", "a.tif", "b.tif", "c.tif"]


def test_a_worker_process_that_died_while_it_was_idle_costs_nothing(bench: Bench) -> None:
    bench.put("a.tif", 300)
    bench.watch()
    worker = psutil.Process(int(bench.readers()[0]))
    worker.send_signal(signal.SIGKILL)
    worker.wait(60)
    bench.put("b.tif", 301)
    bench.watch()
    assert [type(event) for event in bench.told(FileRead) + bench.told(FileFailed)] == [FileRead, FileRead]


def test_a_folder_of_the_same_bytes_is_read_once(bench: Bench) -> None:
    for name in ("a.tif", "b.tif"):
        bench.put(name, 300)
        bench.watch()
    assert len(bench.readers()) == 1
    assert (bench.out / "b.tif.md").exists()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Enough(Exception):
    pass


def test_a_database_that_stops_is_waited_for(tmp_path: Path, own_postgres: PostgresServer) -> None:
    bench = Bench(tmp_path, own_postgres.url("postgres"))
    bench.put("a.tif", 300)

    def stop_then_start(event: WatchEvent) -> None:
        match event:
            case FileRead(name="a.tif"):
                own_postgres.stop()
                bench.put("b.tif", 301)
            case Waiting():
                own_postgres.start()
            case FileRead(name="b.tif"):
                raise Enough

    bench.on_event = stop_then_start
    with contextlib.closing(bench.reader), pytest.raises(Enough):
        bench.watch(once=False)
    assert len(bench.told(Waiting)) == 1
    assert bench.told(FileFailed) == []
    rows = [json.loads(line) for line in (bench.out / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["source"] for row in rows] == ["a.tif", "b.tif"]
