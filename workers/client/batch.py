"""A batch of documents read by a server: several are sent at a time, followed, and their outputs written as a local
run writes them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from models.budget import BudgetMonth
from models.errors import (
    BrokerUnavailable,
    CostCentreRefused,
    DoctriageError,
    IssuerUnavailable,
    NotAuthenticated,
    PriorityRefused,
    ScopeMissing,
    ServerUnreachable,
    SettingsError,
    StoreUnavailable,
)
from pipeline.chargeback.cost_centres import payers
from pipeline.whole_files import DiskFull, prepare_folder
from workers.client.batch_document import BatchParts, read_remotely
from workers.client.batch_order import BatchOrder, FirstSources, Stopped, Writers
from workers.client.batch_outcome import Outcome
from workers.client.batch_rows import RowSpool, SourceEnd, failure_of
from workers.client.client import Client
from workers.client.connection import OnWait
from workers.events import Event, IngestReport, SourceRenamed, SourcesFound
from workers.logs import log_event
from workers.sources import RUN_FILES, Source

FOLLOWED_AT_ONCE: Final = 32
SENT_AT_ONCE: Final = 4
LAST_WRITES_S: Final = 5.0
"""What files that are being written have to be whole, after Ctrl-C."""

ENDS_ALL: Final = (
    BrokerUnavailable,
    CostCentreRefused,
    DiskFull,
    IssuerUnavailable,
    NotAuthenticated,
    PriorityRefused,
    ScopeMissing,
    ServerUnreachable,
    SettingsError,
    StoreUnavailable,
)
"""Another document would fare no better."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A request is made again after a while, because of the ``error``."""

    error: DoctriageError


Told = Event | SourceEnd | Waits | BaseException | None

log = structlog.get_logger()


class ClientMaker(Protocol):
    def __call__(self, *, sleep: Callable[[float], None], on_wait: OnWait) -> Client: ...


class Batch:
    """``client`` makes the client, which waits for room, given how to sleep and whom to tell. ``on_event`` is called on
    the caller's thread, and so is ``on_wait``, once for each code."""

    def __init__(
        self,
        order: BatchOrder,
        *,
        client: ClientMaker,
        on_event: Callable[[Event], None],
        on_wait: Callable[[DoctriageError], None],
    ) -> None:
        self._order = order
        self._on_event = on_event
        self._on_wait = on_wait
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._writers = Writers()
        self._client = client(sleep=self._sleep, on_wait=lambda error, _: self._told.put(Waits(error)))
        self._outcome = Outcome()

    def run(self, sources: Sequence[Source]) -> IngestReport:
        """With Ctrl-C (KeyboardInterrupt) the report says ``is_interrupted``, and documents stay with the server.
        Raises what ends all (``ENDS_ALL``), and OutputNotWritable where the folder cannot be used."""
        started_s = time.monotonic()
        prepare_folder(self._order.out_dir, RUN_FILES)
        with closing(self._client), closing(RowSpool()) as spool:
            is_interrupted = False
            budgets: tuple[BudgetMonth, ...] = ()
            try:
                self._begin(sources, spool)
                self._hear(threads=min(len(sources), FOLLOWED_AT_ONCE))
                budgets = self._budgets_to_warn_of()
            except KeyboardInterrupt:
                is_interrupted = True
            finally:
                self._stop.set()
                self._writers.stop(LAST_WRITES_S)
            self._hear_of_ends()
            self._outcome.write_rows(self._order.out_dir, spool)
            return self._outcome.report(
                [source.name for source in sources],
                budgets=budgets,
                elapsed_s=time.monotonic() - started_s,
                is_interrupted=is_interrupted,
            )

    def _begin(self, sources: Sequence[Source], spool: RowSpool) -> None:
        self._take(SourcesFound(count=len(sources)))
        for source in sources:
            if source.wanted != source.name:
                self._take(SourceRenamed(source=source.name, wanted=source.wanted))
        parts = BatchParts(
            client=self._client,
            order=self._order,
            first_sources=FirstSources(),
            sending=threading.Semaphore(SENT_AT_ONCE),
            writers=self._writers,
            spool=spool,
            tell=self._told.put,
        )
        waiting: queue.SimpleQueue[tuple[int, Source]] = queue.SimpleQueue()
        for numbered in enumerate(sources):
            waiting.put(numbered)
        for _ in range(min(len(sources), FOLLOWED_AT_ONCE)):
            threading.Thread(target=self._work, args=(parts, waiting), daemon=True).start()

    def _work(self, parts: BatchParts, waiting: queue.SimpleQueue[tuple[int, Source]]) -> None:
        """The whole life of a thread. Nothing of it may be lost, or whoever hears of it would wait for ever."""
        try:
            while not self._stop.is_set():
                index, source = waiting.get_nowait()
                self._told.put(_end_of(parts, index, source))
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:  # noqa: BLE001 — raised on the caller's thread
            self._told.put(error)
        self._told.put(None)

    def _hear(self, *, threads: int) -> None:
        while threads:
            told = self._told.get()
            if told is None:
                threads -= 1
            else:
                self._take(told)

    def _hear_of_ends(self) -> None:
        """Of those that came to an end before the stop. An error is one of whoever was stopped."""
        with suppress(queue.Empty):
            while True:
                told = self._told.get_nowait()
                if isinstance(told, SourceEnd):
                    self._take(told)

    def _take(self, told: Event | SourceEnd | Waits | BaseException) -> None:
        if isinstance(told, BaseException):
            raise told
        if isinstance(told, Waits):
            if self._outcome.is_new_wait(told.error.code):
                self._on_wait(told.error)
            return
        event = self._outcome.add(told) if isinstance(told, SourceEnd) else told
        if event is not None:
            self._outcome.count(event)
            log_event(event)
            self._on_event(event)

    def _sleep(self, delay_s: float) -> None:
        if self._stop.wait(delay_s):
            raise Stopped

    def _budgets_to_warn_of(self) -> tuple[BudgetMonth, ...]:
        """Of those who paid."""
        concerned = {payer for cost_centre in self._outcome.cost_centres for payer in payers(cost_centre)}
        if not concerned:
            return ()
        try:
            budgets = self._client.budgets()
        except DoctriageError as error:
            log.warning("budgets_unknown", reason=str(error))
            return ()
        return tuple(one for one in budgets if one.cost_centre in concerned and one.is_warned_of)


def _end_of(parts: BatchParts, index: int, source: Source) -> SourceEnd:
    try:
        return read_remotely(parts, index, source)
    except DoctriageError as error:
        if isinstance(error, ENDS_ALL):
            raise
        return SourceEnd(index=index, failure=failure_of(source.name, error))
