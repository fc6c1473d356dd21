"""A few pages of one document are read on the CPU."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path

import structlog

from models.document import Document, MediaType
from models.errors import DocumentEncrypted
from models.pool import Queue
from pipeline.store import PagesToRead, SubmissionTerms
from workers.bootstrap import build_pdf_engine
from workers.cluster.host import Host
from workers.cluster.intake_stage import tickets_after_intake
from workers.cluster.observed import Work, nothing_found, observed_work
from workers.messages import PageAttemptFailed, PageEscalated
from workers.page_reading import PageReader
from workers.reading_opening import open_document_reading

log = structlog.get_logger()


def read_pages(host: Host) -> Counter[Queue]:
    """One claim's pages, and the tickets that follow; none where nothing waits. Tickets of pages that were claimed and
    have none of their own are taken out of the queue. A page that was not begun goes back, when the turn is over, the
    process is to end or the machine has no room for it. Raises ``EngineUnavailable``, ``StoreUnavailable``
    and ``DiskFull``."""
    with host.turn():
        weights = host.deployment.settings.pool.weights
        work = host.store.pool.claim_pages(
            owner=host.owner, lease_s=host.lease_s, max_pages=host.pace.pages, weights=weights
        )
        if work is None:
            return nothing_found(Queue.OCR)
        with observed_work(
            Queue.OCR,
            host.owner,
            work.terms,
            document_id=work.document.document_id,
            reading_id=work.reading_id,
            page_numbers=work.page_numbers,
        ) as seen:
            return _ended(host, work, seen)


def _ended(host: Host, work: PagesToRead, seen: Work) -> Counter[Queue]:
    tickets = _read(host, work, seen) if _is_ours(host, work) else _moved(host, work)
    weights = host.deployment.settings.pool.weights
    given_back = host.store.pool.give_back_pages(work, owner=host.owner, weights=weights)
    tickets[Queue.OCR] += given_back - (len(work.page_numbers) - 1)
    tickets[Queue.ASSEMBLE] += host.store.pool.sources_read(work.reading_id)
    return tickets


def _is_ours(host: Host, work: PagesToRead) -> bool:
    """Whether this worker's engines and settings are those that the document was taken in with."""
    settings = host.settings_of(work.terms)
    return host.fingerprint(settings, work.terms.cost_centre).whole == work.fingerprint


def _moved(host: Host, work: PagesToRead) -> Counter[Queue]:
    """Workers of two versions are at work, as while the pool is upgraded: what the other ones have not read is read
    under this one's name, so that no document is read half by each."""
    terms = work.terms
    opened = open_document_reading(
        host.store.pages,
        host.store.ledger,
        work.document,
        host.fingerprint(host.settings_of(terms), terms.cost_centre),
        host.account_of(terms),
        force=False,
        submission_id=terms.submission_id,
        books_cache_hit=False,
    )
    moved = host.store.pool.move_sources(work.reading_id, opened.reading_id)
    log.warning("reading_moved", reading_id=work.reading_id, to=opened.reading_id, sources=moved)
    tickets = tickets_after_intake(opened)
    tickets[Queue.ASSEMBLE] += host.store.pool.sources_read(opened.reading_id)
    return tickets


def _read(host: Host, work: PagesToRead, seen: Work) -> Counter[Queue]:
    settings = host.settings_of(work.terms)
    reader = PageReader(
        settings=settings,
        policy=host.deployment.policy,
        plan=host.deployment.plan,
        store=host.store,
        blobs=host.blobs,
        engines=host.engines(settings),
        owner=host.owner,
    )
    tickets: Counter[Queue] = Counter()
    pages_read = 0
    turn_ends = host.pace.turn_ends(host.is_stopping)
    for end in reader.read_claimed(
        work.reading_id,
        work.document,
        work.page_numbers,
        host.account_of(work.terms),
        password_of(host, work.document, work.terms),
        stop_after=turn_ends,
    ):
        seen.page_ended(end)
        pages_read += 1
        tickets[Queue.VLM] += isinstance(end, PageEscalated)
        tickets[Queue.OCR] += isinstance(end, PageAttemptFailed) and not end.gave_up
    host.pace.note_turn(pages_read)
    return tickets


def password_of(host: Host, document: Document, terms: SubmissionTerms) -> str | None:
    """The one of the submission's passwords that opens the document; None where it needs none, or none opens it."""
    passwords = host.passwords_of(terms)
    if not passwords or document.media_type is not MediaType.PDF:
        return None
    return _opening(str(host.blobs.local_path(document.document_id)), passwords)


@lru_cache(maxsize=64)
def _opening(path: str, passwords: tuple[str, ...]) -> str | None:
    pdf = build_pdf_engine()
    for password in (None, *passwords):
        try:
            pdf.inspect(Path(path), password)
        except DocumentEncrypted:
            continue
        return password
    return None
