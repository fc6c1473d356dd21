"""How much waits in the pool, and when there is room again."""

from __future__ import annotations

import math
import time
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models.errors import PoolBusy
from models.pool import SourceState, SubmissionState
from models.tables import WAITING, PageRow, ReadingRow, ReadingState, SourceRow, SubmissionRow
from pipeline.store.page_statements import page_is
from pipeline.store.pool_records import PoolLimits

RATE_WINDOW_S: Final = 300
LEAST_RETRY_S, MOST_RETRY_S = 5, 3_600
UNKNOWN_RETRY_S: Final = 60
"""Where nothing was settled lately: the pool has only begun, or stands still."""

ROOM_TO_MAKE: Final = 0.1
"""The share of the bound that is to be free before it is worth coming again."""


def refuse_beyond(session: Session, limits: PoolLimits) -> None:
    """Raises PoolBusy where as much waits as may."""
    sources = _waiting_sources(session)
    if sources >= limits.max_waiting_sources:
        raise _busy(session, "documents", sources, limits.max_waiting_sources, "SOURCES")
    pages = _waiting_pages(session)
    if pages >= limits.max_waiting_pages:
        raise _busy(session, "pages", pages, limits.max_waiting_pages, "PAGES")


def _busy(session: Session, what: str, waiting: int, bound: int, name: str) -> PoolBusy:
    retry_after_s = _retry_after_s(session, waiting, bound)
    return PoolBusy(
        f"the pool is busy: {waiting:,} {what} wait, and at most {bound:,} may "
        f"(DOCTRIAGE_POOL__MAX_WAITING_{name}); try again in {retry_after_s} s",
        retry_after_s=retry_after_s,
    )


def _retry_after_s(session: Session, waiting: int, bound: int) -> int:
    """At the rate at which pages were settled lately."""
    settled = session.scalar(
        select(func.count()).select_from(PageRow).where(PageRow.settled_at_s > time.time() - RATE_WINDOW_S)
    )
    if not settled:
        return UNKNOWN_RETRY_S
    excess = max(1.0, waiting - bound * (1 - ROOM_TO_MAKE))
    return min(max(math.ceil(excess * RATE_WINDOW_S / settled), LEAST_RETRY_S), MOST_RETRY_S)


def _waiting_sources(session: Session) -> int:
    query = (
        select(func.count())
        .select_from(SourceRow)
        .where(SourceRow.state.in_((SourceState.RECEIVED, SourceState.IN_INTAKE)))
    )
    return session.scalar(query) or 0


def _waiting_pages(session: Session) -> int:
    """Of open submissions."""
    counts = (
        select(func.count())
        .select_from(PageRow)
        .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
        .join(SubmissionRow, SubmissionRow.submission_id == ReadingRow.submission_id)
        .where(
            page_is(state),
            ReadingRow.state == ReadingState.OPEN,
            SubmissionRow.state == SubmissionState.OPEN,
        )
        for state in WAITING
    )
    return sum(session.scalar(count) or 0 for count in counts)
