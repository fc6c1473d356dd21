"""The inside of a worker process: take a task, do it with the stages, say how it went.

Results go from here to the database, page by page; the executor only hears about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, assert_never

import psutil

from models.errors import (
    DocumentFailed,
    DocumentRejected,
    EngineUnavailable,
    OutputNotWritable,
    StoreUnavailable,
)
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account
from pipeline.publish import DiskFull, ReadingUnfinished, publish_document
from pipeline.store import Store, connect_store
from workers.child_process import begin_child
from workers.document_intake import DocumentIntake
from workers.messages import (
    Hello,
    Identified,
    IdentifyTask,
    IntakeAccepted,
    IntakeRefused,
    IntakeTask,
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
from workers.originals import original_of
from workers.owner import current_owner
from workers.page_reading import PageReader

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines

LEASE_SLACK_S = 120.0
"""What a lease allows beyond the time limit of each of its pages."""


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
        self._blobs = BlobStore(setup.settings.home, setup.settings.blobs)
        self._intake = DocumentIntake(
            settings=setup.settings, pdf=lambda: self._engines.pdf, blobs=self._blobs, store=self.store
        )

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

    @cached_property
    def _reader(self) -> PageReader:
        return PageReader(
            settings=self._settings,
            policy=self._setup.policy,
            plan=self._setup.plan,
            store=self.store,
            blobs=self._blobs,
            engines=self._engines,
            owner=self.owner,
        )

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

    def _take_in(self, task: IntakeTask) -> IntakeAccepted | IntakeRefused:
        try:
            document, password = self._intake.take_in(task.path, self._setup.passwords)
        except DocumentRejected as error:
            return IntakeRefused(
                source_number=task.source_number, code=error.code, message=f"{task.name}: {error}"
            )
        return IntakeAccepted(source_number=task.source_number, document=document, password=password)

    def _read(self, task: ReadTask) -> Iterator[Reply]:
        reader = self._reader  # the engines are loaded before a page is claimed
        claimed = self.store.pages.claim_pages(
            task.reading_id,
            task.page_numbers,
            owner=self.owner,
            lease_s=self._settings.executor.page_timeout_s * len(task.page_numbers) + LEASE_SLACK_S,
        )
        yield PagesClaimed(page_numbers=claimed)
        account = Account(
            payer=task.payer, price_book=self._setup.price_book, model_id=self._setup.plan.model_id
        )
        yield from reader.read_claimed(task.reading_id, task.document, claimed, account, task.password)

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
                original=lambda: original_of(task.document, self._blobs, self._settings, task.password),
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
