"""What came of a batch: the run's own files, and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.budget import BudgetMonth
from pipeline.chargeback.bills import summed_bills
from pipeline.outputs import failure_row
from pipeline.whole_files import write_rows
from workers.client.batch_rows import PageCounts, RowSpool, SourceEnd
from workers.events import (
    DocumentFound,
    DocumentRejectedEvent,
    DocumentReport,
    Event,
    FailureReport,
    IngestReport,
    PageFinished,
)
from workers.sources import RUN_FILES

PAGES_FILE, FAILURES_FILE = RUN_FILES


@dataclass(slots=True)
class Outcome:
    """Ends by the place of their source in the batch, and what is known of those that have not come to an end."""

    pages_read: int = 0
    pages_from_earlier_run: int = 0
    _ends: dict[int, SourceEnd] = field(default_factory=dict)
    _found: dict[str, DocumentFound] = field(default_factory=dict)
    _waits: set[str] = field(default_factory=set)

    def add(self, end: SourceEnd) -> Event | None:
        """The event that is still to be told of it."""
        self._ends[end.index] = end
        if end.failure is None:
            return None
        failure = end.failure
        return DocumentRejectedEvent(source=failure.source, code=failure.code, message=failure.message)

    def count(self, event: Event) -> None:
        match event:
            case DocumentFound(source=source):
                self._found[source] = event
            case PageFinished(from_earlier_run=from_earlier_run):
                self.pages_from_earlier_run += from_earlier_run
                self.pages_read += not from_earlier_run
            case _:
                pass

    def is_new_wait(self, code: str) -> bool:
        is_new = code not in self._waits
        self._waits.add(code)
        return is_new

    @property
    def cost_centres(self) -> frozenset[str]:
        """Of those whose documents were read."""
        return frozenset(end.cost_centre for end in self._in_order if end.cost_centre is not None)

    def write_rows(self, out_dir: Path, spool: RowSpool) -> None:
        """Raises OutputNotWritable."""
        rows = (end.rows for end in self._in_order if end.rows is not None)
        write_rows(out_dir / PAGES_FILE, (row for one in rows for row in spool.read(one)))
        write_rows(
            out_dir / FAILURES_FILE,
            (failure_row(one.source, one.code, one.message) for one in self._failures),
        )

    def report(
        self,
        names: Sequence[str],
        *,
        budgets: tuple[BudgetMonth, ...],
        elapsed_s: float,
        is_interrupted: bool,
    ) -> IngestReport:
        """``names`` are those of all sources, in order."""
        counts = PageCounts()
        for end in self._in_order:
            if end.counts is not None:
                counts.add(end.counts)
        return IngestReport(
            documents=tuple(self._documents(names)),
            failures=self._failures,
            pages_by_reason=dict(counts.reasons),
            visual_tokens_if_all=counts.visual_tokens_if_all,
            visual_tokens_triaged=counts.visual_tokens_triaged,
            pages_by_degradation=dict(counts.degraded),
            vlm_calls=counts.vlm_calls,
            vlm_prompt_tokens=counts.prompt_tokens,
            vlm_completion_tokens=counts.completion_tokens,
            bills=summed_bills(bill for end in self._in_order for bill in end.bills),
            budgets=budgets,
            pages_read=self.pages_read,
            pages_from_earlier_run=self.pages_from_earlier_run,
            failed_pages=counts.failed,
            elapsed_s=elapsed_s,
            is_interrupted=is_interrupted,
        )

    @property
    def _in_order(self) -> Sequence[SourceEnd]:
        return [self._ends[index] for index in sorted(self._ends)]

    @property
    def _failures(self) -> tuple[FailureReport, ...]:
        return tuple(end.failure for end in self._in_order if end.failure is not None)

    def _documents(self, names: Sequence[str]) -> Iterator[DocumentReport]:
        """Those that ended, and those that the server goes on with."""
        for index, name in enumerate(names):
            end, found = self._ends.get(index), self._found.get(name)
            if end is not None and end.report is not None:
                yield end.report
            elif end is None and found is not None:
                yield DocumentReport(
                    source=name,
                    document_id=found.document_id,
                    page_count=found.page_count,
                    pages_by_route={},
                    failed_pages=0,
                    elapsed_s=0.0,
                    is_written=False,
                    same_bytes_as=found.same_bytes_as,
                )
