"""Batches of a watch, read by the embedded executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.bootstrap import build_engines
from workers.events import Event, IngestReport, IngestRequest
from workers.local import ingest_sources
from workers.local_run import RunTerms
from workers.messages import EngineBuilder
from workers.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReader:
    """A ``BatchReader``: each batch is a run of its own, with worker processes that end with it. An idle watch keeps no
    engine in memory."""

    terms: RunTerms
    request: IngestRequest
    on_event: Callable[[Event], None]
    engine_builder: EngineBuilder = build_engines

    def __call__(self, sources: Sequence[Source], rows_dir: Path) -> IngestReport:
        return ingest_sources(
            sources,
            self.request,
            self.terms,
            on_event=self.on_event,
            engine_builder=self.engine_builder,
            rows_dir=rows_dir,
        )
