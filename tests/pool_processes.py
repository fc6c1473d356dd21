"""A pool's processes as an operator starts them, worker and beat, brought back when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import psutil

DOCTRIAGE: Final = Path(sys.executable).with_name("doctriage")
START_LIMIT_S: Final = 120
STOP_LIMIT_S: Final = 60


@dataclass(slots=True, eq=False)
class PoolProcess:
    """One command, begun again whenever it ends, until ``stop``. What it writes is in ``log``."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _keeper: threading.Thread | None = None

    def start(self) -> Self:
        self._begin()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def workers(self) -> list[psutil.Process]:
        """Celery's own child processes, without the programs that they run."""
        with suppress(psutil.NoSuchProcess):
            return [child for child in psutil.Process(self.pid).children() if child.name() == "doctriage"]
        return []

    def send(self, number: signal.Signals) -> None:
        """To nobody where it has ended."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """The process and all that it has started, as when a machine is lost."""
        children = self.children()
        self.send(signal.SIGKILL)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()

    def stop(self) -> int:
        """Warm; the exit code."""
        self.tell_to_stop()
        return self.await_stop()

    def tell_to_stop(self) -> None:
        self._stopping.set()
        self.send(signal.SIGTERM)

    def await_stop(self) -> int:
        """The exit code; it is killed where it does not end by itself."""
        assert self._process is not None
        try:
            return self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def interrupt(self) -> None:
        """As Ctrl-C in its terminal does; it is not begun again."""
        self._stopping.set()
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)

    def await_end(self) -> int:
        """The exit code of a process that was told to stop."""
        assert self._process is not None
        return self._process.wait(STOP_LIMIT_S)

    def await_log(self, text: str, *, limit_s: float = START_LIMIT_S) -> None:
        deadline_s = time.monotonic() + limit_s
        while text not in self.log.read_text(errors="replace"):
            assert time.monotonic() < deadline_s, self.log.read_text(errors="replace")[-5_000:]
            time.sleep(0.1)

    def _begin(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", DOCTRIAGE, *self.arguments],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def _keep(self) -> None:
        """As systemd would, after a moment."""
        while True:
            assert self._process is not None
            self._process.wait()
            if self._stopping.wait(0.5):
                return
            self._begin()


@dataclass(slots=True, eq=False)
class PoolProcesses:
    """``environment`` holds the settings of all of them."""

    folder: Path
    environment: Mapping[str, str]
    running: list[PoolProcess] = field(default_factory=list)

    def worker(self, queues: str, concurrency: int, *arguments: str, **environment: str) -> PoolProcess:
        command = ("worker", "--queues", queues, "--concurrency", str(concurrency), *arguments)
        started = self.run(*command, **environment)
        started.await_log("ready")
        return started

    def beat(self, **environment: str) -> PoolProcess:
        return self.run("beat", **environment)

    def run(self, *arguments: str, **environment: str) -> PoolProcess:
        log = self.folder / f"{len(self.running)}-{arguments[0]}.log"
        log.touch()
        process = PoolProcess(arguments, {**self.environment, **environment}, log).start()
        self.running.append(process)
        return process

    def doctriage(self, *arguments: str | Path, limit_s: float = 600) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        return subprocess.run(
            [DOCTRIAGE, *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )

    def stop(self) -> None:
        """All at once, as each takes its seconds to end."""
        for process in self.running:
            process.tell_to_stop()
        for process in self.running:
            process.await_stop()


@contextmanager
def pool_processes(folder: Path, environment: Mapping[str, str]) -> Iterator[PoolProcesses]:
    folder.mkdir(parents=True, exist_ok=True)
    pool = PoolProcesses(folder, environment)
    try:
        yield pool
    finally:
        pool.stop()


@contextmanager
def begun_command(
    *arguments: str | Path, environment: Mapping[str, str], stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """In the background, and killed in the end where it still runs."""
    with subprocess.Popen(
        [DOCTRIAGE, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def logs_of(processes: Sequence[PoolProcess], *, most: int = 3_000) -> str:
    """The ends of their logs, for a failure's message."""
    return "\n".join(
        f"== {one.arguments}\n{one.log.read_text(errors='replace')[-most:]}" for one in processes
    )
