"""The reading of a document is opened where earlier runs left it, and what they had read already is booked."""

from __future__ import annotations

from datetime import UTC, datetime

from models.document import Document
from pipeline.chargeback.entries import Account, cache_hit_entry
from pipeline.fingerprint import Fingerprint
from pipeline.store import LedgerStore, OpenedReading, PageStore, TakeOver


def open_document_reading(
    pages: PageStore,
    ledger: LedgerStore,
    document: Document,
    fingerprint: Fingerprint,
    account: Account,
    *,
    force: bool,
    submission_id: int | None = None,
    books_cache_hit: bool = True,
) -> OpenedReading:
    """``account`` is whose the cache hit is, in the ledger. With ``force`` every page is read again. ``submission_id``
    is the pool's, for which its pages are read. ``books_cache_hit`` is false where the same submission has opened the
    reading before: what is finished by now may be its own work."""
    opened = pages.open_reading(
        document,
        fingerprint.whole,
        force=force,
        takes_over=TakeOver(cpu_fingerprint=fingerprint.cpu, has_vlm=fingerprint.has_vlm),
        submission_id=submission_id,
    )
    if books_cache_hit:
        _book_cache_hit(ledger, document, opened, account)
    return opened


def _book_cache_hit(ledger: LedgerStore, document: Document, opened: OpenedReading, account: Account) -> None:
    """Pages that wait for the VLM were read on the CPU by an earlier run too."""
    cached_pages = len(opened.finished) + len(opened.awaiting_vlm)
    if cached_pages:
        ledger.book_cache_hit(
            cache_hit_entry(
                account,
                document_id=document.document_id,
                reading_id=opened.reading_id,
                cached_pages=cached_pages,
                when=datetime.now(UTC),
            )
        )
