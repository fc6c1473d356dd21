"""A pool of worker processes that outlives any of them.

``concurrent.futures`` gives up its whole pool when one process dies; here a worker that crashes, is killed
for its memory or says nothing for too long costs its own task, and the next task gets a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from workers.cpus import ONE_THREAD
from workers.messages import Hello, Reply, Task, TaskEnded, WorkerSetup
from workers.task_limits import ENGINE_LOAD_S
from workers.worker_process import work

DYING_PATIENCE_S = 1.0
"""How long a worker that hung up may take to end by itself, so that its own exit code is seen."""


class LossReason(StrEnum):
    DIED = "died"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A worker is gone, with its task undone. ``exit_code`` is negative for a signal; None when it was killed
    for saying nothing. ``owner`` is the name its leases bear, None when it never got to claim one."""

    reason: LossReason
    exit_code: int | None
    owner: str | None


@dataclass(slots=True, eq=False)
class Worker:
    """``task`` is what it works on, None when idle; ``claimed`` are the pages of a reading task that it holds
    and has not settled, None before it said so. ``deadline_s`` is on the monotonic clock."""

    process: BaseProcess
    connection: Connection
    task: Task | None = None
    owner: str | None = None
    deadline_s: float | None = None
    silence_limit_s: float = 0.0
    claimed: list[int] | None = None
    pages_read: int = 0


class WorkerPool:
    """At most ``size`` processes, started when there is work for them."""

    def __init__(self, setup: WorkerSetup, *, size: int) -> None:
        self._setup = setup
        self._size = size
        self._workers: list[Worker] = []
        self._context = multiprocessing.get_context("spawn")

    @property
    def has_room(self) -> bool:
        """Whether ``send`` would find a process for a task."""
        return len(self._workers) < self._size or any(worker.task is None for worker in self._workers)

    @property
    def is_busy(self) -> bool:
        return any(worker.task is not None for worker in self._workers)

    def send(self, task: Task, *, silence_limit_s: float) -> None:
        """Give the task to an idle process, or a new one. It is killed when it says nothing for the limit; a
        new one has ``ENGINE_LOAD_S`` more until its first words on the task."""
        worker = next((worker for worker in self._workers if worker.task is None), None)
        start_s = 0.0 if worker is not None else ENGINE_LOAD_S
        worker = worker or self._start()
        worker.task = task
        worker.silence_limit_s = silence_limit_s
        worker.claimed = None
        worker.deadline_s = time.monotonic() + start_s + silence_limit_s
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # dead already: ``wait`` will say so
            worker.connection.send(task)

    def wait(
        self, timeout_s: float, *, also: Sequence[Connection] = ()
    ) -> Iterator[tuple[Worker, Task | None, Reply | Loss]]:
        """What the workers said, or that they are lost, after at most about ``timeout_s``; nothing, but at once,
        when there is something on the connections in ``also``."""
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in wait([*by_connection, *also], self._patience_s(timeout_s)):
            if isinstance(connection, Connection) and connection in by_connection:
                yield from self._heard(by_connection[connection])
        now_s = time.monotonic()
        for worker in [*self._workers]:
            if worker.deadline_s is not None and worker.deadline_s < now_s and not worker.connection.poll():
                task = worker.task
                self._kill(worker)
                yield worker, task, Loss(reason=LossReason.STALLED, exit_code=None, owner=worker.owner)

    def retire(self, worker: Worker) -> None:
        """End an idle worker; its place is free."""
        self._kill(worker)

    def kill(self) -> tuple[str, ...]:
        """End every worker now, whatever it does; the names of those that may hold leases. An idle one has
        nothing to lose: its results are committed, and its interpreter's own way out takes half a second."""
        owners = tuple(worker.owner for worker in self._workers if worker.owner is not None)
        for worker in [*self._workers]:
            self._kill(worker)
        return owners

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, self._setup), name="doctriage-worker")
        with environment(ONE_THREAD), interrupts_held_back():
            process.start()
        theirs.close()
        worker = Worker(process=process, connection=ours)
        self._workers.append(worker)
        return worker

    def _heard(self, worker: Worker) -> Iterator[tuple[Worker, Task | None, Reply | Loss]]:
        """Everything that lies ready on the worker's connection."""
        while worker in self._workers and worker.connection.poll():
            task = worker.task
            try:
                reply: Reply = worker.connection.recv()
            except (EOFError, ConnectionResetError):
                worker.process.join(DYING_PATIENCE_S)
                self._kill(worker)
                exit_code = worker.process.exitcode
                yield worker, task, Loss(reason=LossReason.DIED, exit_code=exit_code, owner=worker.owner)
                return
            self._note(worker, reply)
            yield worker, task, reply

    def _note(self, worker: Worker, reply: Reply) -> None:
        if isinstance(reply, Hello):
            worker.owner = reply.owner
        elif isinstance(reply, TaskEnded):
            worker.task = worker.deadline_s = None
        elif worker.task is not None and not isinstance(reply, Hello):
            worker.deadline_s = time.monotonic() + worker.silence_limit_s

    def _patience_s(self, timeout_s: float) -> float:
        deadlines = [worker.deadline_s for worker in self._workers if worker.deadline_s is not None]
        return max(0.0, min([timeout_s, *(deadline - time.monotonic() for deadline in deadlines)]))

    def _kill(self, worker: Worker) -> None:
        self._workers.remove(worker)
        kill_group(worker.process)
        worker.process.join()
        worker.connection.close()


def kill_group(process: BaseProcess) -> None:
    """Kill a worker and whatever programs it has running (it leads a process group of its own)."""
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """A process started inside inherits the mask, so Ctrl-C never reaches it, not even before it can say it
    ignores it. Ours comes through at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for a process that is started inside, where the user has not set them."""
    missing = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
