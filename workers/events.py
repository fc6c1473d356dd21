"""What ``workers.local.ingest`` is asked, what it tells while it works and what it reports at the end.

Importing this module is cheap: it loads no engine, no database and no image library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from models.budget import BudgetMonth
from models.page import Route
from pipeline.chargeback.bills import SubmissionBill


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """``paths`` are files and folders (walked recursively). ``formats`` names the files written per document.

    ``passwords`` are tried in turn on every encrypted PDF; they are never stored, logged or shown.
    ``force`` reads pages again that an earlier run has finished.
    """

    paths: tuple[Path, ...]
    out_dir: Path
    cost_centre: str | None = None
    formats: tuple[str, ...] = ("markdown", "json")
    passwords: tuple[str, ...] = field(default=(), repr=False)
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesFound:
    """The first event: so many sources will be heard of, each as a document found or rejected. The reading began
    ``begun_before_s`` ago, where somebody comes to it later."""

    count: int
    begun_before_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRenamed:
    """The ``wanted`` name was taken or cannot be written; the document goes by ``source`` from here on."""

    source: str
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFound:
    """Intake took the document. ``same_bytes_as`` names the source whose pages it shares: their events
    carry that name, so a progress bar's total is the sum of ``page_count`` where it is None, once every
    source has been heard of."""

    source: str
    document_id: str
    page_count: int
    same_bytes_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRejectedEvent:
    """Intake refused the source; the row is in ``failures.jsonl`` too."""

    source: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFinished:
    """A page has its result. ``elapsed_s`` is what reading it took, also when ``from_earlier_run``."""

    source: str
    page_number: int
    route: Route
    elapsed_s: float
    from_earlier_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesChosen:
    """Only so many of the pages found will be read, as a sample of all."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAwaitsVlm:
    """A page is read on the CPU and needs the VLM, which this run does not ask."""

    source: str
    page_number: int
    from_earlier_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRetried:
    """An attempt on a page failed and the page will be tried again."""

    source: str
    page_number: int
    attempt: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGivenUp:
    """A page failed for good; its document is written all the same, with the page shown as failed."""

    source: str
    page_number: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFinished:
    """The document's files are written. ``outputs`` are their paths."""

    source: str
    document_id: str
    page_count: int
    failed_pages: int
    outputs: tuple[Path, ...]


Event = (
    SourcesFound
    | SourceRenamed
    | DocumentFound
    | DocumentRejectedEvent
    | PagesChosen
    | PageFinished
    | PageAwaitsVlm
    | PageRetried
    | PageGivenUp
    | DocumentFinished
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """One source that was taken. ``elapsed_s`` is the sum over its pages; ``is_written`` is False after an
    interruption, for a document that was not finished."""

    source: str
    document_id: str
    page_count: int
    pages_by_route: Mapping[Route, int]
    failed_pages: int
    elapsed_s: float
    is_written: bool
    same_bytes_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """One source that was rejected: a row of ``failures.jsonl``."""

    source: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """``pages_by_reason`` and the token sums count every page once, however many sources share its bytes.

    ``visual_tokens_if_all`` is the price in visual tokens of sending every page that is not blank to the VLM,
    ``visual_tokens_triaged`` that of the pages triage would escalate. ``pages_by_degradation`` says why pages that
    needed the VLM went without it (``DegradedCode``). The VLM's calls and tokens are all that was booked about
    these pages, in earlier runs too; ``bills`` are what this run has booked, one a currency. ``budgets`` are
    those of its cost centre of which more is spent than their warning allows. ``elapsed_s`` is
    wall-clock time. ``is_interrupted``: stopped by Ctrl-C; the same command goes on where it stopped.
    ``submission_id``: None where it was stopped before it began.
    """

    documents: tuple[DocumentReport, ...]
    failures: tuple[FailureReport, ...]
    pages_by_reason: Mapping[str, int]
    visual_tokens_if_all: int
    visual_tokens_triaged: int
    pages_by_degradation: Mapping[str, int]
    vlm_calls: int
    vlm_prompt_tokens: int
    vlm_completion_tokens: int
    bills: tuple[SubmissionBill, ...]
    budgets: tuple[BudgetMonth, ...]
    pages_read: int
    pages_from_earlier_run: int
    failed_pages: int
    elapsed_s: float
    is_interrupted: bool
    submission_id: int | None = None
