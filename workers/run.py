"""One run of the embedded executor: from sources to written files, over a pool that may lose workers."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import assert_never

import structlog

from models.document import Document
from models.errors import EngineUnavailable, PageFailed, PageTimedOut, SourceUnreadable, WorkerCrashed
from pipeline.fingerprint import Fingerprint, reading_fingerprint
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy
from pipeline.settings import Settings
from pipeline.store import Store
from workers.events import (
    DocumentFinished,
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    PagesChosen,
    SourceRenamed,
    SourcesFound,
)
from workers.messages import (
    Hello,
    Identified,
    IdentifyTask,
    IntakeAccepted,
    IntakeRefused,
    IntakeTask,
    PageAttemptFailed,
    PageDone,
    PageEscalated,
    PagesClaimed,
    ReadTask,
    Reply,
    RunImpossible,
    SourceNotWritten,
    SourceWritten,
    Task,
    TaskEnded,
    WriteTask,
)
from workers.page_desk import PageDesk
from workers.pool import Loss, LossReason, Worker, WorkerPool
from workers.retry import retry_decision
from workers.run_state import ReadingState, RunOptions, SourceState
from workers.sources import Source
from workers.vlm_desk import VlmDesk

POLL_S = 1.0
"""How often pages that another run holds are looked at."""

WRITE_LIMIT_S = 3600.0
"""Writing thousands of pages says nothing for a while; an hour means a file system that hangs."""

log = structlog.get_logger()


def identify_engines(
    pool: WorkerPool, settings: Settings, policy: Policy, plan: ServingPlan, cost_centre: str
) -> Fingerprint:
    """The fingerprint of this run. Raises ``EngineUnavailable`` for an engine or language that is missing."""
    pool.send(IdentifyTask(), silence_limit_s=settings.executor.page_timeout_s)
    versions = None
    while pool.is_busy:
        for _, _, reply in pool.wait(POLL_S):
            if isinstance(reply, Loss):
                raise EngineUnavailable("the OCR engine dies while it is loaded; run `doctriage doctor`")
            if isinstance(reply, RunImpossible):
                raise reply.error
            if isinstance(reply, Identified):
                versions = reply.engine_versions
    assert versions is not None
    return reading_fingerprint(settings, versions, policy.digest, plan, cost_centre)


PageSelection = Callable[[Sequence[Document]], Mapping[str, frozenset[int]]]
"""Of documents, which pages of each are read, by document id."""


class IngestRun:
    """``run`` returns when every source is written (or only read, where nothing is published) or has failed. Without a
    ``vlm`` pages that need it are left to wait. ``selection`` is asked once every source was taken or refused."""

    def __init__(
        self,
        *,
        pool: WorkerPool,
        store: Store,
        settings: Settings,
        options: RunOptions,
        on_event: Callable[[Event], None],
        vlm: VlmDesk | None,
        selection: PageSelection | None = None,
    ) -> None:
        self._pool = pool
        self._vlm = vlm
        self._selection = selection
        self._submissions = store.submissions
        self._limits = settings.executor
        self._options = options
        self._emit = on_event
        self._sources: list[SourceState] = []
        self._intake: deque[int] = deque()
        self._first_names: dict[str, str] = {}
        self._held: list[tuple[SourceState, IntakeAccepted]] = []
        self._writes: deque[SourceState] = deque()
        self._desk = PageDesk(
            pages=store.pages,
            ledger=store.ledger,
            settings=settings,
            options=options,
            on_event=on_event,
            on_complete=self._finish_all,
            vlm=vlm,
        )
        self._unsettled = 0

    @property
    def readings(self) -> Collection[ReadingState]:
        return self._desk.readings

    def run(self, sources: Sequence[Source]) -> None:
        self._emit(SourcesFound(count=len(sources)))
        for source in sources:
            self._admit(source)
        while self._unsettled:
            self._dispatch()
            also = () if self._vlm is None else self._vlm.connections
            for worker, task, said in self._pool.wait(POLL_S, also=also):
                self._hear(worker, task, said)
            self._release_held()
            self._desk.hear_vlm()
            self._desk.poll_others(every_s=POLL_S)

    def _admit(self, source: Source) -> None:
        state = SourceState(number=len(self._sources), source=source)
        self._sources.append(state)
        self._unsettled += 1
        if source.name != source.wanted:
            self._emit(SourceRenamed(source=source.name, wanted=source.wanted))
        if source.problem is None:
            self._intake.append(state.number)
        else:
            self._refuse(state, SourceUnreadable.code, f"{source.name}: {source.problem}")

    # Handing out

    def _dispatch(self) -> None:
        limit_s = self._limits.page_timeout_s
        while self._pool.has_room:
            if self._writes:
                self._pool.send(self._write_task(self._writes.popleft()), silence_limit_s=WRITE_LIMIT_S)
            elif self._intake:
                self._pool.send(self._intake_task(self._intake.popleft()), silence_limit_s=limit_s)
            elif (task := self._desk.next_batch()) is not None:
                self._pool.send(task, silence_limit_s=limit_s)
            else:
                return

    def _intake_task(self, source_number: int) -> IntakeTask:
        source = self._sources[source_number].source
        return IntakeTask(source_number=source_number, path=source.path, name=source.name)

    def _write_task(self, state: SourceState) -> WriteTask:
        assert state.reading is not None
        assert state.source_id is not None
        return WriteTask(
            source_number=state.number,
            source_id=state.source_id,
            reading_id=state.reading.reading_id,
            document=state.reading.document,
            name=state.name,
            output_stem=state.source.output_stem,
            password=state.reading.password,
        )

    # Listening

    def _hear(self, worker: Worker, task: Task | None, said: Reply | Loss) -> None:
        match said:
            case Loss():
                self._lose(worker, task, said)
            case RunImpossible():
                raise said.error
            case IntakeAccepted():
                self._accept(said)
            case IntakeRefused():
                self._refuse(self._sources[said.source_number], said.code, said.message)
            case PagesClaimed() | PageDone() | PageEscalated() | PageAttemptFailed():
                assert isinstance(task, ReadTask)
                self._desk.hear(worker, task, said)
            case SourceWritten():
                self._note_written(said)
            case SourceNotWritten():
                self._note_not_written(said)
            case TaskEnded():
                self._end_task(worker, task, said)
            case Hello() | Identified():
                pass
            case _:
                assert_never(said)

    def _accept(self, accepted: IntakeAccepted) -> None:
        state = self._sources[accepted.source_number]
        document = accepted.document
        first = self._first_names.setdefault(document.document_id, state.name)
        self._emit(
            DocumentFound(
                source=state.name,
                document_id=document.document_id,
                page_count=document.page_count,
                same_bytes_as=None if first == state.name else first,
            )
        )
        if self._selection is None:
            self._take_up(state, accepted, None)
        else:
            self._held.append((state, accepted))

    def _release_held(self) -> None:
        """Once all that is not settled is held, it is known which documents there are to choose pages from."""
        if self._selection is None or not self._held or len(self._held) < self._unsettled:
            return
        held, self._held = sorted(self._held, key=lambda one: one[0].number), []
        documents = {accepted.document.document_id: accepted.document for _, accepted in held}
        chosen = self._selection(tuple(documents.values()))
        self._emit(PagesChosen(count=sum(map(len, chosen.values()))))
        for state, accepted in held:
            self._take_up(state, accepted, chosen[accepted.document.document_id])

    def _take_up(self, state: SourceState, accepted: IntakeAccepted, wanted: frozenset[int] | None) -> None:
        document = accepted.document
        reading = self._desk.reading(document.document_id) or self._desk.open(
            state, document, accepted.password, wanted
        )
        state.reading = reading
        state.source_id = self._submissions.add_source(
            self._options.submission_id,
            name=state.name,
            output_stem=state.source.output_stem,
            reading_id=reading.reading_id,
        )
        reading.sources.append(state)
        if reading.is_complete:
            self._finish([state])

    def _finish_all(self, reading: ReadingState) -> None:
        self._finish([source for source in reading.sources if not source.is_settled])

    def _finish(self, states: Iterable[SourceState]) -> None:
        """All of these sources is read."""
        if self._options.publishes:
            self._writes.extend(states)
            return
        for state in states:
            self._settle(state)

    def _end_task(self, worker: Worker, task: Task | None, ended: TaskEnded) -> None:
        if isinstance(task, ReadTask):
            self._desk.end(task)
        is_old = worker.pages_read >= self._limits.max_pages_per_worker
        if is_old or ended.memory_bytes > self._limits.max_bytes_per_worker:
            self._pool.retire(worker)

    def _note_written(self, written: SourceWritten) -> None:
        state = self._sources[written.source_number]
        assert state.reading is not None
        if state.is_settled:
            return  # queued twice, as its reading was complete twice: another run read it again in between
        self._settle(state)
        self._emit(
            DocumentFinished(
                source=state.name,
                document_id=state.reading.document.document_id,
                page_count=state.reading.document.page_count,
                failed_pages=written.failed_pages,
                outputs=written.outputs,
            )
        )

    def _note_not_written(self, said: SourceNotWritten) -> None:
        state = self._sources[said.source_number]
        assert state.reading is not None
        if state.is_settled:
            return
        if said.refusal is None:
            state.reading.is_complete = False  # another run reads it again; the desk waits for that
        else:
            self._refuse(state, said.refusal.code, str(said.refusal))

    # Losses

    def _lose(self, worker: Worker, task: Task | None, loss: Loss) -> None:
        error = _error_of(loss)
        log.warning("worker_lost", reason=loss.reason, exit_code=loss.exit_code, task=type(task).__name__)
        match task:
            case ReadTask():
                self._desk.lose(worker, task, error)
            case IntakeTask():
                state = self._sources[task.source_number]
                if self._may_try_again(state, error):
                    self._intake.append(task.source_number)
                else:
                    self._refuse(state, error.code, f"{state.name}: {error}")
            case WriteTask():
                state = self._sources[task.source_number]
                if self._may_try_again(state, error):
                    self._writes.append(state)
                else:
                    self._refuse(state, error.code, f"{state.name}: {error}")
            case IdentifyTask() | None:
                pass
            case _:
                assert_never(task)

    def _may_try_again(self, state: SourceState, error: PageFailed) -> bool:
        state.attempts += 1
        return retry_decision(error, state.attempts, max_attempts=self._limits.max_attempts) is not None

    # Settling

    def _refuse(self, state: SourceState, code: str, message: str) -> None:
        if state.source_id is None:
            state.source_id = self._submissions.add_source(
                self._options.submission_id,
                name=state.name,
                output_stem=state.source.output_stem,
                error_code=code,
                error_message=message,
            )
        else:
            self._submissions.fail_source(state.source_id, code=code, message=message)
        self._settle(state)
        self._emit(DocumentRejectedEvent(source=state.name, code=code, message=message))

    def _settle(self, state: SourceState) -> None:
        assert not state.is_settled
        state.is_settled = True
        self._unsettled -= 1


def _error_of(loss: Loss) -> PageFailed:
    if loss.reason is LossReason.STALLED:
        return PageTimedOut(
            "nothing came of it within the time limit and it was stopped; raise "
            "DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S, or take the page out if it is damaged"
        )
    exit_code = "no exit code" if loss.exit_code is None else str(loss.exit_code)
    if loss.exit_code is not None and loss.exit_code < 0:
        exit_code = signal.Signals(-loss.exit_code).name
    return WorkerCrashed(
        f"the process that read it ended ({exit_code}); the page may be damaged, or the memory too small: "
        "try again with fewer --jobs"
    )
