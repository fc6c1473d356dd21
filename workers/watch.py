"""Watching a folder: files are read in batches as they settle, and what came of each is remembered.

A look at the folder asks for sizes and times, so it works on network shares too, which tell nobody of changes. One bad
file costs itself. What is away for a while (the folder, the database, a full disk, a budget) is waited for.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from models.errors import (
    BrokerUnavailable,
    BudgetSpent,
    BudgetUnusable,
    DoctriageError,
    EngineUnavailable,
    OutputNotWritable,
    PoolBusy,
    StoreUnavailable,
)
from pipeline.publish import not_writable, prepare_folder
from workers.events import DocumentReport, FailureReport, IngestReport
from workers.sources import RUN_FILES, Source
from workers.watch_events import (
    BatchStarted,
    FileFailed,
    FileFailedForNow,
    FileMoved,
    FileNotMoved,
    FileRead,
    Waiting,
    WatchEvent,
    WentOn,
)
from workers.watch_files import Ending, Outcome, Patience, RememberedFile
from workers.watch_look import IGNORED, FolderAway, WatchedFolder, version_of
from workers.watch_memory import WatchMemory
from workers.watch_moves import NotMoved, move_file, write_report
from workers.watch_rows import RowFile
from workers.watch_state import FolderState, MovableFile, ReadyFile

_, FAILURES_FILE = RUN_FILES

MAX_BATCH = 50
"""So many files are read before the folder is looked at again."""

MAX_PAUSE_S = 60.0
"""The longest pause before what is away is tried again."""

LOOKS_SHARE = 0.1
"""The most of the time that looks may take: one at a share of many files takes a while."""

PASSING = (
    FolderAway,
    StoreUnavailable,
    OutputNotWritable,
    BrokerUnavailable,
    PoolBusy,
    BudgetSpent,
    BudgetUnusable,
    EngineUnavailable,
)
"""What may be away for a while."""


class BatchReader(Protocol):
    """Reads files into the output folder and reports on each, whichever executor does it."""

    def read(self, sources: Sequence[Source], rows_dir: Path) -> IngestReport:
        """The rows of ``pages.jsonl`` and ``failures.jsonl`` are written into ``rows_dir``. Raises what is in
        ``PASSING``; an interruption (KeyboardInterrupt) is caught and reported."""

    def rest(self) -> None:
        """Called after every look that found nothing to read."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """All folders are absolute. ``ignored`` are patterns of names beyond ``IGNORED``. Without ``done_dir`` and
    ``failed_dir`` files stay where they are. ``once``: what is there is read, and the watch ends."""

    folder: Path
    out_dir: Path
    home: Path
    done_dir: Path | None = None
    failed_dir: Path | None = None
    ignored: tuple[str, ...] = ()
    poll_s: float = 2.0
    settle_s: float = 5.0
    grace_s: float = 60.0
    once: bool = False

    @property
    def moves(self) -> Mapping[Outcome, Path]:
        folders = {
            Outcome.READ: self.done_dir,
            Outcome.FAILED: self.failed_dir,
            Outcome.UNREADABLE: self.failed_dir,
        }
        return {outcome: folder for outcome, folder in folders.items() if folder is not None}


@dataclass(slots=True)
class WatchTotals:
    read: int = 0
    failed: int = 0


@dataclass(slots=True, kw_only=True)
class Watch:
    """``run`` returns at the end of a ``once``, and raises KeyboardInterrupt when it is stopped: what was read by then
    is noted. Before anything went well it raises what it would wait for later, unless that passes by itself."""

    request: WatchRequest
    reader: BatchReader
    memory: WatchMemory
    on_event: Callable[[WatchEvent], None]
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    totals: WatchTotals = field(default_factory=WatchTotals)
    _state: FolderState = field(init=False)
    _rows: dict[str, RowFile] = field(init=False)
    _not_moved: dict[str, str] = field(init=False, default_factory=dict)
    _is_loaded: bool = field(init=False, default=False)
    _has_read: bool = field(init=False, default=False)
    _trouble: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        request = self.request
        left_out = (request.out_dir, request.home, *request.moves.values())
        self._state = FolderState(
            folder=WatchedFolder(
                path=request.folder, left_out=left_out, ignored=(*IGNORED, *request.ignored)
            ),
            patience=Patience(
                settle_s=request.settle_s, grace_s=request.grace_s, moves=frozenset(request.moves)
            ),
            on_event=self.on_event,
            clock=self.clock,
            wall_clock=self.wall_clock,
        )
        self._rows = {name: RowFile(request.out_dir / name) for name in RUN_FILES}

    def run(self) -> None:
        pause_s = self.request.poll_s
        while True:
            began_s = self.clock()
            try:
                has_more = self._round()
            except PASSING as error:
                if not self._is_waited_for(error):
                    raise
                self._tell_trouble(str(error))
                self.pause(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
                continue
            self._end_trouble()
            if has_more:
                continue
            if self.request.once and not self._state.waits(frozenset(self._not_moved)):
                return
            look_s = self.clock() - began_s
            pause_s = self.request.poll_s
            self.pause(max(pause_s, look_s * (1 / LOOKS_SHARE - 1)))

    def _round(self) -> bool:
        """One look and what follows from it. Whether something was read, so that it is looked again at once."""
        prepare_folder(self.request.out_dir, RUN_FILES)
        if not self._is_loaded:
            self._state.load(self.memory.load())
            self._is_loaded = True
        for name in self._state.look():
            self._rows[FAILURES_FILE].replace({name}, Path(os.devnull))
            self._forget(name)
        batch = tuple(itertools.islice(self._state.ready(), MAX_BATCH))
        if batch:
            self._read(batch)
        else:
            self.reader.rest()
        for file in tuple(self._state.movable()):
            self._move(file)
        return bool(batch)

    # Reading

    def _read(self, batch: Sequence[ReadyFile]) -> None:
        self.on_event(BatchStarted(count=len(batch)))
        with _folder_for_rows() as folder:
            report = self.reader.read(tuple(file.source for file in batch), folder)
            self._settle(batch, report, folder)
        self._has_read = True
        if report.is_interrupted:
            raise KeyboardInterrupt

    def _settle(self, batch: Sequence[ReadyFile], report: IngestReport, rows_dir: Path) -> None:
        documents = {row.source: row for row in report.documents if row.is_written}
        failures = {row.source: row for row in report.failures}
        settled: dict[str, Outcome] = {}
        for file in batch:
            name = file.source.name
            if name in documents:
                settled[name] = Outcome.READ
            elif name in failures and self._is_final(file):
                settled[name] = _outcome_of_failure(file)
            elif name in failures:
                self._fail_for_now(file, failures[name])
        for name, rows in self._rows.items():
            rows.replace(settled.keys(), rows_dir / name)
        versions = {file.source.name: file.version for file in batch}
        for name, outcome in settled.items():
            remembered = RememberedFile(version=versions[name], outcome=outcome)
            self.memory.note(name, remembered, submission_id=report.submission_id)
            self._state.note(name, remembered)
            self._tell_settled(name, documents.get(name), failures.get(name))

    def _is_final(self, file: ReadyFile) -> bool:
        return file.is_last and version_of(file.source.path) == file.version

    def _fail_for_now(self, file: ReadyFile, failure: FailureReport) -> None:
        self._state.note_failed_for_now(file.source.name, file.version)
        self.on_event(
            FileFailedForNow(name=file.source.name, message=failure.message, grace_s=self.request.grace_s)
        )

    def _tell_settled(
        self, name: str, document: DocumentReport | None, failure: FailureReport | None
    ) -> None:
        if document is not None:
            self.totals.read += 1
            self.on_event(
                FileRead(name=name, page_count=document.page_count, failed_pages=document.failed_pages)
            )
        elif failure is not None:
            self.totals.failed += 1
            self.on_event(FileFailed(name=name, code=failure.code, message=failure.message))

    # Moving

    def _move(self, file: MovableFile) -> None:
        name, folder = file.source.name, self.request.moves[file.outcome]
        message = None if file.outcome is Outcome.READ else self._rows[FAILURES_FILE].message_of(name)
        try:
            target = move_file(file.source.path, folder, name, file.version)
            self._note_moved(file)
            if file.outcome is not Outcome.READ:
                write_report(target, message or f"{name}: could not be read")
        except NotMoved as error:
            if self._not_moved.get(name) != str(error):
                self._not_moved[name] = str(error)
                self.on_event(FileNotMoved(name=name, message=str(error)))
            return
        self._not_moved.pop(name, None)
        self.on_event(FileMoved(name=name, target=target))

    def _note_moved(self, file: MovableFile) -> None:
        """The name of a file that was read stays its own, as its outputs bear it; that of one that failed is free."""
        name = file.source.name
        if file.outcome is Outcome.READ:
            moved = RememberedFile(version=file.version, outcome=Outcome.MOVED)
            self.memory.note(name, moved, submission_id=None)
            self._state.note_moved(name, moved)
        else:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self.memory.forget(name)
        self._state.forget(name)

    # Waiting

    def _is_waited_for(self, error: DoctriageError) -> bool:
        if self.request.once:
            return False
        if isinstance(error, EngineUnavailable):
            return self._has_read
        return error.retryable or isinstance(error, BudgetSpent) or self._is_loaded

    def _tell_trouble(self, message: str) -> None:
        if message != self._trouble:
            self._trouble = message
            self.on_event(Waiting(message=message))

    def _end_trouble(self) -> None:
        if self._trouble is not None:
            self._trouble = None
            self.on_event(WentOn())


@contextlib.contextmanager
def _folder_for_rows() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="doctriage-watch-", ignore_cleanup_errors=True)
    except OSError as error:
        raise not_writable(Path(tempfile.gettempdir()), error) from error
    with folder as name:
        yield Path(name)


def _outcome_of_failure(file: ReadyFile) -> Outcome:
    return Outcome.UNREADABLE if file.ending is Ending.UNREADABLE else Outcome.FAILED
