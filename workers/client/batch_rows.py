"""What came of a document of a batch: its rows of ``pages.jsonl``, and what the report says of it."""

from __future__ import annotations

import json
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from models.errors import DoctriageError
from models.page import Route
from models.text import writable
from pipeline.chargeback.bills import SubmissionBill
from workers.client.client import Client
from workers.client.records import PageSummary, parsed
from workers.events import DocumentReport, FailureReport

DONE: Final = "done"
FAILED: Final = "failed"
PENDING: Final = "pending"


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a document's rows are in the spool."""

    start: int
    length: int


class RowSpool:
    """Rows as they come, on the disk. Threads may share it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 — open as long as the batch
        self._lock = threading.Lock()

    def close(self) -> None:
        self._file.close()

    def kept(self, rows: Iterable[Mapping[str, Any]]) -> Rows:
        written = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(
            "utf-8", "replace"
        )
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(written)
        return Rows(start, len(written))

    def read(self, rows: Rows) -> Iterator[Mapping[str, Any]]:
        with self._lock:
            self._file.seek(rows.start)
            written = self._file.read(rows.length)
        for line in written.split(b"\n")[:-1]:
            yield json.loads(line)


@dataclass(slots=True)
class PageCounts:
    """Sums over pages."""

    reasons: Counter[str] = field(default_factory=Counter)
    degraded: Counter[str] = field(default_factory=Counter)
    visual_tokens_if_all: int = 0
    visual_tokens_triaged: int = 0
    vlm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed: int = 0

    def count(self, page: PageSummary) -> None:
        self.failed += page.state == FAILED
        if page.route is None:
            return
        tokens = page.visual_tokens_if_vlm or 0
        self.reasons.update({str(reason["signal"]) for reason in page.reasons})
        self.visual_tokens_if_all += tokens if page.route != Route.BLANK else 0
        self.visual_tokens_triaged += tokens if page.escalate else 0
        if page.degraded is not None:
            self.degraded[str(page.degraded["code"])] += 1
        self.vlm_calls += page.vlm_calls
        self.prompt_tokens += page.prompt_tokens
        self.completion_tokens += page.completion_tokens

    def add(self, other: PageCounts) -> None:
        self.reasons.update(other.reasons)
        self.degraded.update(other.degraded)
        self.visual_tokens_if_all += other.visual_tokens_if_all
        self.visual_tokens_triaged += other.visual_tokens_triaged
        self.vlm_calls += other.vlm_calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.failed += other.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEnd:
    """What became of the source at a place in the batch: a report and rows, or a failure; and what this run made it
    cost."""

    index: int
    failure: FailureReport | None = None
    report: DocumentReport | None = None
    rows: Rows | None = None
    counts: PageCounts | None = None
    cost_centre: str | None = None
    bills: tuple[SubmissionBill, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPages:
    """``counts`` are those of pages that no other source of the batch has told."""

    routes: Mapping[Route, int]
    failed: int
    elapsed_s: float
    counts: PageCounts
    rows: Rows


def read_pages(
    client: Client,
    upload_id: str,
    *,
    source: str,
    document_id: str,
    spool: RowSpool,
    on_page: Callable[[PageSummary], None],
) -> ReadPages:
    """Raises what ``Client.pages`` raises."""
    routes: Counter[Route] = Counter()
    counts = PageCounts()
    rows: list[Mapping[str, Any]] = []
    elapsed_s = 0.0
    for page in client.pages(upload_id):
        if page.route is not None:
            routes[parsed(Route, page.route)] += 1
            elapsed_s += page.elapsed_s or 0.0
        on_page(page)
        counts.count(page)
        rows.append(page_row_of(source, document_id, page))
    return ReadPages(
        routes=dict(routes), failed=counts.failed, elapsed_s=elapsed_s, counts=counts, rows=spool.kept(rows)
    )


def page_row_of(source: str, document_id: str, page: PageSummary) -> Mapping[str, Any]:
    """As ``pipeline.outputs.page_row`` makes it."""
    return {
        "source": writable(source),
        "document_id": document_id,
        "page_number": page.page_number,
        "state": page.state if page.state in (DONE, FAILED) else PENDING,
        "route": page.route,
        "escalate": page.escalate,
        "reasons": list(page.reasons),
        "text_chars": page.text_chars,
        "visual_tokens_if_vlm": page.visual_tokens_if_vlm,
        "degraded": page.degraded,
        "vlm_calls": page.vlm_calls,
        "prompt_tokens": page.prompt_tokens,
        "completion_tokens": page.completion_tokens,
        "elapsed_s": None if page.elapsed_s is None else round(page.elapsed_s, 3),
        "error": None if page.error is None else {"code": page.error.code, "message": page.error.message},
    }


def failure_of(source: str, error: DoctriageError) -> FailureReport:
    return FailureReport(source=source, code=error.code, message=f"{source}: {error}")
