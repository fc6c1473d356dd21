"""Pages whose worker is gone: which of them it was working on, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, and_, select, update
from sqlalchemy.orm import Session

from models.errors import WorkerLost
from models.page import Route
from models.pool import Queue
from models.tables import PageRow, PageState, ReadingRow, SubmissionRow
from models.transcription import Degradation, DegradedCode
from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE
from pipeline.chargeback.entries import Account, Payer, failed_page_entry
from pipeline.chargeback.price_book import PriceBook
from pipeline.outputs import page_row, untranscribed_page_json
from pipeline.store.abandoned_calls import close_abandoned
from pipeline.store.database import rows_changed
from pipeline.store.ledger import insert_cpu_entry
from pipeline.store.page_statements import HELD, result_columns, settlement
from pipeline.store.transcriptions import closed_attempts

QUEUE_OF: Final = {PageState.RUNNING: Queue.OCR, PageState.TRANSCRIBING: Queue.VLM}
BACK_TO: Final = {PageState.RUNNING: PageState.PENDING, PageState.TRANSCRIBING: PageState.AWAITING_VLM}

FAILED: Final[Mapping[str, object]] = {
    "state": PageState.FAILED,
    "route": None,
    "elapsed_s": None,
    "degraded_code": None,
    "summary": None,
    "result": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPage:
    """A page as its owner left it, and on whose account it is."""

    reading_id: int
    page_number: int
    owner: str
    state: PageState
    losses: int
    document_id: str
    payer: Payer


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPages:
    """``freed`` were given back, ``charged`` were being worked on, ``given_up`` are settled without having been read
    or transcribed. ``ended_readings`` may be complete with that, ``queues`` have more in them."""

    freed: int
    charged: int
    given_up: int
    closed_calls: int
    ended_readings: tuple[int, ...]
    queues: frozenset[Queue]


def reclaim_pages(
    session: Session, is_lost: ColumnElement[bool], *, max_losses: int, price_book: PriceBook
) -> LostPages:
    """Give back the pages that the condition holds for. Of each owner and reading the first one is charged: workers go
    through theirs in order. One that was lost ``max_losses`` times is not tried again."""
    lost = _lost_pages(session, is_lost)
    first = {(page.reading_id, page.owner): page for page in reversed(lost)}
    charged = tuple(first.values())
    given_up = tuple(page for page in charged if page.losses + 1 >= max_losses)
    for page in lost:
        if page not in charged:
            _free(session, page)
    for page in charged:
        _charge(session, page, price_book, is_given_up=page in given_up)
    closed_calls = close_abandoned(session, price_book)
    for page in given_up:
        if page.state is PageState.TRANSCRIBING:
            _leave_untranscribed(session, page)
    freed = tuple(page for page in lost if page not in given_up)
    return LostPages(
        freed=len(freed),
        charged=len(charged),
        given_up=len(given_up),
        closed_calls=closed_calls,
        ended_readings=tuple(sorted({page.reading_id for page in given_up})),
        queues=frozenset(QUEUE_OF[page.state] for page in freed),
    )


def _lost_pages(session: Session, is_lost: ColumnElement[bool]) -> tuple[LostPage, ...]:
    """Of the pool's readings, in order. Those that somebody is just settling or taking back are left to him."""
    query = (
        select(
            PageRow.reading_id,
            PageRow.page_number,
            PageRow.lease_owner,
            PageRow.state,
            PageRow.losses,
            ReadingRow.document_id,
            SubmissionRow.submission_id,
            SubmissionRow.cost_centre,
            SubmissionRow.submitter,
        )
        .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
        .join(SubmissionRow, SubmissionRow.submission_id == ReadingRow.submission_id)
        .where(PageRow.state.in_(HELD), is_lost)
        .order_by(PageRow.reading_id, PageRow.page_number)
        .with_for_update(of=PageRow, key_share=True, skip_locked=True)
    )
    return tuple(
        LostPage(
            reading_id=row.reading_id,
            page_number=row.page_number,
            owner=row.lease_owner or "",
            state=row.state,
            losses=row.losses,
            document_id=row.document_id,
            payer=Payer(
                cost_centre=row.cost_centre or DEFAULT_COST_CENTRE,
                submitter=row.submitter,
                submission_id=row.submission_id,
            ),
        )
        for row in session.execute(query)
    )


def _free(session: Session, page: LostPage, **values: object) -> None:
    values = {"state": BACK_TO[page.state], **values}
    free = settlement(page.reading_id, page.page_number, owner=page.owner, held_as=page.state, **values)
    rows_changed(session, free)


def _charge(session: Session, page: LostPage, price_book: PriceBook, *, is_given_up: bool) -> None:
    """The CPU's attempt is booked; a call to the VLM has been, or is closed as abandoned."""
    if page.state is PageState.TRANSCRIBING:
        _free(session, page, losses=page.losses + 1)
        return
    told = f"the worker that was reading page {page.page_number} was lost"
    if is_given_up:
        told = (
            f"{told}, {page.losses + 1} times; look at what the workers say of it, and at their memory, and "
            "`doctriage dead retry` puts it back"
        )
    _free(
        session,
        page,
        losses=page.losses + 1,
        attempts=PageRow.attempts + 1,
        error_code=WorkerLost.code,
        error_message=told,
        **(FAILED if is_given_up else {}),
    )
    account = Account(payer=page.payer, price_book=price_book, model_id="")
    entry = failed_page_entry(
        account,
        document_id=page.document_id,
        reading_id=page.reading_id,
        page_number=page.page_number,
        code=WorkerLost.code,
        is_final=is_given_up,
        cpu_s=None,
        when=datetime.now(UTC),
    )
    insert_cpu_entry(session, entry)


def _leave_untranscribed(session: Session, page: LostPage) -> None:
    """It keeps the text that the CPU read."""
    is_page = and_(PageRow.reading_id == page.reading_id, PageRow.page_number == page.page_number)
    as_read = session.scalars(select(PageRow.result).where(is_page)).one()
    degradation = Degradation(
        code=DegradedCode.WORKER_LOST,
        message=(
            f"the worker that had it transcribed was lost, {page.losses + 1} times; look at what the workers of vlm "
            "say of it, and at their memory"
        ),
    )
    result = untranscribed_page_json(
        as_read or {},
        degradation,
        attempts=closed_attempts(session, page.reading_id, page.page_number),
        elapsed_s=0.0,
    )
    columns = result_columns(
        page=result,
        summary=page_row("", page.document_id, result),
        route=Route.OCR_DEGRADED,
        elapsed_s=result["elapsed_s"],
        degraded_code=str(degradation.code),
    )
    rows_changed(
        session,
        update(PageRow).where(is_page).values(state=PageState.DONE, settled_at_s=time.time(), **columns),
    )
