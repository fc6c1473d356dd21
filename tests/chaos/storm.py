"""What goes wrong, and when: each disaster once, at a share of the pages done, and workers killed all along."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from tests.fakes.vlm_server import FakeVlm
from tests.pool_processes import PoolProcess
from tests.postgres import PostgresServer
from tests.redis_server import RedisBroker

BLOBS_BYTES: Final = 64 * 2**20


@dataclass(slots=True, eq=False)
class Storm:
    """``done`` tells the share of pages that are settled, from 0 to 1. What was done is in ``log``."""

    readers: list[PoolProcess]
    others: list[PoolProcess]
    broker: RedisBroker
    postgres: PostgresServer
    vlm: FakeVlm
    blobs: Path
    done: Callable[[], float]
    seed: int
    kill_every_s: float
    stopped_s: float
    log: list[str] = field(default_factory=list)

    @contextmanager
    def killing(self) -> Iterator[None]:
        """Workers are killed until the block ends."""
        calm = threading.Event()
        killer = threading.Thread(target=self._kill_workers, args=(calm,), daemon=True)
        killer.start()
        try:
            yield
        finally:
            calm.set()
            killer.join()

    def strike(self) -> None:
        """Every disaster, each at its time. Servers end with the thread that started them, so it is the caller's."""
        strikes: list[tuple[float, Callable[[], None]]] = [
            (0.05, self._stop_one),
            (0.15, self._lose_broker),
            (0.25, self._restart_database),
            (0.35, self._fill_disk),
            (0.45, self._take_vlm_down),
        ]
        for share, disaster in strikes:
            while self.done() < share:
                time.sleep(0.2)
            assert self.done() < 1, f"it was over before {disaster.__name__}"
            disaster()

    def _kill_workers(self, calm: threading.Event) -> None:
        """Now a child that reads, now a whole worker, now one of the VLM's or of intake's."""
        chance = random.Random(self.seed)
        while not calm.wait(self.kill_every_s * (0.5 + chance.random())):
            process = chance.choice([*self.readers, *self.readers, *self.others])
            children = process.workers()
            if children and chance.random() < 0.6:
                child = chance.choice(children)
                with suppress(psutil.NoSuchProcess):
                    child.kill()
                self._note(f"killed a child of {process.arguments}")
            else:
                process.kill()
                self._note(f"killed {process.arguments}")

    def _stop_one(self) -> None:
        """For longer than its leases last; then it goes on with what is not its own any more."""
        process = self.readers[0]
        pids = [process.pid, *(child.pid for child in process.children())]
        _send(pids, signal.SIGSTOP)
        self._note(f"stopped {process.arguments}")
        time.sleep(self.stopped_s)
        _send(pids, signal.SIGCONT)
        self._note("it goes on")

    def _lose_broker(self) -> None:
        self.broker.lose_everything()
        self.broker.stop()
        self._note("the broker is away, and has lost everything")
        time.sleep(3)
        self.broker.start()
        self._note("it is back")

    def _restart_database(self) -> None:
        self.postgres.stop()
        self._note("the database is away")
        time.sleep(3)
        self.postgres.start()
        self._note("it is back")

    def _fill_disk(self) -> None:
        ballast = self.blobs / "ballast"
        with suppress(OSError), ballast.open("wb") as stream:
            while True:
                stream.write(b"\0" * 65_536)
                stream.flush()
        self._note("the blob store is full")
        time.sleep(8)
        ballast.unlink()
        self._note("it has room")

    def _take_vlm_down(self) -> None:
        self.vlm.go_down()
        self._note("the VLM is down")
        time.sleep(10)
        self.vlm.come_up()
        self._note("it is up")

    def _note(self, what: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {self.done():4.0%} {what}")


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder that holds no more than ``BLOBS_BYTES``, a file system of its own. Needs the right to mount one."""
    folder.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={BLOBS_BYTES}", "tmpfs", folder],
        check=True,
        capture_output=True,
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)
