"""The inside of a worker process: take a task, do it with the stages, say how it went.

Results go from here to the database, page by page; the executor only hears about them.
"""

from __future__ import annotations

import faulthandler
import tempfile
from collections.abc import Iterator
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import psutil
import structlog

from models.document import Document
from models.errors import (
    DoctriageError,
    DocumentEncrypted,
    DocumentFailed,
    DocumentRejected,
    EngineError,
    EngineUnavailable,
    OutputNotWritable,
    PageFailed,
    StoreUnavailable,
)
from models.page import PageResult, Route
from pipeline.blobs import BlobStore, Snapshot
from pipeline.chargeback.entries import Account
from pipeline.publish import DiskFull, ReadingUnfinished, not_writable, publish_document
from pipeline.store import Store, connect_store
from workers.child_process import begin_child
from workers.cpu_time import cpu_seconds
from workers.messages import (
    Hello,
    Identified,
    IdentifyTask,
    IntakeAccepted,
    IntakeRefused,
    IntakeTask,
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
    WorkerSetup,
    WriteTask,
)
from workers.owner import current_owner
from workers.page_settlement import CpuAttempt, charge_attempt, finish_attempt

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines

WATCHDOG_SLACK_S = 60.0
"""The executor kills a silent worker; this much later the worker ends itself, should the executor be gone."""

LEASE_SLACK_S = 120.0
"""What a lease allows beyond the time limit of each of its pages."""

log = structlog.get_logger()


def work(connection: Connection, setup: WorkerSetup) -> None:
    """The whole life of a worker; it is killed when it is not needed any more, or its parent is gone."""
    begin_child(setup.settings)
    worker = WorkerProcess(connection, setup)
    try:
        connection.send(Hello(owner=worker.owner))
        while True:
            worker.do(connection.recv())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the executor is gone, and with it whoever wants an answer
    finally:
        worker.store.close()


class WorkerProcess:
    def __init__(self, connection: Connection, setup: WorkerSetup) -> None:
        self.owner = current_owner()
        self.store: Store = connect_store(setup.settings.home, setup.settings.database_url)
        self._connection = connection
        self._setup = setup
        self._settings = setup.settings
        self._blobs = BlobStore(setup.settings.home)

    def do(self, task: Task) -> None:
        """Do the task and answer; what ends the run is answered too, for the executor to raise."""
        try:
            for reply in self._replies(task):
                self._connection.send(reply)
        except (EngineUnavailable, StoreUnavailable, DiskFull) as error:
            self._connection.send(RunImpossible(error=error))
        self._connection.send(TaskEnded(memory_bytes=psutil.Process().memory_info().rss))

    @cached_property
    def _engines(self) -> Engines:
        return self._setup.build_engines(self._settings)

    def _replies(self, task: Task) -> Iterator[Reply]:
        match task:
            case IdentifyTask():
                yield Identified(engine_versions=self._engines.versions)
            case IntakeTask():
                yield self._take_in(task)
            case ReadTask():
                yield from self._read(task)
            case WriteTask():
                yield self._write(task)
            case _:
                assert_never(task)

    # Intake

    def _take_in(self, task: IntakeTask) -> IntakeAccepted | IntakeRefused:
        try:
            snapshot = self._blobs.take(task.path, max_bytes=self._settings.intake.max_bytes)
            try:
                document, password = self._inspect(snapshot)
            except BaseException:
                self._blobs.discard(snapshot)
                raise
        except DocumentRejected as error:
            return IntakeRefused(
                source_number=task.source_number, code=error.code, message=f"{task.name}: {error}"
            )
        self._blobs.keep(snapshot)
        self.store.pages.save_document(document)
        return IntakeAccepted(source_number=task.source_number, document=document, password=password)

    def _inspect(self, snapshot: Snapshot) -> tuple[Document, str | None]:
        """The document and the password that opened it: none first, then each of the run's."""
        from pipeline.intake import inspect_source

        refusal: DocumentEncrypted | None = None
        for password in (None, *self._setup.passwords):
            try:
                document = inspect_source(
                    snapshot.path,
                    pdf=self._engines.pdf,
                    limits=self._settings.intake,
                    password=password,
                )
            except DocumentEncrypted as error:
                refusal = error
            else:
                return document, password
        assert refusal is not None
        raise refusal

    # Reading

    def _read(self, task: ReadTask) -> Iterator[Reply]:
        engines = self._engines
        limit_s = self._settings.executor.page_timeout_s
        claimed = self.store.pages.claim_pages(
            task.reading_id,
            task.page_numbers,
            owner=self.owner,
            lease_s=limit_s * len(task.page_numbers) + LEASE_SLACK_S,
        )
        yield PagesClaimed(page_numbers=claimed)
        self._watch(limit_s)
        started_cpu_s = cpu_seconds()
        try:
            for page_number, outcome in self._outcomes(engines, task, claimed):
                reply = self._settle(task, page_number, outcome, cpu_seconds() - started_cpu_s)
                self.store.pages.complete_reading(task.reading_id)
                if reply is not None:
                    yield reply
                self._watch(limit_s)
                started_cpu_s = cpu_seconds()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self, limit_s: float) -> None:
        """End this process should the page hang and nobody be left to end it."""
        faulthandler.dump_traceback_later(limit_s + WATCHDOG_SLACK_S, exit=True)

    def _outcomes(
        self, engines: Engines, task: ReadTask, page_numbers: tuple[int, ...]
    ) -> Iterator[tuple[int, PageResult | PageFailed]]:
        """One outcome a page, whatever the stages do: what they raise fails the page they were at."""
        from pipeline.page_pipeline import read_pages

        left = list(page_numbers)
        path = self._blobs.path(task.document.document_id)
        while left:
            try:
                for page_number, outcome in read_pages(
                    path,
                    task.document,
                    tuple(left),
                    engines,
                    self._settings,
                    self._setup.policy,
                    self._setup.plan,
                    task.password,
                ):
                    left.remove(page_number)
                    yield page_number, outcome
                failure = PageFailed("the page was not rendered")
            except (EngineUnavailable, StoreUnavailable):
                raise
            except DoctriageError as error:
                failure = error if isinstance(error, PageFailed) else PageFailed(str(error))
            except Exception as error:
                _stop_where_the_disk_is_full(error)
                log.warning(
                    "page_failed",
                    document_id=task.document.document_id,
                    page_number=left[0],
                    exc_info=True,
                )
                failure = EngineError(f"page {left[0]}: {type(error).__name__}: {error}")
            if left:
                yield left.pop(0), failure

    def _settle(
        self, task: ReadTask, page_number: int, outcome: PageResult | PageFailed, cpu_s: float
    ) -> Reply | None:
        """Store the outcome. None when the page is not ours any more: somebody else answers for it."""
        attempt = CpuAttempt(
            reading_id=task.reading_id,
            document_id=task.document.document_id,
            page_number=page_number,
            owner=self.owner,
            account=Account(
                payer=task.payer, price_book=self._setup.price_book, model_id=self._setup.plan.model_id
            ),
            cpu_s=cpu_s,
        )
        if isinstance(outcome, PageResult):
            try:
                return self._finish(attempt, outcome)
            except (TypeError, ValueError) as error:
                outcome = EngineError(f"page {page_number}: the result cannot be stored ({error})")
        return charge_attempt(
            self.store.pages, attempt, outcome, max_attempts=self._settings.executor.max_attempts
        )

    def _finish(self, attempt: CpuAttempt, result: PageResult) -> PageDone | PageEscalated | None:
        awaits_vlm = result.route is Route.OCR_DEGRADED and self._settings.vlm.is_configured
        if not finish_attempt(self.store.pages, attempt, result, awaits_vlm=awaits_vlm):
            return None
        if awaits_vlm:
            return PageEscalated(page_number=attempt.page_number)
        return PageDone(page_number=attempt.page_number, route=result.route, elapsed_s=result.elapsed_s)

    # Writing

    def _write(self, task: WriteTask) -> SourceWritten | SourceNotWritten:
        assert self._setup.out_dir is not None
        try:
            published = publish_document(
                self.store.pages,
                reading_id=task.reading_id,
                document=task.document,
                source=task.name,
                stem=self._setup.out_dir / task.output_stem,
                formats=self._setup.formats,
            )
        except ReadingUnfinished:
            return SourceNotWritten(source_number=task.source_number, refusal=None)
        except DiskFull:
            raise
        except (DocumentFailed, OutputNotWritable) as error:
            return SourceNotWritten(source_number=task.source_number, refusal=error)
        self.store.submissions.mark_written(task.source_id)
        return SourceWritten(
            source_number=task.source_number,
            failed_pages=published.failed_pages,
            outputs=published.outputs,
        )


def _stop_where_the_disk_is_full(error: Exception) -> None:
    """Nothing more can be read without room for temporary files, so the run ends once and not page by page."""
    if isinstance(error, OSError):
        refusal = not_writable(Path(tempfile.gettempdir()), error)
        if isinstance(refusal, DiskFull):
            raise refusal from error
