"""What the pool is about: how far its submissions are, and what waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Select, case, func, or_, select
from sqlalchemy.orm import Session

from models.errors import SubmissionNotFound
from models.pool import Queue, SourceState, SubmissionState
from models.tables import PageRow, PageState, SourceRow, SubmissionRow
from pipeline.store.database import Database, streamed
from pipeline.store.pool_backlog import backlog_of, has_waiting
from pipeline.store.pool_records import (
    Backlog,
    SettledPage,
    SubmissionProgress,
    SubmissionSummary,
    SubmissionTerms,
)
from pipeline.store.pool_statements import terms_of

SETTLED_PAGES = (PageState.DONE, PageState.FAILED)
UNOPENED_SOURCES = (SourceState.RECEIVED, SourceState.IN_INTAKE)


class PoolProgress:
    def __init__(self, database: Database) -> None:
        self._database = database

    def progress(self, submission_id: int) -> SubmissionProgress:
        """Raises SubmissionNotFound."""
        with self._database.read() as session:
            row = session.get(SubmissionRow, submission_id)
            if row is None or row.state is None:
                raise SubmissionNotFound(submission_id)
            sources, failed_sources = _sources(session, submission_id)
            pages, routes = _pages(session, submission_id)
            return SubmissionProgress(
                submission_id=submission_id,
                state=row.state,
                is_sealed=row.is_sealed,
                priority=row.priority,
                cost_centre=row.cost_centre or "",
                submitter=row.submitter,
                created_at_s=row.created_at_s,
                finished_at_s=row.finished_at_s,
                sources=sources,
                failed_sources=failed_sources,
                pages=pages,
                routes=routes,
            )

    def terms(self, submission_id: int) -> SubmissionTerms:
        """Raises SubmissionNotFound."""
        with self._database.read() as session:
            row = session.get(SubmissionRow, submission_id)
            if row is None or row.state is None:
                raise SubmissionNotFound(submission_id)
            return terms_of(session, submission_id)

    def settled_pages(self, submission_id: int, *, since_s: float) -> Iterator[SettledPage]:
        """Those settled at that time or later, in the order in which they were."""
        settled_at_s = func.coalesce(PageRow.settled_at_s, 0.0)
        taken_in_at_s = func.coalesce(SourceRow.taken_in_at_s, 0.0)
        since_when = case((settled_at_s < taken_in_at_s, taken_in_at_s), else_=settled_at_s)
        query = (
            select(
                SourceRow.source_id,
                SourceRow.name.label("source_name"),
                PageRow.reading_id,
                PageRow.page_number,
                PageRow.state,
                PageRow.route,
                PageRow.elapsed_s,
                PageRow.attempts,
                PageRow.losses,
                PageRow.error_code,
                PageRow.error_message,
                since_when.label("settled_at_s"),
                (settled_at_s < taken_in_at_s).label("from_earlier_run"),
            )
            .join(PageRow, PageRow.reading_id == SourceRow.reading_id)
            .where(
                SourceRow.submission_id == submission_id,
                PageRow.state.in_(SETTLED_PAGES),
                or_(settled_at_s >= since_s, taken_in_at_s >= since_s),
            )
            .order_by(since_when, SourceRow.source_id, PageRow.page_number)
        )
        with self._database.read() as session, streamed(session, query, at_a_time=500) as rows:
            for row in rows:
                yield SettledPage(**row._mapping)

    def submissions(
        self, *, limit: int, state: SubmissionState | None = None
    ) -> tuple[SubmissionSummary, ...]:
        """The newest ones, newest first."""
        wanted = SubmissionRow.state.is_not(None) if state is None else SubmissionRow.state == state
        query = select(SubmissionRow).where(wanted).order_by(SubmissionRow.submission_id.desc()).limit(limit)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            ids = [row.submission_id for row in rows]
            sources = {row[0]: row for row in session.execute(_source_counts(ids))}
            pages = {row[0]: row for row in session.execute(_page_counts(ids))}
            return tuple(
                _summary(
                    row, sources.get(row.submission_id, (0,) * 5), pages.get(row.submission_id, (0,) * 4)
                )
                for row in rows
            )

    def backlog(self) -> Backlog:
        """Of open submissions. Pages are held also for those that were cancelled."""
        with self._database.read() as session:
            return backlog_of(session)

    def has_waiting(self, queue: Queue) -> bool:
        """Whether something of an open submission waits in the queue; cheaper than a claim, and than counting."""
        with self._database.read() as session:
            return has_waiting(session, queue)


def _sources(session: Session, submission_id: int) -> tuple[dict[SourceState, int], int]:
    query = (
        select(SourceRow.state, func.count(), func.count(SourceRow.error_code))
        .where(SourceRow.submission_id == submission_id, SourceRow.state.is_not(None))
        .group_by(SourceRow.state)
    )
    rows = session.execute(query).all()
    return {state: count for state, count, _ in rows if state is not None}, sum(row[2] for row in rows)


def _pages(session: Session, submission_id: int) -> tuple[dict[PageState, int], dict[str, int]]:
    """Each page once, also where several sources have it."""
    readings = select(SourceRow.reading_id).where(
        SourceRow.submission_id == submission_id, SourceRow.reading_id.is_not(None)
    )
    query = (
        select(PageRow.state, PageRow.route, func.count())
        .where(PageRow.reading_id.in_(readings))
        .group_by(PageRow.state, PageRow.route)
    )
    pages: dict[PageState, int] = {}
    routes: dict[str, int] = {}
    for state, route, count in session.execute(query):
        pages[state] = pages.get(state, 0) + count
        if state is PageState.DONE and route is not None:
            routes[route] = routes.get(route, 0) + count
    return pages, routes


def _source_counts(ids: list[int]) -> Select[int, int, int, int, int]:
    return (
        select(
            SourceRow.submission_id,
            func.count(),
            func.count(case((SourceRow.state == SourceState.SETTLED, 1))),
            func.count(SourceRow.error_code),
            func.count(case((SourceRow.state.in_(UNOPENED_SOURCES), 1))),
        )
        .where(SourceRow.submission_id.in_(ids))
        .group_by(SourceRow.submission_id)
    )


def _page_counts(ids: list[int]) -> Select[int, int, int, int]:
    wanted = (
        select(SourceRow.submission_id, SourceRow.reading_id)
        .where(SourceRow.submission_id.in_(ids), SourceRow.reading_id.is_not(None))
        .distinct()
        .subquery()
    )
    return (
        select(
            wanted.c.submission_id,
            func.count(),
            func.count(case((PageRow.state.in_(SETTLED_PAGES), 1))),
            func.count(case((PageRow.state == PageState.FAILED, 1))),
        )
        .join(PageRow, PageRow.reading_id == wanted.c.reading_id)
        .group_by(wanted.c.submission_id)
    )


def _summary(row: SubmissionRow, sources: Any, pages: Any) -> SubmissionSummary:
    assert row.state is not None
    return SubmissionSummary(
        submission_id=row.submission_id,
        state=row.state,
        is_sealed=row.is_sealed,
        priority=row.priority,
        cost_centre=row.cost_centre or "",
        submitter=row.submitter,
        created_at_s=row.created_at_s,
        finished_at_s=row.finished_at_s,
        sources=sources[1],
        settled_sources=sources[2],
        failed_sources=sources[3],
        unopened_sources=sources[4],
        pages=pages[1],
        settled_pages=pages[2],
        failed_pages=pages[3],
    )
