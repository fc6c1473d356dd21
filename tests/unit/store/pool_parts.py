"""A pool's store in tests: submissions, documents and claims in few words."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from models.document import Document, MediaType
from models.page import Route
from models.pool import DEFAULT_PRIORITY
from pipeline.chargeback.entries import Account, LedgerEntry, Payer, failed_page_entry
from pipeline.store import PagesToRead, PoolLimits, SourceToTakeIn, Store
from tests.unit.store.booking import BOOK, WHEN

LIMITS: Final = PoolLimits(max_waiting_pages=1_000_000, max_waiting_sources=1_000_000)
LEASE_S: Final = 600.0


def entry_of(reading_id: int, page_number: int, document_id: str, submission_id: int) -> LedgerEntry:
    payer = Payer(cost_centre="harbour", submitter="ada", submission_id=submission_id)
    return failed_page_entry(
        Account(payer=payer, price_book=BOOK, model_id="qwen2.5-vl-7b-fp8"),
        document_id=document_id,
        reading_id=reading_id,
        page_number=page_number,
        code="read",
        is_final=True,
        cpu_s=0.5,
        when=WHEN,
    )


@dataclass(slots=True)
class Pool:
    """``weights`` are those of its claims."""

    store: Store
    weights: dict[str, float] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def open(self, cost_centre: str = "harbour", **changes: Any) -> int:
        wishes: dict[str, Any] = {
            "cost_centre": cost_centre,
            "submitter": "ada",
            "priority": DEFAULT_PRIORITY,
            "wishes": {"route": "auto"},
            "sealed_passwords": None,
            "traceparent": None,
            "limits": LIMITS,
        }
        return self.store.pool.open_submission(**{**wishes, **changes})

    def add(self, submission_id: int, name: str | None = None, **changes: Any) -> int:
        named = name or f"{next(self._numbers)}.pdf"
        wishes: dict[str, Any] = {
            "output_stem": named,
            "blob_id": "ab" * 32,
            "byte_count": 10,
            "limits": LIMITS,
        }
        return self.store.pool.add_source(submission_id, name=named, **{**wishes, **changes})

    def submit(
        self, pages: int, cost_centre: str = "harbour", *, document: Document | None = None, **changes: Any
    ) -> Submitted:
        """A sealed submission of one document that has been taken in. There is nothing else to be taken in."""
        submission_id = self.open(cost_centre, **changes)
        source_id = self.add(submission_id)
        self.store.pool.seal(submission_id)
        return self.take_in(document or new_document(pages), source_id)

    def take_in(self, document: Document, source_id: int | None = None) -> Submitted:
        source = self.claim_source("intake")
        assert source is not None
        assert source_id in (None, source.source_id)
        self.store.pages.save_document(document)
        reading_id = self.store.pages.open_reading(
            document, "f" * 64, force=False, submission_id=source.terms.submission_id
        ).reading_id
        assert self.store.pool.source_has_reading(
            source.source_id, owner="intake", reading_id=reading_id, document_id=document.document_id
        )
        return Submitted(source.terms.submission_id, source.source_id, reading_id, document)

    def claim_source(self, owner: str = "me") -> SourceToTakeIn | None:
        return self.store.pool.claim_source(owner=owner, lease_s=LEASE_S, weights=self.weights)

    def claim(self, owner: str = "me", *, max_pages: int = 1, lease_s: float = LEASE_S) -> PagesToRead | None:
        return self.store.pool.claim_pages(
            owner=owner, lease_s=lease_s, max_pages=max_pages, weights=self.weights
        )

    def finish(
        self,
        work: PagesToRead,
        owner: str = "me",
        *,
        awaits_vlm: bool = False,
        only: Sequence[int] = (),
        page: Mapping[str, Any] | None = None,
        completes: bool = True,
    ) -> None:
        """As a worker does with its pages, or with some of them."""
        for number in only or work.page_numbers:
            assert self.store.pages.finish_page(
                work.reading_id,
                number,
                owner=owner,
                page=page or {"page_number": number},
                summary={"page_number": number, "reasons": []},
                route=Route.OCR,
                elapsed_s=1.0,
                entry=entry_of(work.reading_id, number, work.document.document_id, work.terms.submission_id),
                awaits_vlm=awaits_vlm,
            )
        if completes and self.store.pages.complete_reading(work.reading_id):
            self.store.pool.sources_read(work.reading_id)

    def write(self, owner: str = "me") -> int | None:
        """The source that was assembled."""
        source = self.store.pool.claim_assembly(owner=owner, lease_s=LEASE_S, weights=self.weights)
        if source is None:
            return None
        assert self.store.pool.source_written(source.source_id, owner=owner, failed_pages=0)
        return source.source_id


@dataclass(frozen=True, slots=True)
class Submitted:
    submission_id: int
    source_id: int
    reading_id: int
    document: Document


def new_document(pages: int) -> Document:
    return Document(
        document_id=secrets.token_hex(32), media_type=MediaType.PDF, byte_count=10, page_count=pages
    )
