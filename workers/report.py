"""The end of a run: ``pages.jsonl``, ``failures.jsonl`` and the report, from what the database holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from models.budget import BudgetMonth
from models.errors import DoctriageError
from models.page import Route
from models.tables import PageState
from pipeline.outputs import failed_page_json, failure_row, page_row
from pipeline.publish import write_rows
from pipeline.store import PageRecord, SourceRecord, Store
from workers.events import DocumentReport, FailureReport, IngestReport
from workers.sources import RUN_FILES

PAGES_FILE, FAILURES_FILE = RUN_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """What the events told: pages this run read itself, and those that were there already. ``budgets`` are those of
    which so much is spent that it is said."""

    pages_read: int
    pages_from_earlier_run: int
    elapsed_s: float
    is_interrupted: bool
    budgets: tuple[BudgetMonth, ...]


def finish_run(
    store: Store,
    submission_id: int | None,
    out_dir: Path,
    *,
    totals: RunTotals,
    first_sources: Mapping[int, str],
    not_fetched: Mapping[str, DoctriageError] = MappingProxyType({}),
) -> IngestReport:
    """Write the run's own files into ``out_dir`` and report. ``first_sources`` names, for each reading, the
    source that its pages are counted under; ``not_fetched`` are read, and their outputs are not here. A run
    that was stopped before it began (no ``submission_id``) leaves the files of the last one."""
    tally = _Tally(store=store, first_sources=first_sources, not_fetched=not_fetched)
    if submission_id is not None:
        write_rows(out_dir / PAGES_FILE, tally.page_rows(submission_id))
        write_rows(
            out_dir / FAILURES_FILE,
            (failure_row(row.source, row.code, row.message) for row in tally.failures),
        )
    return IngestReport(
        documents=tuple(tally.documents),
        failures=tuple(tally.failures),
        pages_by_reason=dict(tally.pages_by_reason),
        visual_tokens_if_all=tally.visual_tokens_if_all,
        visual_tokens_triaged=tally.visual_tokens_triaged,
        pages_by_degradation=dict(tally.pages_by_degradation),
        vlm_calls=tally.vlm_calls,
        vlm_prompt_tokens=tally.vlm_prompt_tokens,
        vlm_completion_tokens=tally.vlm_completion_tokens,
        bills=() if submission_id is None else store.ledger.bill_of(submission_id),
        budgets=totals.budgets,
        pages_read=totals.pages_read,
        pages_from_earlier_run=totals.pages_from_earlier_run,
        failed_pages=tally.failed_pages,
        elapsed_s=totals.elapsed_s,
        is_interrupted=totals.is_interrupted,
        submission_id=submission_id,
    )


@dataclass(slots=True)
class _Tally:
    """Counts the pages while they are written out: all of them by source, each once over all sources."""

    store: Store
    first_sources: Mapping[int, str]
    not_fetched: Mapping[str, DoctriageError]
    documents: list[DocumentReport] = field(default_factory=list)
    failures: list[FailureReport] = field(default_factory=list)
    pages_by_reason: Counter[str] = field(default_factory=Counter)
    visual_tokens_if_all: int = 0
    visual_tokens_triaged: int = 0
    pages_by_degradation: Counter[str] = field(default_factory=Counter)
    vlm_calls: int = 0
    vlm_prompt_tokens: int = 0
    vlm_completion_tokens: int = 0
    failed_pages: int = 0

    def page_rows(self, submission_id: int) -> Iterator[Mapping[str, Any]]:
        for source in self.store.submissions.sources(submission_id):
            if source.error_code is not None:
                self.failures.append(
                    FailureReport(
                        source=source.name, code=source.error_code, message=source.error_message or ""
                    )
                )
            if (missing := self.not_fetched.get(source.name)) is not None:
                self.failures.append(
                    FailureReport(source=source.name, code=missing.code, message=str(missing))
                )
            if source.reading_id is not None and source.document_id is not None:
                yield from self._document_rows(source, source.reading_id, source.document_id)

    def _document_rows(
        self, source: SourceRecord, reading_id: int, document_id: str
    ) -> Iterator[Mapping[str, Any]]:
        routes: Counter[Route] = Counter()
        failed_pages, elapsed_s = 0, 0.0
        first = self.first_sources.get(reading_id, source.name)
        for record in self.store.pages.stream_summaries(reading_id):
            row = _page_row(source.name, document_id, record)
            if record.content is not None:
                routes[Route(row["route"])] += 1
                elapsed_s += record.elapsed_s or 0.0
            failed_pages += record.state is PageState.FAILED
            if first == source.name:
                self._count(record, row)
            yield row
        if source.error_code is not None or source.name in self.not_fetched:  # told among the failures
            return
        self.documents.append(
            DocumentReport(
                source=source.name,
                document_id=document_id,
                page_count=source.page_count or 0,
                pages_by_route=dict(routes),
                failed_pages=failed_pages,
                elapsed_s=elapsed_s,
                is_written=source.is_written,
                same_bytes_as=None if first == source.name else first,
            )
        )

    def _count(self, record: PageRecord, row: Mapping[str, Any]) -> None:
        self.failed_pages += record.state is PageState.FAILED
        if record.content is None:
            return
        self.pages_by_reason.update({reason["signal"] for reason in row["reasons"]})
        if row["route"] != Route.BLANK:
            self.visual_tokens_if_all += row["visual_tokens_if_vlm"]
        if row["escalate"]:
            self.visual_tokens_triaged += row["visual_tokens_if_vlm"]
        if row["degraded"] is not None:
            self.pages_by_degradation[row["degraded"]["code"]] += 1
        self.vlm_calls += row["vlm_calls"]
        self.vlm_prompt_tokens += row["prompt_tokens"]
        self.vlm_completion_tokens += row["completion_tokens"]


def _page_row(source: str, document_id: str, record: PageRecord) -> Mapping[str, Any]:
    if record.content is not None:
        is_waiting = record.state in (PageState.AWAITING_VLM, PageState.TRANSCRIBING)
        state = {"state": PageState.PENDING.value} if is_waiting else {}  # the run was stopped
        return {**record.content, **state, "source": source}
    row: Mapping[str, Any] = page_row(
        source,
        document_id,
        failed_page_json(
            record.page_number, code=record.error_code or "", message=record.error_message or ""
        ),
    )
    if record.state is PageState.FAILED:
        return row
    return {**row, "state": PageState.PENDING.value, "error": None}  # the run was stopped
