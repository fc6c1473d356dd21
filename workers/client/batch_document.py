"""One document of a batch: sent, followed, and its outputs brought home."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from models.document_state import DocumentState
from models.errors import (
    Cancelled,
    DocumentEncrypted,
    DocumentErased,
    SourceUnreadable,
    WrongPassword,
)
from models.page import Route
from pipeline.blobs.sources import opened_source, sha256_of
from pipeline.chargeback.bills import SubmissionBill
from pipeline.exports.formats import FORMATS
from workers.client.batch_order import BatchOrder, FirstSources, Writers
from workers.client.batch_rows import (
    DONE,
    FAILED,
    PageCounts,
    ReadPages,
    RowSpool,
    SourceEnd,
    failure_of,
    read_pages,
)
from workers.client.client import Client
from workers.client.records import (
    Document,
    DocumentEvent,
    Fault,
    PageSettled,
    PageSummary,
    bills_of,
    parsed,
)
from workers.client.uploads import new_key
from workers.events import (
    DocumentFinished,
    DocumentFound,
    DocumentReport,
    Event,
    FailureReport,
    PageFinished,
    PageGivenUp,
)
from workers.sources import Source

MOST_FAILED_BEFORE: Final = 20
"""Of one document in one output folder; after so many its key is a new one each time."""

ENCRYPTED: Final = frozenset({DocumentEncrypted.code, WrongPassword.code})
"""Sent again as they are, they would fail again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchParts:
    """What the documents of a batch share."""

    client: Client
    order: BatchOrder
    first_sources: FirstSources
    sending: threading.Semaphore
    writers: Writers
    spool: RowSpool
    tell: Callable[[Event], None]


def read_remotely(parts: BatchParts, index: int, source: Source) -> SourceEnd:
    """To its end. Raises ``SourceUnreadable``, Stopped, and what the client raises."""
    if source.problem is not None:
        raise SourceUnreadable(source.problem)
    digest = sha256_of(source.path)
    first = parts.first_sources.first(digest, source.name)
    trip = Trip(parts=parts, index=index, source=source, digest=digest, first=first)
    return trip.end(trip.read())


@dataclass(slots=True, kw_only=True)
class Trip:
    """``first`` names the source of the batch whose pages these are too."""

    parts: BatchParts
    index: int
    source: Source
    digest: str
    first: str
    _is_found: bool = False
    _earlier_pages: int = 0
    _was_over: bool = False
    _told: set[int] = field(default_factory=set)

    def read(self) -> Document:
        """Encrypted PDFs with each password in turn."""
        document = self._read(None)
        for password in self.parts.order.passwords:
            if document.error is None or document.error.code not in ENCRYPTED:
                break
            document = self._read(password)
        return document

    def end(self, document: Document) -> SourceEnd:
        if document.state is not DocumentState.FINISHED:
            return self._lost(document)
        pages, bills = self._pages(document), self._bills(document)
        name, document_id = self.source.name, document.document_id or self.digest
        outputs = tuple(self._brought_home(document, output) for output in self.parts.order.formats)
        page_count = document.page_count or 0
        self.parts.tell(
            DocumentFinished(
                source=name,
                document_id=document_id,
                page_count=page_count,
                failed_pages=pages.failed,
                outputs=outputs,
            )
        )
        return SourceEnd(
            index=self.index,
            report=DocumentReport(
                source=name,
                document_id=document_id,
                page_count=page_count,
                pages_by_route=pages.routes,
                failed_pages=pages.failed,
                elapsed_s=pages.elapsed_s,
                is_written=True,
                same_bytes_as=self._same_bytes_as,
            ),
            rows=pages.rows,
            counts=self._own(pages.counts),
            cost_centre=document.cost_centre,
            bills=bills,
        )

    def _lost(self, document: Document) -> SourceEnd:
        """Its pages are told all the same, where it has some."""
        pages = None if document.page_count is None else self._pages(document)
        return SourceEnd(
            index=self.index,
            failure=self._failure(document),
            rows=None if pages is None else pages.rows,
            counts=None if pages is None else self._own(pages.counts),
            bills=() if pages is None else self._bills(document),
        )

    def _pages(self, document: Document) -> ReadPages:
        self._tell_found(document)
        return read_pages(
            self.parts.client,
            document.id,
            source=self.source.name,
            document_id=document.document_id or self.digest,
            spool=self.parts.spool,
            on_page=self._tell_unheard,
        )

    def _bills(self, document: Document) -> tuple[SubmissionBill, ...]:
        """Nothing where an earlier run brought the document to its end."""
        if self._was_over:
            return ()
        return parsed(lambda told: bills_of(told, document.cost_centre), self.parts.client.cost(document.id))

    def _own(self, counts: PageCounts) -> PageCounts | None:
        return counts if self._same_bytes_as is None else None

    @property
    def _same_bytes_as(self) -> str | None:
        return None if self.first == self.source.name else self.first

    def _read(self, password: str | None) -> Document:
        document = self._sent(password)
        settled = sum(document.pages.get(state, 0) for state in (DONE, FAILED))
        self._earlier_pages = settled if document.is_replayed else 0
        self._was_over = document.is_replayed and not document.state.is_open
        if not document.state.is_open:
            return document
        return self.parts.client.wait(document.id, on_event=self._tell)

    def _sent(self, password: str | None) -> Document:
        """What the server has from the same command before, or else anew."""
        for key in self._keys(password):
            try:
                with self.parts.sending:
                    document = self._submitted(key, password)
            except DocumentErased:
                continue
            is_over = document.error is not None and document.error.code in ENCRYPTED
            if not (document.is_replayed and _is_lost(document)) or is_over:
                return document
        raise AssertionError("the last key is new")

    def _keys(self, password: str | None) -> Iterator[str]:
        for again in range(MOST_FAILED_BEFORE):
            yield self.parts.order.idempotency_key(self.source.name, self.digest, password, again)
        yield new_key()

    def _submitted(self, key: str, password: str | None) -> Document:
        options = self.parts.order.options_of(self.source.name, password)
        try:
            with opened_source(self.source.path, None) as file:
                return self.parts.client.submit(file, idempotency_key=key, **options)
        except OSError as error:
            raise SourceUnreadable(
                f"cannot be read ({error.strerror}); check that it is there and that you may read it"
            ) from error

    def _tell(self, event: DocumentEvent) -> None:
        if isinstance(event, PageSettled):
            self._tell_page(event)
        else:
            self._tell_found(event.document)

    def _tell_found(self, document: Document) -> None:
        if self._is_found or document.page_count is None:
            return
        self._is_found = True
        self.parts.tell(
            DocumentFound(
                source=self.source.name,
                document_id=document.document_id or self.digest,
                page_count=document.page_count,
                same_bytes_as=self._same_bytes_as,
            )
        )

    def _tell_page(self, page: PageSettled) -> None:
        """Pages that several sources share are told once."""
        if self._same_bytes_as is not None or page.page_number in self._told:
            return
        self._told.add(page.page_number)
        is_earlier = page.from_earlier_run or len(self._told) <= self._earlier_pages
        if page.state == FAILED or page.route is None:
            fault = page.error or Fault(code="page_failed", message="")
            self.parts.tell(
                PageGivenUp(
                    source=self.source.name,
                    page_number=page.page_number,
                    code=fault.code,
                    message=fault.message,
                )
            )
            return
        self.parts.tell(
            PageFinished(
                source=self.source.name,
                page_number=page.page_number,
                route=parsed(Route, page.route),
                elapsed_s=page.elapsed_s or 0.0,
                from_earlier_run=is_earlier,
            )
        )

    def _tell_unheard(self, page: PageSummary) -> None:
        """Of a document that was asked after, and not followed."""
        if page.state in (DONE, FAILED):
            self._tell_page(
                PageSettled(
                    page_number=page.page_number,
                    state=page.state,
                    route=page.route,
                    attempts=1,
                    elapsed_s=page.elapsed_s,
                    from_earlier_run=False,
                    error=page.error,
                )
            )

    def _brought_home(self, document: Document, output: str) -> Path:
        stem = self.parts.order.out_dir / self.source.output_stem
        path = stem.with_name(stem.name + FORMATS[output].suffix)
        with self.parts.writers.entered():
            return self.parts.client.result(document.id, output, to=path)

    def _failure(self, document: Document) -> FailureReport:
        """The server knows the document by the last part of its name alone."""
        name = self.source.name
        if document.error is None:
            return failure_of(
                name, Cancelled("it was cancelled at the server; the same command sends it again")
            )
        said = document.error.message.removeprefix(f"{document.name}: ")
        return FailureReport(source=name, code=document.error.code, message=f"{name}: {said}")


def _is_lost(document: Document) -> bool:
    return document.state in (DocumentState.FAILED, DocumentState.CANCELLED)
