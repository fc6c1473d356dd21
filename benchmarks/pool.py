"""What does it cost to read with the pool of workers, and do two processes read twice as much as one?
``python -m benchmarks.pool`` reads the same scanned pages with the embedded executor and with a pool on this machine,
by one process and by two. Some minutes; the machine should do nothing else.

A pool is a broker, PostgreSQL, ``doctriage beat``, a worker for intake and assembling, one for OCR with so many
processes, and ``doctriage ingest`` that follows, each a process as it is in use. Every run has empty databases and
folders. A pool has read some pages before, as it runs for weeks; with both, the first page ends the start-up and is not
counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.pages import write_scanned_pdf
from pipeline.settings import ExecutorSettings, Settings
from tests.pool_processes import PoolProcesses, pool_processes
from tests.postgres import PostgresServer, running_postgres
from tests.rabbitmq_server import running_rabbitmq
from tests.redis_server import running_redis
from tests.server_parts import Broker
from workers.events import Event, IngestRequest, PageFinished
from workers.local import ingest

PAGES_EACH: Final = 6
WARM_UP_PAGES: Final = 6
JOB_COUNTS: Final = (1, 2)
BROKERS: Final = ("redis", "rabbitmq")
MOST_OVERHEAD: Final = 0.08
LEAST_SCALING: Final = 1.8

FIRST_AND_LAST: Final = """
SELECT min(pages.settled_at_s), max(pages.settled_at_s), count(*)
FROM pages JOIN readings USING (reading_id) WHERE readings.submission_id = 2 AND pages.state = 'done'
"""
WORKED: Final = "SELECT active_time FROM pg_stat_database WHERE datname = current_database()"
"""Milliseconds in which some connection was executing a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``start_s`` is the time to the first finished page, ``steady_s`` from there to the last one. ``cpu_s`` is of
    doctriage's own processes and what they start, from the beginning to the end of ``doctriage ingest``."""

    pages: int
    start_s: float
    steady_s: float
    cpu_s: float
    database_ms: float | None = None

    @property
    def pages_per_min(self) -> float:
        return 60 * (self.pages - 1) / self.steady_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All rounds of one contestant."""

    runs: tuple[Run, ...]

    def mean(self, measured: Callable[[Run], float]) -> float:
        return statistics.fmean(measured(run) for run in self.runs)

    @property
    def pages_per_min(self) -> float:
        return self.mean(lambda run: run.pages_per_min)


Contestant = tuple[str, int]
"""``embedded`` or ``pool``, and the number of processes that read."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; {options.pages} scanned pages, "
        f"{options.broker}"
    )
    with (
        TemporaryDirectory() as folder,
        broker_server(options.broker) as new_broker,
        running_postgres() as postgres,
    ):
        papers = Path(folder, "papers")
        write_documents(papers, options.pages)
        write_documents(Path(folder, "warm-up"), WARM_UP_PAGES)
        bench = Bench(Path(folder), new_broker, postgres, pages=options.pages)
        results = bench.measure(options.rounds)
    print_tables(results, console)
    console.print(f"load {os.getloadavg()[0]:.1f} at the end")


def write_documents(folder: Path, pages: int) -> None:
    """Scanned PDFs, no two with the same bytes."""
    folder.mkdir()
    for first in range(0, pages, PAGES_EACH):
        write_scanned_pdf(folder / f"scan_{first + 1:03}.pdf", min(PAGES_EACH, pages - first))


class Bench:
    """``folder`` holds the documents to be read, in ``papers``, and those to be read before, in ``warm-up``."""

    def __init__(
        self, folder: Path, new_broker: Callable[[], Broker], postgres: PostgresServer, *, pages: int
    ) -> None:
        self._folder = folder
        self._new_broker = new_broker
        self._postgres = postgres
        self._pages = pages

    def measure(self, rounds: int) -> dict[Contestant, Runs]:
        """Every other round backwards, so that drift of the machine cancels."""
        contestants = [(name, jobs) for jobs in JOB_COUNTS for name in ("embedded", "pool")]
        runs: dict[Contestant, list[Run]] = {contestant: [] for contestant in contestants}
        for number in range(rounds):
            for name, jobs in contestants if number % 2 == 0 else reversed(contestants):
                runs[name, jobs].append(self._embedded(jobs) if name == "embedded" else self._pool(jobs))
        return {contestant: Runs(runs=tuple(its)) for contestant, its in runs.items()}

    def _embedded(self, jobs: int) -> Run:
        finished_s: list[float] = []

        def note(event: Event) -> None:
            if isinstance(event, PageFinished):
                finished_s.append(time.time())

        with TemporaryDirectory() as folder:
            settings = Settings(home=Path(folder, "home"), executor=ExecutorSettings(jobs=jobs))
            request = IngestRequest(paths=(self._folder / "papers",), out_dir=Path(folder, "out"))
            own = psutil.Process()
            before_s, started_s = _cpu_s([own]), time.time()
            ingest(request, settings=settings, on_event=note)
            return self._run(
                started_s, finished_s[0], finished_s[-1], len(finished_s), _cpu_s([own]) - before_s
            )

    def _pool(self, jobs: int) -> Run:
        with (
            TemporaryDirectory() as folder,
            self._postgres.database() as database,
            pool_processes(Path(folder, "logs"), self._environment(Path(folder), database)) as pool,
        ):
            pool.beat()
            pool.worker("intake,assemble", 1)
            pool.worker("ocr", jobs)
            worked_ms = self._worked_ms(database)
            self._ingest(pool, "warm-up", Path(folder, "out"))
            before_s, started_s = _pool_cpu_s(pool), time.time()
            self._ingest(pool, "papers", Path(folder, "out"))
            cpu_s = _pool_cpu_s(pool) - before_s
            [(first_s, last_s, count)] = self._postgres.execute(FIRST_AND_LAST, database)
            pool.stop()
            database_ms = (self._worked_ms(database) - worked_ms) / (self._pages + WARM_UP_PAGES)
            return self._run(
                started_s, float(str(first_s)), float(str(last_s)), int(str(count)), cpu_s, database_ms
            )

    def _environment(self, folder: Path, database: str) -> dict[str, str]:
        (folder / "blobs").mkdir()
        return {
            "DOCTRIAGE_DATABASE_URL": self._postgres.url(database).get_secret_value(),
            "DOCTRIAGE_POOL__BROKER_URL": self._new_broker().url.get_secret_value(),
            "DOCTRIAGE_BLOBS__URL": (folder / "blobs").as_uri(),
            "DOCTRIAGE_HOME": str(folder / "home"),
        }

    def _ingest(self, pool: PoolProcesses, name: str, out: Path) -> None:
        done = pool.doctriage("ingest", self._folder / name, "--executor", "celery", "--out", out)
        if done.returncode:
            raise RuntimeError(f"the pool did not read everything; the measurement is void: {done.stderr}")

    def _worked_ms(self, database: str) -> float:
        [(worked_ms,)] = self._postgres.execute(WORKED, database)
        return float(str(worked_ms))

    def _run(
        self,
        started_s: float,
        first_s: float,
        last_s: float,
        count: int,
        cpu_s: float,
        database_ms: float | None = None,
    ) -> Run:
        if count != self._pages:
            raise RuntimeError(f"{count} of {self._pages} pages finished; the measurement is void")
        return Run(
            pages=count,
            start_s=first_s - started_s,
            steady_s=last_s - first_s,
            cpu_s=cpu_s,
            database_ms=database_ms,
        )


def print_tables(results: dict[Contestant, Runs], console: Console) -> None:
    speed = Table(title="Pages a minute, from the first page to the last")
    for heading in ("processes", "embedded", "pool", "overhead", "first page after", "PostgreSQL, ms a page"):
        speed.add_column(heading, justify="right")
    cost = Table(title="CPU seconds a page, with start and end")
    for heading in ("processes", "embedded", "pool"):
        cost.add_column(heading, justify="right")
    for jobs in JOB_COUNTS:
        embedded, pool = results["embedded", jobs], results["pool", jobs]
        speed.add_row(
            str(jobs),
            f"{embedded.pages_per_min:.1f}",
            f"{pool.pages_per_min:.1f}",
            f"{100 * overhead(embedded, pool):+.1f} %",
            f"{embedded.mean(lambda run: run.start_s):.1f} s; {pool.mean(lambda run: run.start_s):.1f} s",
            f"{pool.mean(lambda run: run.database_ms or 0.0):.1f}",
        )
        cost.add_row(
            str(jobs), *(f"{runs.mean(lambda run: run.cpu_s / run.pages):.2f}" for runs in (embedded, pool))
        )
    console.print(speed)
    console.print(cost)
    worst = max(overhead(results["embedded", jobs], results["pool", jobs]) for jobs in JOB_COUNTS)
    console.print(
        f"overhead {100 * worst:.1f} % (at most {100 * MOST_OVERHEAD:g} %: {_so(worst <= MOST_OVERHEAD)})"
    )
    for name in ("pool", "embedded"):
        scaling = results[name, 2].pages_per_min / results[name, 1].pages_per_min
        aim = f" (at least {LEAST_SCALING:g}: {_so(scaling >= LEAST_SCALING)})" if name == "pool" else ""
        console.print(f"{name}: two processes against one: {scaling:.2f}{aim}")


def overhead(embedded: Runs, pool: Runs) -> float:
    """How much longer a page takes with the pool than with as many processes of the embedded executor."""
    return embedded.pages_per_min / pool.pages_per_min - 1


def _so(is_so: bool) -> str:
    return "yes" if is_so else "no"


@contextmanager
def broker_server(name: str) -> Iterator[Callable[[], Broker]]:
    """What makes an empty broker."""
    with running_redis() if name == "redis" else running_rabbitmq() as server:
        yield server.broker


def _pool_cpu_s(pool: PoolProcesses) -> float:
    """Of the pool's processes, and of this one's children that have ended."""
    own = psutil.Process().cpu_times()
    return own.children_user + own.children_system + _cpu_s(psutil.Process(one.pid) for one in pool.running)


def _cpu_s(processes: Sequence[psutil.Process] | Iterator[psutil.Process]) -> float:
    """User and system seconds of the processes, of what they have started, and of what has ended of it."""
    total_s = 0.0
    for process in processes:
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            total_s += times.user + times.system + times.children_user + times.children_system
    return total_s


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description=__doc__)
    parser.add_argument("--pages", type=int, default=48, help="a run (default: 48)")
    parser.add_argument("--rounds", type=int, default=2, help="interleaved rounds (default: 2)")
    parser.add_argument("--broker", choices=BROKERS, default=BROKERS[0])
    options = parser.parse_args(arguments)
    if options.pages < 2 or options.rounds < 1:
        parser.error("--pages: at least 2; --rounds: at least 1")
    return options


if __name__ == "__main__":
    main()
