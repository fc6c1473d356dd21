"""The executor's side of the VLM: one process that talks to the service, fed with the pages that wait for it."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final

import structlog

from models.document import Document
from models.errors import EngineUnavailable
from pipeline.store import Store
from workers.messages import (
    Hello,
    PageNotOurs,
    PageTranscribed,
    RunImpossible,
    TranscriberReply,
    TranscriberSetup,
    TranscribeTask,
)
from workers.pool import DYING_PATIENCE_S, interrupts_held_back, kill_group
from workers.transcriber import talk_to_vlm

MAX_DEATHS_IN_A_ROW: Final = 3
"""Of the process, without a page settled in between, before the run is given up."""

log = structlog.get_logger()

PageKey = tuple[int, int]
"""reading_id, page_number"""


class VlmDesk:
    """``add`` a page and hear of its end from ``hear``; a process that dies is replaced, and its pages begin anew
    with what was booked of them kept. Nothing is started before the first page."""

    def __init__(self, setup: TranscriberSetup, store: Store) -> None:
        self._setup = setup
        self._store = store
        self._tasks: dict[PageKey, TranscribeTask] = {}
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._owner: str | None = None
        self._deaths_in_a_row = 0
        self._context = multiprocessing.get_context("spawn")

    @property
    def connections(self) -> Sequence[Connection]:
        return () if self._connection is None else (self._connection,)

    def add(self, reading_id: int, document: Document, page_number: int, password: str | None) -> None:
        task = TranscribeTask(
            reading_id=reading_id, document=document, page_number=page_number, password=password
        )
        self._tasks[reading_id, page_number] = task
        if self._process is None:
            self._start()
        self._send(task)

    def hear(self) -> Iterator[PageTranscribed | PageNotOurs]:
        """What the process has said since. Raises what makes the run impossible."""
        while self._connection is not None and self._connection.poll():
            try:
                reply: TranscriberReply = self._connection.recv()
            except (EOFError, ConnectionResetError):
                self._replace()
                return
            match reply:
                case Hello():
                    self._owner = reply.owner
                case RunImpossible():
                    raise reply.error
                case PageTranscribed() | PageNotOurs():
                    self._deaths_in_a_row = 0
                    self._tasks.pop((reply.reading_id, reply.page_number), None)
                    yield reply

    def close(self) -> None:
        """End the process, give back its pages, and book the calls that it had under way."""
        if self._process is None:
            return
        kill_group(self._process)
        self._process.join()
        if self._connection is not None:
            self._hear_owner(self._connection)
            self._connection.close()
        self._process = self._connection = None
        if self._owner is not None:
            self._store.pages.release_leases(self._owner)
            self._owner = None
        self._store.transcriptions.close_abandoned()

    def _hear_owner(self, connection: Connection) -> None:
        """The name of a process that ended before anybody listened: it may hold pages all the same."""
        with contextlib.suppress(EOFError, OSError):
            while self._owner is None and connection.poll():
                reply: TranscriberReply = connection.recv()
                if isinstance(reply, Hello):
                    self._owner = reply.owner

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=talk_to_vlm, args=(theirs, self._setup), name="doctriage-vlm")
        with interrupts_held_back():
            process.start()
        theirs.close()
        self._process, self._connection = process, ours

    def _send(self, task: TranscribeTask) -> None:
        assert self._connection is not None
        with contextlib.suppress(
            BrokenPipeError, ConnectionResetError
        ):  # dead already: ``hear`` will find out
            self._connection.send(task)

    def _replace(self) -> None:
        assert self._process is not None
        self._process.join(DYING_PATIENCE_S)
        log.warning("vlm_process_lost", exit_code=self._process.exitcode, pages=len(self._tasks))
        self.close()
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MAX_DEATHS_IN_A_ROW:
            raise EngineUnavailable(
                "the process that talks to the VLM dies again and again; run `doctriage doctor`, or leave out "
                "--vlm-url"
            )
        time.sleep(0.1 * self._deaths_in_a_row)
        self._start()
        for task in self._tasks.values():
            self._send(task)
