"""Which pages are still to be read, by whom, and what becomes of them when a worker is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from models.document import Document
from models.errors import EngineUnavailable, PageFailed
from models.tables import PageState
from pipeline.settings import Settings
from pipeline.store import FinishedPage, LedgerStore, PageStore
from workers.events import Event, PageAwaitsVlm, PageFinished, PageGivenUp, PageRetried
from workers.messages import (
    PageAttemptFailed,
    PageDone,
    PageEscalated,
    PagesClaimed,
    PageTranscribed,
    ReadTask,
)
from workers.owner import is_alive
from workers.page_settlement import CpuAttempt, charge_attempt
from workers.pool import Worker
from workers.reading_opening import open_document_reading
from workers.run_state import PageQueue, ReadingState, RunOptions, SourceState
from workers.vlm_desk import VlmDesk

UNREAD = (PageState.PENDING, PageState.RUNNING)

MAX_DEATHS_BEFORE_FIRST_PAGE = 3
"""Workers that die while loading engines, one after the other, before the engines are taken to be broken."""


class PageDesk:
    """``on_complete`` hears of each reading of which no page is pending or running any more, anywhere. Without a
    ``vlm`` the pages that need it are left to wait, and the run is through with them."""

    def __init__(
        self,
        *,
        pages: PageStore,
        ledger: LedgerStore,
        settings: Settings,
        options: RunOptions,
        on_event: Callable[[Event], None],
        on_complete: Callable[[ReadingState], None],
        vlm: VlmDesk | None,
    ) -> None:
        self._pages = pages
        self._ledger = ledger
        self._options = options
        self._max_attempts = settings.executor.max_attempts
        self._emit = on_event
        self._on_complete = on_complete
        self._vlm = vlm
        self._readings: dict[str, ReadingState] = {}
        self._queue = PageQueue(max_batch=settings.rasterise.pages_per_call, jobs=options.jobs)
        self._deaths_in_a_row = 0
        self._next_poll_s = 0.0

    @property
    def readings(self) -> Collection[ReadingState]:
        return self._readings.values()

    def reading(self, document_id: str) -> ReadingState | None:
        return self._readings.get(document_id)

    def open(
        self,
        first: SourceState,
        document: Document,
        password: str | None,
        wanted: frozenset[int] | None = None,
    ) -> ReadingState:
        """Take up the reading of a document that is new to this run, where earlier runs left it, or those pages of it
        that are ``wanted``."""
        opened = open_document_reading(
            self._pages,
            self._ledger,
            document,
            self._options.fingerprint,
            self._options.account,
            force=self._options.force,
        )
        reading = ReadingState(
            reading_id=opened.reading_id,
            document=document,
            payer=self._options.account.payer,
            password=password,
            first=first,
            wanted=wanted,
            is_complete=opened.is_complete,
        )
        reading.pending.extend(reading.wanted_of(opened.pending))
        self._readings[document.document_id] = reading
        self._report_earlier(reading, opened.finished)
        self._queue.add(reading)
        self._await_vlm(reading, opened.awaiting_vlm, from_earlier_run=True)
        reading.is_complete = reading.is_complete or (reading.waits_for_others and self._is_over(reading))
        return reading

    def next_batch(self) -> ReadTask | None:
        return self._queue.next_batch()

    def hear(
        self,
        worker: Worker,
        task: ReadTask,
        said: PagesClaimed | PageDone | PageEscalated | PageAttemptFailed,
    ) -> None:
        if isinstance(said, PagesClaimed):
            self._deaths_in_a_row = 0
            worker.claimed = list(said.page_numbers)
            return
        assert worker.claimed is not None
        reading = self._reading_of(task)
        worker.claimed.remove(said.page_number)
        worker.pages_read += 1
        reading.in_flight.discard(said.page_number)
        if isinstance(said, PageDone):
            reading.reported.add(said.page_number)
            self._emit_finished(reading, said, from_earlier_run=False)
        elif isinstance(said, PageEscalated):
            self._await_vlm(reading, [said.page_number], from_earlier_run=False)
        else:
            self._note_failed_attempt(reading, said, alone=False)

    def hear_vlm(self) -> None:
        """Take note of the pages that the VLM's process has brought to their end."""
        for said in () if self._vlm is None else self._vlm.hear():
            reading = next(one for one in self.readings if one.reading_id == said.reading_id)
            reading.at_vlm.discard(said.page_number)
            if isinstance(said, PageTranscribed):
                reading.reported.add(said.page_number)
                self._emit_finished(reading, said, from_earlier_run=False)
            self._complete(reading)

    def end(self, task: ReadTask) -> None:
        """The worker is through with the task; pages of it that it did not settle are somebody else's."""
        reading = self._reading_of(task)
        reading.in_flight.difference_update(task.page_numbers)
        self._complete(reading)

    def lose(self, worker: Worker, task: ReadTask, error: PageFailed) -> None:
        """Charge the page that was being read; the others of the batch go back, each to be read by itself."""
        reading = self._reading_of(task)
        reading.in_flight.difference_update(task.page_numbers)
        if worker.claimed is None:
            self._note_death_before_first_page()
            reading.put_back(task.page_numbers, alone=False)
        elif worker.claimed:
            self._charge_first(worker, reading, worker.claimed, error)
        if worker.owner is not None:
            self._pages.release_leases(worker.owner)
        self._queue.add(reading)
        self._complete(reading)

    def poll_others(self, *, every_s: float) -> None:
        """Look after the pages that another run holds: it may finish them, give them back, or die."""
        if time.monotonic() < self._next_poll_s:
            return
        self._next_poll_s = time.monotonic() + every_s
        waiting = [reading for reading in self.readings if reading.waits_for_others]
        if waiting and self._pages.reclaim_leases(is_alive) and self._vlm is not None:
            self._vlm.book_abandoned()
        for reading in waiting:
            reading.pending.extend(reading.wanted_of(self._pages.pending_pages(reading.reading_id)))
            awaiting = self._pages.pages_awaiting_vlm(reading.reading_id)
            self._await_vlm(reading, awaiting, from_earlier_run=True)
            self._queue.add(reading)
            self._complete(reading)

    def _await_vlm(
        self, reading: ReadingState, page_numbers: Iterable[int], *, from_earlier_run: bool
    ) -> None:
        for page_number in page_numbers:
            if self._vlm is not None:
                reading.at_vlm.add(page_number)
                self._vlm.add(reading.reading_id, reading.document, page_number, reading.password)
            elif page_number not in reading.reported:
                reading.reported.add(page_number)
                self._emit(
                    PageAwaitsVlm(
                        source=reading.first.name, page_number=page_number, from_earlier_run=from_earlier_run
                    )
                )

    def _charge_first(
        self, worker: Worker, reading: ReadingState, claimed: list[int], error: PageFailed
    ) -> None:
        assert worker.owner is not None
        current, *others = claimed
        reading.put_back(others, alone=True)
        attempt = CpuAttempt(
            reading_id=reading.reading_id,
            document_id=reading.document.document_id,
            page_number=current,
            owner=worker.owner,
            account=self._options.account,
            cpu_s=None,
        )
        failed = charge_attempt(self._pages, attempt, error, max_attempts=self._max_attempts)
        if failed is not None:
            self._note_failed_attempt(reading, failed, alone=True)

    def _note_failed_attempt(self, reading: ReadingState, failed: PageAttemptFailed, *, alone: bool) -> None:
        source, page_number = reading.first.name, failed.page_number
        if failed.gave_up:
            reading.reported.add(page_number)
            self._emit(
                PageGivenUp(source=source, page_number=page_number, code=failed.code, message=failed.message)
            )
            return
        reading.put_back([page_number], alone=alone)
        self._queue.add(reading)
        self._emit(
            PageRetried(
                source=source,
                page_number=page_number,
                attempt=failed.attempt,
                code=failed.code,
                message=failed.message,
            )
        )

    def _note_death_before_first_page(self) -> None:
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MAX_DEATHS_BEFORE_FIRST_PAGE:
            raise EngineUnavailable("worker processes die while loading the engines; run `doctriage doctor`")

    def _complete(self, reading: ReadingState) -> None:
        """Say that the reading is complete, if no page of it is pending or running anywhere."""
        if not reading.waits_for_others:
            return
        self._pages.complete_reading(reading.reading_id)
        if not self._is_over(reading):
            return
        reading.is_complete = True
        self._report_earlier(reading, self._pages.finished_pages(reading.reading_id))
        self._on_complete(reading)

    def _is_over(self, reading: ReadingState) -> bool:
        """Whether nothing of the reading that the run is about is still to come, from anybody."""
        if self._vlm is not None:
            return self._pages.is_complete(reading.reading_id)
        records = self._pages.stream_summaries(reading.reading_id)
        unread = [record.page_number for record in records if record.state in UNREAD]
        return not reading.wanted_of(unread)

    def _report_earlier(self, reading: ReadingState, finished: Iterable[FinishedPage]) -> None:
        for page in finished:
            if page.page_number not in reading.reported:
                reading.reported.add(page.page_number)
                self._emit_finished(reading, page, from_earlier_run=True)

    def _emit_finished(
        self,
        reading: ReadingState,
        page: FinishedPage | PageDone | PageTranscribed,
        *,
        from_earlier_run: bool,
    ) -> None:
        self._emit(
            PageFinished(
                source=reading.first.name,
                page_number=page.page_number,
                route=page.route,
                elapsed_s=page.elapsed_s,
                from_earlier_run=from_earlier_run,
            )
        )

    def _reading_of(self, task: ReadTask) -> ReadingState:
        return self._readings[task.document.document_id]
