"""Following a submission to its end, and bringing its outputs home."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from models.errors import DoctriageError, ResultExpired, ResultMissing
from models.page import Route
from models.pool import SourceState
from models.tables import PageState
from pipeline.blobs import BlobStore
from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE
from pipeline.exports.formats import FORMATS
from pipeline.publish import written_whole
from pipeline.store import SettledPage, SourceRecord, Store, SubmissionProgress
from workers.cluster.patience import patiently
from workers.events import (
    DocumentFinished,
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    PageFinished,
    PageGivenUp,
)

LOOK_EVERY_S: Final = 0.5
SHARE_OF_TIME: Final = 0.1
"""Looking takes no more of the time than this, however large the submission."""

PATIENCE_S: Final = 600.0
"""How long a database or a blob store that is away is waited for."""

OVERLAP_S: Final = 30.0
"""A transaction that began before another may become visible after it; so far back is looked again."""


@dataclass(slots=True)
class Follower:
    """``follow`` tells what happens until the submission is over, and writes the outputs of each source below
    ``out_dir`` as soon as they are there. ``not_fetched`` are those whose outputs are gone, by their names."""

    store: Store
    blobs: BlobStore
    submission_id: int
    out_dir: Path
    formats: tuple[str, ...]
    on_event: Callable[[Event], None]
    first_sources: dict[int, str] = field(default_factory=dict)
    not_fetched: dict[str, DoctriageError] = field(default_factory=dict)
    cost_centre: str = DEFAULT_COST_CENTRE
    _told: set[int] = field(default_factory=set)
    _ended: set[int] = field(default_factory=set)
    _pages_told: set[tuple[int, int]] = field(default_factory=set)
    _since_s: float = 0.0

    def follow(self) -> SubmissionProgress:
        """Waits for a database or a blob store that is away for a while. Raises ``OutputNotWritable``,
        ``StoreUnavailable``, and ``SubmissionNotOpen`` where there is none such."""
        while True:
            started_s = time.monotonic()
            progress = patiently(self._looked, patience_s=PATIENCE_S, submission_id=self.submission_id)
            if progress.is_over:
                return progress
            took_s = time.monotonic() - started_s
            time.sleep(max(LOOK_EVERY_S, took_s / SHARE_OF_TIME))

    def _looked(self) -> SubmissionProgress:
        """What was so before everything that is told now."""
        progress = self.store.pool.progress(self.submission_id)
        self.cost_centre = progress.cost_centre
        self._look()
        return progress

    def _look(self) -> None:
        sources = tuple(self.store.submissions.sources(self.submission_id))
        self._tell_sources(sources)
        self._tell_pages()
        for source in sources:
            if source.state is SourceState.SETTLED and source.source_id not in self._ended:
                self._end(source)
                self._ended.add(source.source_id)

    def _tell_sources(self, sources: Iterable[SourceRecord]) -> None:
        for source in sources:
            if source.reading_id is None:
                continue
            first = self.first_sources.setdefault(
                source.reading_id, source.name
            )  # also of one that was moved
            if source.source_id in self._told:
                continue
            self._told.add(source.source_id)
            self.on_event(
                DocumentFound(
                    source=source.name,
                    document_id=source.document_id or "",
                    page_count=source.page_count or 0,
                    same_bytes_as=None if first == source.name else first,
                )
            )

    def _tell_pages(self) -> None:
        """Pages that several sources share are told once."""
        since_s, self._since_s = self._since_s, time.time() - OVERLAP_S
        for page in self.store.pool.settled_pages(self.submission_id, since_s=since_s):
            key = (page.reading_id, page.page_number)
            if key not in self._pages_told and page.reading_id in self.first_sources:
                self._pages_told.add(key)
                self.on_event(_page_event(page))

    def _end(self, source: SourceRecord) -> None:
        if source.error_code is not None:
            self._tell_failure(source, code=source.error_code, message=source.error_message or "")
            return
        try:
            outputs = tuple(self._brought_home(source, name) for name in self.formats)
        except (ResultExpired, ResultMissing) as error:
            self.not_fetched[source.name] = error
            self._tell_failure(source, code=error.code, message=str(error))
            return
        self.on_event(
            DocumentFinished(
                source=source.name,
                document_id=source.document_id or "",
                page_count=source.page_count or 0,
                failed_pages=self._failed_pages(source),
                outputs=outputs,
            )
        )

    def _tell_failure(self, source: SourceRecord, *, code: str, message: str) -> None:
        self.on_event(DocumentRejectedEvent(source=source.name, code=code, message=message))

    def _brought_home(self, source: SourceRecord, name: str) -> Path:
        suffix = FORMATS[name].suffix
        stem = self.out_dir / source.output_stem
        path = stem.with_name(stem.name + suffix)
        with self.blobs.open_result(source.source_id, suffix) as stream, written_whole(path) as written:
            shutil.copyfileobj(stream, written.buffer)
        return path

    def _failed_pages(self, source: SourceRecord) -> int:
        assert source.reading_id is not None
        pages = self.store.pages.stream_summaries(source.reading_id)
        return sum(page.state is PageState.FAILED for page in pages)


def _page_event(page: SettledPage) -> Event:
    if page.state is PageState.FAILED:
        return PageGivenUp(
            source=page.source_name,
            page_number=page.page_number,
            code=page.error_code or "",
            message=page.error_message or "",
        )
    return PageFinished(
        source=page.source_name,
        page_number=page.page_number,
        route=Route(page.route or ""),
        elapsed_s=page.elapsed_s or 0.0,
        from_earlier_run=page.from_earlier_run,
    )
