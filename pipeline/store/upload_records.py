"""What the store knows of documents that came through the API. Times are Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models.document_state import DocumentState
from models.errors import Cancelled
from models.pool import SourceState, SubmissionState
from models.tables import PageState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpload:
    """All that is entered for a document whose bytes are in the blob store under ``blob_id``. ``request_sha256`` is
    that of all that came with the ``idempotency_key``; ``details`` are the sender's own words about it. No more than
    ``max_open_documents`` of the key may be open then, None for any number."""

    upload_id: str
    name: str
    output_stem: str
    blob_id: str
    byte_count: int
    cost_centre: str
    key_id: int | None
    submitter: str | None
    priority: int
    wishes: Mapping[str, Any]
    sealed_passwords: str | None = field(default=None, repr=False)
    traceparent: str | None = None
    idempotency_key: str | None = None
    request_sha256: str | None = None
    details: Mapping[str, Any] | None = None
    callback_url: str | None = None
    max_open_documents: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """``is_new`` is false for a request that came before, whose upload this is."""

    upload_id: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRecord:
    """An upload, its submission, its one source and, once it was taken in, its document. ``pages`` by state,
    ``routes`` of those that are done; of those ``degraded_pages`` went without the VLM."""

    upload_id: str
    submission_id: int
    source_id: int
    cost_centre: str
    key_id: int | None
    details: Mapping[str, Any] | None
    callback_url: str | None
    created_at_s: float
    erased_at_s: float | None
    submission_state: SubmissionState
    priority: int
    wishes: Mapping[str, Any]
    finished_at_s: float | None
    name: str
    source_state: SourceState
    reading_id: int | None
    blob_id: str | None
    byte_count: int | None
    error_code: str | None
    error_message: str | None
    document_id: str | None
    media_type: str | None
    page_count: int | None
    pages: Mapping[PageState, int]
    routes: Mapping[str, int]
    degraded_pages: int

    @property
    def state(self) -> DocumentState:
        if self.submission_state is SubmissionState.OPEN:
            is_queued = self.source_state is SourceState.RECEIVED
            return DocumentState.QUEUED if is_queued else DocumentState.READING
        is_cancelled = self.submission_state is SubmissionState.CANCELLED
        if is_cancelled and self.error_code in (None, Cancelled.code):
            return DocumentState.CANCELLED
        return DocumentState.FINISHED if self.error_code is None else DocumentState.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadFilter:
    """``cost_centre`` is seen with those below it; None sees all. ``name`` is a part of the document's name."""

    cost_centre: str | None = None
    state: DocumentState | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPlace:
    """Where a list goes on: after this one."""

    created_at_s: float
    upload_id: str
