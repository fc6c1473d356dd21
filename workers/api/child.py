"""Processes that work for the server, and that a hostile document may bring down without harm."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, BinaryIO, Final

from models.errors import DoctriageError, PageTimedOut, TooManyAtOnce, WorkerCrashed
from pipeline.settings import Settings
from workers.pool import interrupts_held_back, kill_group
from workers.scratch import remove_abandoned_scratch

ORDERS_OF_ONE: Final = 500
"""Before a process is replaced by a fresh one."""

START_S: Final = 30.0
LOOKS_EVERY_S: Final = 0.2
"""Whether it is still wanted."""

RETRY_AFTER_S: Final = 5
END_S: Final = 1.0
"""What one that works may take to end when all are told to."""

Life = Callable[[Connection, Settings], None]


class NotWanted(Exception):
    """Whoever gave the order does not wait for it any more."""


class Children:
    """So many places for processes, each started with its first order and working on one at a time. ``life`` is all
    that one does: for each order that it receives it sends a value or a ``DoctriageError``. From any thread."""

    def __init__(self, life: Life, settings: Settings, *, name: str, count: int) -> None:
        self._closing = threading.Event()
        self._count = count
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(_Child(life, settings, name, self._closing))

    def answer(
        self,
        order: object,
        *,
        what: str,
        limit_s: float,
        file: BinaryIO | None = None,
        unwanted: threading.Event | None = None,
    ) -> Any:
        """What a process sends, which may write to ``file``. Raises what it sends as an error, ``TooManyAtOnce`` where
        none has time within ``limit_s``, ``PageTimedOut``, ``WorkerCrashed``, and ``NotWanted`` once ``unwanted`` is
        set; after these three the process is gone."""
        try:
            child = self._idle.get(timeout=limit_s)
        except queue.Empty as error:
            raise TooManyAtOnce(
                f"{what}: others are being worked on; try again in {RETRY_AFTER_S} s",
                retry_after_s=RETRY_AFTER_S,
            ) from error
        try:
            return child.answer(order, what, limit_s, file, unwanted or threading.Event())
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """Whatever they work on."""
        self._closing.set()
        for _ in range(self._count):
            with suppress(queue.Empty):
                self._idle.get(timeout=END_S).end()


class _Child:
    def __init__(self, life: Life, settings: Settings, name: str, closing: threading.Event) -> None:
        self._life = life
        self._settings = settings
        self._name = name
        self._closing = closing
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._answered = 0

    def answer(
        self, order: object, what: str, limit_s: float, file: BinaryIO | None, unwanted: threading.Event
    ) -> Any:
        process, connection = self._started()
        try:
            connection.send(order)
            if file is not None:
                send_handle(connection, file.fileno(), process.pid)
            answer = self._awaited(connection, what, limit_s, unwanted)
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self.end()
            raise WorkerCrashed(f"{what}: whoever worked on it died over it") from error
        except (PageTimedOut, NotWanted):
            self.end()
            raise
        self._answered += 1
        if self._answered >= ORDERS_OF_ONE:
            self.end()
        if isinstance(answer, DoctriageError):
            raise answer
        return answer

    def end(self) -> None:
        """With all that it runs, and with its temporary files."""
        if self._process is not None and self._connection is not None:
            kill_group(self._process)
            self._process.join()
            self._connection.close()
            remove_abandoned_scratch(self._settings.home)
        self._process = self._connection = None
        self._answered = 0

    def _awaited(
        self, connection: Connection, what: str, limit_s: float, unwanted: threading.Event
    ) -> object:
        deadline_s = time.monotonic() + limit_s
        while not connection.poll(min(LOOKS_EVERY_S, max(0.0, deadline_s - time.monotonic()))):
            if unwanted.is_set() or self._closing.is_set():
                raise NotWanted
            if time.monotonic() >= deadline_s:
                raise PageTimedOut(f"{what}: it takes more than {limit_s:g} s")
        return connection.recv()

    def _started(self) -> tuple[BaseProcess, Connection]:
        if self._process is None or self._connection is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(
                target=self._life, args=(theirs, self._settings), name=self._name, daemon=True
            )
            with interrupts_held_back():
                process.start()
            theirs.close()
            self._process, self._connection = process, ours
        return self._process, self._connection


def lent_file(connection: Connection) -> BinaryIO:
    """In the process: the file that came with the order received last."""
    return os.fdopen(recv_handle(connection), "w+b")
