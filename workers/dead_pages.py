"""Pages of the pool that failed for good: what is on record about one, and putting them back to work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from models.document import Document
from models.errors import BrokerUnavailable, PageNotFound, SettingsError
from models.pool import Queue
from pipeline.blobs import open_blobs
from pipeline.blobs.copies import blob_name
from pipeline.settings import Settings
from pipeline.store import DeadPage, PageEvidence, Store
from workers.cluster.connection import pool_tickets
from workers.references import document_id_of

ALL_OF_THEM: Final = 2**31 - 1
LIST_COMMAND: Final = "`doctriage dead list` shows those that failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPageRecord:
    """``blob_place`` is where the document's bytes are: a path, or an address."""

    page: DeadPage
    evidence: PageEvidence
    document: Document | None
    blob_place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """``refused`` pages belong to cancelled submissions alone, or were put back by somebody else. ``broker_problem``:
    why no ticket was sent."""

    pages: tuple[DeadPage, ...]
    refused: tuple[DeadPage, ...]
    broker_problem: str | None

    @property
    def submissions(self) -> tuple[int, ...]:
        return tuple(sorted({page.submission_id for page in self.pages}))


def find_dead_page(
    store: Store, reference: str, page_number: int, *, submission_id: int | None = None
) -> DeadPage:
    """The one that failed last, where the document was read more than once. ``reference`` is as for
    ``doctriage explain``. Raises ``PageNotFound``."""
    document_id = document_id_of(store, reference)
    found = store.pool.dead_pages(submission_id, document_id=document_id, limit=ALL_OF_THEM)
    page = next((page for page in found if page.page_number == page_number), None)
    if page is None:
        where = "" if submission_id is None else f" in submission {submission_id}"
        raise PageNotFound(
            f"{reference}: page {page_number} has not failed in the pool{where}; {LIST_COMMAND}"
        )
    return page


def dead_page_record(store: Store, settings: Settings, page: DeadPage) -> DeadPageRecord:
    blobs = open_blobs(settings.home.absolute(), settings.blobs)
    return DeadPageRecord(
        page=page,
        evidence=store.pool.evidence_of(page.reading_id, page.page_number),
        document=store.pages.document(page.document_id),
        blob_place=f"{blobs.place}/{blob_name(page.document_id)}",
    )


def dead_pages_of(store: Store, submission_id: int | None) -> tuple[DeadPage, ...]:
    """All of them. Raises ``SubmissionNotFound``."""
    if submission_id is not None:
        store.pool.progress(submission_id)
    return store.pool.dead_pages(submission_id, limit=ALL_OF_THEM)


def retry(store: Store, settings: Settings, pages: Iterable[DeadPage]) -> Retried:
    """Each is read again from the beginning, and its document's outputs are written again; its submission is open until
    then. Tickets are sent where the broker answers; where it does not, the reconciler sends them."""
    done: dict[bool, list[DeadPage]] = {True: [], False: []}
    for page in pages:
        done[store.pool.retry_dead(page.reading_id, page.page_number)].append(page)
    problem = _send_tickets(settings, len(done[True])) if done[True] else None
    return Retried(pages=tuple(done[True]), refused=tuple(done[False]), broker_problem=problem)


def _send_tickets(settings: Settings, pages: int) -> str | None:
    """Why there are none; None where they are sent."""
    try:
        pool_tickets(settings).send(Queue.OCR, pages)
    except (SettingsError, BrokerUnavailable) as error:
        return str(error)
    return None
