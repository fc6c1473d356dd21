"""The executor's side of the VLM: one process that talks to the service, fed with the pages that wait for it."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final

import structlog

from models.document import Document
from models.errors import EngineUnavailable
from models.transcription import Degradation, DegradedCode
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
from workers.owner import current_owner
from workers.pool import DYING_PATIENCE_S, interrupts_held_back, kill_group
from workers.transcriber import talk_to_vlm
from workers.transcription import Transcribed
from workers.vlm_settlement import settle_page

MAX_DEATHS_IN_A_ROW: Final = 3
"""Of the process, without a page settled in between, before the run is given up."""

GIVING_UP_S: Final = 60.0

log = structlog.get_logger()

PageKey = tuple[int, int]
"""reading_id, page_number"""


class VlmDesk:
    """``add`` a page and hear of its end from ``hear``; a process that dies is replaced, and its pages begin anew
    with what was booked of them kept. Nothing is started before the first page.

    The pages that a process had in hand when it died are suspects: they are sent one by one, and all others wait.
    A page with which it dies again, alone, keeps the CPU's text.
    """

    def __init__(self, setup: TranscriberSetup, store: Store) -> None:
        self._setup = setup
        self._store = store
        self._tasks: dict[PageKey, TranscribeTask] = {}
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._owner: str | None = None
        self._deaths_in_a_row = 0
        self._suspects: deque[PageKey] = deque()
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
        if not self._suspects:
            self._send(task)

    def hear(self) -> Iterator[PageTranscribed | PageNotOurs]:
        """What the process has said since. Raises what makes the run impossible."""
        while self._connection is not None and self._connection.poll():
            try:
                reply: TranscriberReply = self._connection.recv()
            except (EOFError, ConnectionResetError):
                yield from self._replace()
                return
            match reply:
                case Hello():
                    self._owner = reply.owner
                case RunImpossible():
                    raise reply.error
                case PageTranscribed() | PageNotOurs():
                    self._deaths_in_a_row = 0
                    self._tasks.pop((reply.reading_id, reply.page_number), None)
                    self._clear(reply.reading_id, reply.page_number)
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
        self.book_abandoned()

    def book_abandoned(self) -> None:
        """Close the calls of processes that are gone, before anything more is said of their pages."""
        self._store.transcriptions.close_abandoned(self._setup.account.price_book)

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

    def _replace(self) -> Iterator[PageTranscribed | PageNotOurs]:
        assert self._process is not None
        self._process.join(DYING_PATIENCE_S)
        log.warning("vlm_process_lost", exit_code=self._process.exitcode, pages=len(self._tasks))
        held = () if self._owner is None else self._store.transcriptions.held_pages(self._owner)
        self.close()
        self._count_death()
        if self._suspects and self._suspects[0] in held:
            yield self._give_up(self._tasks.pop(self._suspects.popleft()))
        elif not self._suspects:
            self._suspects.extend(key for key in held if key in self._tasks)
        time.sleep(0.1 * self._deaths_in_a_row)
        self._start()
        self._send_waiting()

    def _count_death(self) -> None:
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MAX_DEATHS_IN_A_ROW:
            raise EngineUnavailable(
                "the process that talks to the VLM dies again and again; run `doctriage doctor`, or leave out "
                "--vlm-url"
            )

    def _clear(self, reading_id: int, page_number: int) -> None:
        """A suspect has come to its end alive: the next one, or after the last all that waited, may go."""
        if self._suspects and self._suspects[0] == (reading_id, page_number):
            self._suspects.popleft()
            self._send_waiting()

    def _send_waiting(self) -> None:
        tasks = [self._tasks[self._suspects[0]]] if self._suspects else list(self._tasks.values())
        for task in tasks:
            self._send(task)

    def _give_up(self, task: TranscribeTask) -> PageTranscribed | PageNotOurs:
        self._deaths_in_a_row = 0
        owner = current_owner()
        escalated = self._store.transcriptions.claim_page(
            task.reading_id, task.page_number, owner=owner, lease_s=GIVING_UP_S
        )
        if escalated is None:
            return PageNotOurs(reading_id=task.reading_id, page_number=task.page_number)
        why = "the process that sends it dies of it; the page may be damaged, or the memory too small"
        end = Transcribed(
            answer=None,
            degradation=Degradation(code=DegradedCode.PAGE_NOT_SENT, message=why),
            last=None,
        )
        return settle_page(
            self._store,
            task,
            escalated.page,
            end,
            owner=owner,
            account=self._setup.account,
            elapsed_s=0.0,
        )
