"""A real worker of Celery's, in a process of its own, with tasks that leave traces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from models.pool import Queue
from pipeline.settings import load_settings
from tests.server_parts import Broker
from workers.celery_app import celery_app
from workers.celery_tickets import CeleryTickets

PATIENCE_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedWorker:
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    @property
    def begun(self) -> list[int]:
        """The processes that have begun a task, one entry a task."""
        return self._traces("begun")

    @property
    def ended(self) -> list[int]:
        return self._traces("ended")

    @property
    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def await_begun(self, count: int) -> None:
        self.wait_until(lambda: len(self.begun) >= count)

    def await_accepted(self, count: int) -> None:
        """Until the worker's main process knows that tasks were begun. When it is told to stop before it has heard so
        from its child, the task ends all the same, but Celery leaves its ticket to be given away again."""
        self.await_word("Task accepted: ", times=count)

    def await_ended(self, count: int) -> None:
        self.wait_until(lambda: len(self.ended) >= count)

    def await_word(self, word: str, *, times: int = 1) -> None:
        """In the log, ``times`` times in all."""
        self.wait_until(lambda: self.log.count(word) >= times)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        wait_until(is_so, lambda: self.log)

    def _traces(self, kind: str) -> list[int]:
        return [int(path.name.split(".")[1]) for path in sorted(self.folder.glob(f"{kind}.*"))]


def wait_until(is_so: Callable[[], bool], told: Callable[[], str] = str) -> None:
    """Fails with what is ``told`` where it does not come to be."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, told()
        time.sleep(0.05)


@contextmanager
def traced_worker(
    broker: Broker, folder: Path, *, queues: str = "ocr", concurrency: int = 1
) -> Iterator[TracedWorker]:
    """Ready for tickets, and killed in the end with whatever it has started."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "DOCTRIAGE_POOL__BROKER_URL": broker.url.get_secret_value()}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.run_celery_worker", folder, queues, str(concurrency)],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    worker = TracedWorker(folder=folder, process=process)
    try:
        worker.await_word(" ready.")
        yield worker
    finally:
        _kill_session(process)


def tickets_over(broker: Broker) -> CeleryTickets:
    return CeleryTickets(celery_app(load_settings({"pool": {"broker_url": broker.url}})))


def drained(tickets: CeleryTickets, queue: Queue) -> bool:
    return tickets.depth(queue) == 0


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    for one in psutil.process_iter():
        try:
            if os.getsid(one.pid) == process.pid:
                one.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    process.wait()
