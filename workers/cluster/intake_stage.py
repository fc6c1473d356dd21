"""A source whose bytes have arrived becomes a document with pages that wait, or is refused."""

from __future__ import annotations

from collections import Counter

from models.document import Document
from models.errors import (
    BudgetSpent,
    BudgetUnusable,
    DoctriageError,
    DocumentRejected,
    EngineUnavailable,
    SettingsError,
)
from models.pool import Queue
from pipeline.settings import Settings
from pipeline.store import OpenedReading, SourceToTakeIn
from workers.bootstrap import build_pdf_engine
from workers.cluster.host import Host
from workers.cluster.observed import Work, nothing_found, observed_work
from workers.cluster.wishes import Wishes
from workers.document_intake import DocumentIntake
from workers.reading_opening import open_document_reading
from workers.run_budgets import require_budget

REFUSALS = (DocumentRejected, BudgetSpent, BudgetUnusable, SettingsError, EngineUnavailable, ValueError)
"""What no other worker of the pool would do better with: it has the same settings."""


def take_in(host: Host) -> Counter[Queue]:
    """One source, and the tickets that follow; none where nothing waits. Raises ``StoreUnavailable``, and the source
    is given back."""
    with host.turn():
        source = host.store.pool.claim_source(
            owner=host.owner, lease_s=host.lease_s, weights=host.deployment.settings.pool.weights
        )
        if source is None:
            return nothing_found(Queue.INTAKE)
        with observed_work(Queue.INTAKE, host.owner, source.terms, source_id=source.source_id) as work:
            return _taken_in(host, source, work)


def _taken_in(host: Host, source: SourceToTakeIn, work: Work) -> Counter[Queue]:
    try:
        settings = host.settings_of(source.terms)
        document = _inspected(host, settings, source)
        work.learn(document_id=document.document_id)
        opened = _opened(host, settings, source, document)
    except REFUSALS as error:
        code = error.code if isinstance(error, DoctriageError) else SettingsError.code
        work.refuse(code)
        host.store.pool.refuse_source(
            source.source_id, owner=host.owner, code=code, message=_refusal(source.name, error)
        )
        return Counter()
    work.learn(reading_id=opened.reading_id)
    host.store.pool.source_has_reading(
        source.source_id,
        owner=host.owner,
        reading_id=opened.reading_id,
        document_id=document.document_id,
    )
    return tickets_after_intake(opened)


def _refusal(name: str, error: Exception) -> str:
    """For whoever submitted, who has other settings, and other engines, than the worker that refuses."""
    if isinstance(error, SettingsError | EngineUnavailable):
        return f"{name}: refused by a worker of the pool: {error}"
    return f"{name}: {error}"


def _inspected(host: Host, settings: Settings, source: SourceToTakeIn) -> Document:
    intake = DocumentIntake(settings=settings, pdf=build_pdf_engine, blobs=host.blobs, store=host.store)
    document, _ = intake.inspect_blob(source.blob_id, host.passwords_of(source.terms))
    return document


def _opened(host: Host, settings: Settings, source: SourceToTakeIn, document: Document) -> OpenedReading:
    """Bytes that the submission has brought before, under another name, are neither read again nor a cache hit."""
    terms, account = source.terms, host.account_of(source.terms)
    require_budget(host.store.budgets, settings, account, host.deployment.plan)
    fingerprint = host.fingerprint(settings, terms.cost_centre)
    is_again = host.store.pool.is_taken_in(terms.submission_id, document.document_id, fingerprint.whole)
    return open_document_reading(
        host.store.pages,
        host.store.ledger,
        document,
        fingerprint,
        account,
        force=Wishes.from_json(terms.wishes).force and not is_again,
        submission_id=terms.submission_id,
        books_cache_hit=not is_again,
    )


def tickets_after_intake(opened: OpenedReading) -> Counter[Queue]:
    """One for each page; whoever takes several pages at a time takes their tickets too."""
    return Counter(
        {
            Queue.OCR: len(opened.pending),
            Queue.VLM: len(opened.awaiting_vlm),
            Queue.ASSEMBLE: int(opened.is_complete),
        }
    )
