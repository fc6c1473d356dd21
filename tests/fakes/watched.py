"""A watched folder whose time passes only while the watch pauses, and a reader that reads words from files."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.errors import DoctriageError, DocumentCorrupt, EmptyFile, SourceUnreadable
from tests.fakes.reports import document_report, ingest_report
from workers.events import FailureReport, IngestReport
from workers.sources import RUN_FILES, Source
from workers.watch import Watch, WatchRequest
from workers.watch_events import Looked, WatchEvent
from workers.watch_files import RememberedFile

PNG_END = b"IEND\xaeB`\x82"
PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def whole(text: str) -> bytes:
    """What ends as a PNG does."""
    return PNG_START + text.encode() + PNG_END


@dataclass(slots=True)
class FakeMemory:
    files: dict[str, RememberedFile] = field(default_factory=dict)

    def load(self) -> Mapping[str, RememberedFile]:
        return dict(self.files)

    def note(self, name: str, file: RememberedFile, *, submission_id: int | None) -> None:
        self.files[name] = file

    def forget(self, name: str) -> None:
        del self.files[name]


@dataclass(slots=True)
class FakeReader:
    """Writes what stands in a file as its only page. One with the word ``damaged`` is refused, and so is one that
    lacks its end, as pages that cannot be rendered are. ``troubles`` are raised first, one a batch; ``before_reading``
    is called with each file; ``stops_after`` files the batch is interrupted."""

    out_dir: Path
    batches: list[list[str]] = field(default_factory=list)
    troubles: list[DoctriageError] = field(default_factory=list)
    before_reading: Callable[[Path], None] = lambda _path: None
    stops_after: int | None = None

    def read(self, sources: Sequence[Source], rows_dir: Path) -> IngestReport:
        self.batches.append([source.name for source in sources])
        if self.troubles:
            raise self.troubles.pop(0)
        documents, failures, rows = [], [], []
        for source in sources[: self.stops_after]:
            self.before_reading(source.path)
            try:
                text = _text_of(source)
            except DoctriageError as error:
                failures.append(
                    FailureReport(source=source.name, code=error.code, message=f"{source.name}: {error}")
                )
            else:
                documents.append(document_report(source.name))
                rows.append({"source": source.name, "text": text})
                output = self.out_dir / f"{source.output_stem}.md"
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_text(text, encoding="utf-8")
        failed = [{"source": row.source, "code": row.code, "message": row.message} for row in failures]
        for name, written in zip(RUN_FILES, (rows, failed), strict=True):
            lines = "".join(json.dumps(row) + "\n" for row in written)
            (rows_dir / name).write_text(lines, encoding="utf-8")
        is_interrupted = self.stops_after is not None
        return ingest_report(*documents, failures=tuple(failures), is_interrupted=is_interrupted)

    def rest(self) -> None:
        pass

    def close(self) -> None:
        pass


def _text_of(source: Source) -> str:
    if source.problem is not None:
        raise SourceUnreadable(source.problem)
    try:
        stored = source.path.read_bytes()
    except OSError as error:
        raise SourceUnreadable(str(error.strerror)) from error
    if not stored:
        raise EmptyFile("it is empty")
    if b"damaged" in stored or not stored.endswith(PNG_END):
        raise DocumentCorrupt("it is damaged")
    return stored[len(PNG_START) : -len(PNG_END)].decode()


class FakeFolder:
    """``at(seconds, what)`` does something to the folder once so much time has passed; ``run`` watches until
    ``until_s`` have passed, as if it were stopped then. It begins now: what a file system notes of a file's last
    change cannot be set back."""

    def __init__(self, root: Path, **options: object) -> None:
        self.root = root
        self.path = root / "in"
        self.path.mkdir()
        self.out_dir = root / "out"
        self.reader = FakeReader(self.out_dir)
        self.memory = FakeMemory()
        self.events: list[tuple[float, WatchEvent]] = []
        self.passed_s = 0.0
        self._start_s = time.time()
        self._options = options
        self._script: list[tuple[float, Callable[[], object]]] = []

    def at(self, passed_s: float, act: Callable[[], object]) -> None:
        self._script.append((passed_s, act))
        self._script.sort(key=lambda entry: entry[0])

    def put(self, name: str, stored: bytes) -> Path:
        """Written as of now."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored)
        stamp_ns = int((self._start_s + self.passed_s) * 1_000_000_000)
        os.utime(path, ns=(stamp_ns, stamp_ns))
        return path

    def run(self, until_s: float = 1_000.0, **options: object) -> Watch:
        watch = self.watch(until_s, **options)
        with contextlib.suppress(KeyboardInterrupt):
            watch.run()
        return watch

    def watch(self, until_s: float = 1_000.0, **options: object) -> Watch:
        request = WatchRequest(
            folder=self.path,
            out_dir=self.out_dir,
            home=self.root / "home",
            **{**self._options, **options},  # type: ignore[arg-type]
        )
        watch = Watch(
            request=request,
            reader=self.reader,
            memory=self.memory,
            on_event=self._hear,
            clock=lambda: self.passed_s,
            wall_clock=lambda: self._start_s + self.passed_s,
            pause=lambda pause_s: self._pass(pause_s, until_s),
        )
        self._pass(0.0, until_s)
        return watch

    def told(self, kind: type[WatchEvent]) -> list[WatchEvent]:
        return [event for _, event in self.events if isinstance(event, kind)]

    def rows(self, name: str) -> list[dict[str, str]]:
        lines = (self.out_dir / name).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def output(self, name: str) -> str:
        return (self.out_dir / f"{name}.md").read_text(encoding="utf-8")

    def _hear(self, event: WatchEvent) -> None:
        if not isinstance(event, Looked):
            self.events.append((self.passed_s, event))

    def _pass(self, pause_s: float, until_s: float) -> None:
        self.passed_s += pause_s
        while self._script and self._script[0][0] <= self.passed_s:
            self._script.pop(0)[1]()
        if self.passed_s >= until_s:
            raise KeyboardInterrupt
