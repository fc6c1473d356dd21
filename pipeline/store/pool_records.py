"""What the pool's store gives to those who work in it. Times are Unix seconds, priorities 0 (last) to 9 (first)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.document import Document
from models.pool import Queue, SourceState, SubmissionState
from models.tables import PageState
from models.transcription import Attempt
from pipeline.store.ledger import BookedEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """How much may wait before the pool takes on no more, and three quarters of it of one team: pages that nobody reads
    yet, and sources whose bytes have arrived and were not looked into."""

    max_waiting_pages: int
    max_waiting_sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionTerms:
    """What a worker has to know of the submission that it works for. ``wishes`` are what the submitter chose,
    ``sealed_passwords`` is encrypted, ``traceparent`` the W3C trace context that it came with."""

    submission_id: int
    cost_centre: str
    submitter: str | None
    priority: int
    wishes: Mapping[str, Any]
    sealed_passwords: str | None
    traceparent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceToTakeIn:
    """A source whose bytes have arrived, under ``blob_id``. ``losses``: workers lost over it before."""

    source_id: int
    name: str
    output_stem: str
    blob_id: str
    byte_count: int
    losses: int
    terms: SubmissionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesToRead:
    """Pages of one reading, one after the other, that are the owner's now. ``source_name`` is what the submission calls
    the document. A page with ``losses`` comes alone."""

    reading_id: int
    fingerprint: str
    document: Document
    source_name: str
    page_numbers: tuple[int, ...]
    losses: int
    terms: SubmissionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToTranscribe:
    """A page that the owner may send to the VLM. ``page`` is its JSON as read on the CPU, ``calls_before`` how many
    calls have been made about it."""

    reading_id: int
    fingerprint: str
    document: Document
    source_name: str
    page_number: int
    losses: int
    page: Mapping[str, Any]
    calls_before: int
    terms: SubmissionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceToAssemble:
    """A source whose pages are all done or failed, and whose outputs are the owner's to write."""

    source_id: int
    name: str
    output_stem: str
    reading_id: int
    document: Document
    losses: int
    terms: SubmissionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionSummary:
    """``pages`` are those of the sources that have been taken in; ``settled_pages`` of them are done or failed, and
    ``failed_pages`` failed. ``failed_sources`` were refused or cancelled, or not one of their pages could be read;
    the pages of ``unopened_sources`` are not known yet."""

    submission_id: int
    state: SubmissionState
    is_sealed: bool
    priority: int
    cost_centre: str
    submitter: str | None
    created_at_s: float
    finished_at_s: float | None
    sources: int
    settled_sources: int
    failed_sources: int
    unopened_sources: int
    pages: int
    settled_pages: int
    failed_pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionProgress:
    """Where a submission stands. States without a source or page are missing. ``routes`` are those of done pages."""

    submission_id: int
    state: SubmissionState
    is_sealed: bool
    priority: int
    cost_centre: str
    submitter: str | None
    created_at_s: float
    finished_at_s: float | None
    sources: Mapping[SourceState, int]
    failed_sources: int
    pages: Mapping[PageState, int]
    routes: Mapping[str, int]

    @property
    def settled_pages(self) -> int:
        return self.pages.get(PageState.DONE, 0) + self.pages.get(PageState.FAILED, 0)

    @property
    def total_pages(self) -> int:
        """Of the sources that have been taken in."""
        return sum(self.pages.values())

    @property
    def total_sources(self) -> int:
        return sum(self.sources.values())

    @property
    def is_over(self) -> bool:
        return self.state is not SubmissionState.OPEN

    def open_s(self, now_s: float) -> float:
        """From its opening to its end, or until now."""
        return max(0.0, (now_s if self.finished_at_s is None else self.finished_at_s) - self.created_at_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPage:
    """A page of one of the submission's sources that is done or failed. ``settled_at_s`` is since when it is so for the
    source: one that was ``from_earlier_run`` is settled when the source is taken in."""

    source_id: int
    source_name: str
    reading_id: int
    page_number: int
    state: PageState
    route: str | None
    elapsed_s: float | None
    attempts: int
    losses: int
    error_code: str | None
    error_message: str | None
    settled_at_s: float
    from_earlier_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBacklog:
    """What a queue's workers have before them: sources, or pages. ``oldest_at_s`` is when the oldest submission that
    waits there was opened; ``losses`` are those of what waits or is held."""

    waiting: int
    oldest_at_s: float | None
    held: int
    losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    queues: Mapping[Queue, QueueBacklog]

    def waiting(self, queue: Queue) -> int:
        return self.queues[queue].waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPage:
    """A page that failed for good. ``source_name`` is that of the newest source that has it."""

    submission_id: int
    source_name: str
    document_id: str
    reading_id: int
    page_number: int
    code: str
    message: str
    attempts: int
    losses: int
    settled_at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvidence:
    """All that is on record about a page: the ledger's entries and the calls to the VLM."""

    document_id: str
    reading_id: int
    page_number: int
    state: PageState
    attempts: int
    losses: int
    error_code: str | None
    error_message: str | None
    entries: tuple[BookedEntry, ...]
    calls: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaimed:
    """What was taken from owners that are gone: ``freed_pages`` were given back, ``charged_pages`` of all were being
    worked on, ``given_up_pages`` were that too often; sources likewise. ``queues`` have more in them than before."""

    freed_pages: int
    charged_pages: int
    given_up_pages: int
    closed_calls: int
    freed_sources: int
    refused_sources: int
    freed_slots: int
    queues: frozenset[Queue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What stood still and goes on."""

    sealed_submissions: int
    finished_submissions: int
    completed_readings: int
    read_sources: int
    cancelled_sources: int
    handed_on_readings: int
    queues: frozenset[Queue]
