"""How much waits in the pool, altogether and of each team, and when there is room again.

To count 200,000 pages takes PostgreSQL 50 to 350 ms, whatever the index, and it is asked for each document that is
added: so a long count holds for a while.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from models.errors import PoolBusy
from models.pool import SourceState, SubmissionState
from models.tables import WAITING, PageRow, ReadingRow, ReadingState, SourceRow, SubmissionRow
from pipeline.chargeback.cost_centres import most_of_one_team, team_of
from pipeline.store.page_statements import page_is
from pipeline.store.pool_records import PoolLimits

RATE_WINDOW_S: Final = 300
LEAST_RETRY_S, MOST_RETRY_S = 5, 3_600
UNKNOWN_RETRY_S: Final = 60
"""Where nothing was settled lately: the pool has only begun, or stands still."""

ROOM_TO_MAKE: Final = 0.1
"""The share of the bound that is to be free before it is worth coming again."""

HELD_FROM: Final = 1_000
HELD_A_SECOND: Final = 25_000
"""A count of n holds for n / 25,000 seconds, 8 s for 200,000, so that counting takes a small part of the time; below
1,000 it does not hold at all."""

Counts = Iterable[Select[*tuple[Any, ...]]]
"""Statements that give cost centres with numbers, which are to be added up."""


class WaitingRoom:
    """Several threads may ask at once."""

    def __init__(self) -> None:
        self._sources = _HeldCount(_waiting_sources)
        self._pages = _HeldCount(_waiting_pages)
        self._settled = _HeldCount(_settled_lately)

    def refuse_beyond(self, session: Session, limits: PoolLimits, cost_centre: str | None) -> None:
        """Raises PoolBusy where as much waits as may, of the cost centre's team or of all. None: who pays is not known
        yet."""
        team = None if cost_centre is None else team_of(cost_centre)
        sources = self._sources.by_team(session)
        self._refuse(session, team, sources, limits.max_waiting_sources, "documents", "SOURCES")
        pages = self._pages.by_team(session)
        self._refuse(session, team, pages, limits.max_waiting_pages, "pages", "PAGES")

    def _refuse(
        self, session: Session, team: str | None, waiting: Counter[str], most: int, what: str, name: str
    ) -> None:
        setting = f"DOCTRIAGE_POOL__MAX_WAITING_{name}"
        most_of_one = most_of_one_team(most)
        if team is not None and waiting[team] >= most_of_one:
            settled = self._settled.by_team(session)[team]
            raise _busy(
                f"the pool has enough of {team} for now: {waiting[team]:,} {what} of this team wait, and of one team "
                f"at most {most_of_one:,} may (three quarters of {setting})",
                _retry_after_s(waiting[team], most_of_one, settled),
            )
        if waiting.total() >= most:
            settled = self._settled.by_team(session).total()
            raise _busy(
                f"the pool is busy: {waiting.total():,} {what} wait, and at most {most:,} may ({setting})",
                _retry_after_s(waiting.total(), most, settled),
            )


class _HeldCount:
    """What ``count`` gives, by team."""

    def __init__(self, count: Callable[[], Counts]) -> None:
        self._count = count
        self._last: tuple[Counter[str], float] = Counter(), -math.inf

    def by_team(self, session: Session) -> Counter[str]:
        by_team, holds_until_s = self._last
        if time.monotonic() < holds_until_s:
            return by_team
        by_team = Counter()
        for statement in self._count():
            for cost_centre, number in session.execute(statement):
                by_team[team_of(cost_centre or "")] += int(number)
        counted = by_team.total()
        held_s = 0.0 if counted < HELD_FROM else counted / HELD_A_SECOND
        self._last = by_team, time.monotonic() + held_s
        return by_team


def _busy(why: str, retry_after_s: int) -> PoolBusy:
    return PoolBusy(f"{why}; try again in {retry_after_s} s", retry_after_s=retry_after_s)


def _retry_after_s(waiting: int, most: int, settled: int) -> int:
    """At the rate at which pages were settled lately."""
    if not settled:
        return UNKNOWN_RETRY_S
    excess = max(1.0, waiting - most * (1 - ROOM_TO_MAKE))
    return min(max(math.ceil(excess * RATE_WINDOW_S / settled), LEAST_RETRY_S), MOST_RETRY_S)


def _waiting_sources() -> Counts:
    yield (
        select(SubmissionRow.cost_centre, func.count())
        .join(SourceRow, SourceRow.submission_id == SubmissionRow.submission_id)
        .where(SourceRow.state.in_((SourceState.RECEIVED, SourceState.IN_INTAKE)))
        .group_by(SubmissionRow.cost_centre)
    )


def _waiting_pages() -> Counts:
    """Of open submissions."""
    for state in WAITING:
        yield _paid_pages(
            select(PageRow.reading_id, func.count().label("pages")).where(page_is(state))
        ).where(ReadingRow.state == ReadingState.OPEN, SubmissionRow.state == SubmissionState.OPEN)


def _settled_lately() -> Counts:
    since_s = time.time() - RATE_WINDOW_S
    yield _paid_pages(
        select(PageRow.reading_id, func.count().label("pages")).where(PageRow.settled_at_s > since_s)
    )


def _paid_pages(pages: Select[int, int]) -> Select[*tuple[Any, ...]]:
    """``pages`` are added up a reading first, as a document has many and its submission is looked up once."""
    of_reading = pages.group_by(PageRow.reading_id).subquery()
    return (
        select(SubmissionRow.cost_centre, func.sum(of_reading.c.pages))
        .join(ReadingRow, ReadingRow.submission_id == SubmissionRow.submission_id)
        .join(of_reading, of_reading.c.reading_id == ReadingRow.reading_id)
        .group_by(SubmissionRow.cost_centre)
    )
