"""Batches of a watch, read by the embedded executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.bootstrap import build_engines
from workers.events import Event, IngestReport, IngestRequest
from workers.local import ingest_sources, run_task
from workers.local_run import RunTerms, new_workers
from workers.messages import EngineBuilder
from workers.pool import WorkerPool
from workers.sources import Source

KEPT_S = 60.0
"""How long worker processes wait for the next batch: loading engines takes seconds, and they take 1 GB and more."""


@dataclass(slots=True, kw_only=True)
class LocalReader:
    """A ``BatchReader``: each batch is a run of its own."""

    terms: RunTerms
    request: IngestRequest
    on_event: Callable[[Event], None]
    engine_builder: EngineBuilder = build_engines
    clock: Callable[[], float] = time.monotonic
    _workers: WorkerPool = field(init=False)
    _ended_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._workers = new_workers(self.terms, run_task((), self.request), self.engine_builder)

    def read(self, sources: Sequence[Source], rows_dir: Path) -> IngestReport:
        for _ in self._workers.wait(0):  # those that died while they were idle are replaced
            pass
        try:
            return ingest_sources(
                sources,
                self.request,
                self.terms,
                on_event=self.on_event,
                engine_builder=self.engine_builder,
                rows_dir=rows_dir,
                workers=self._workers,
            )
        finally:
            self._ended_s = self.clock()

    def rest(self) -> None:
        if self.clock() - self._ended_s > KEPT_S:
            self._workers.kill()

    def close(self) -> None:
        self._workers.kill()
