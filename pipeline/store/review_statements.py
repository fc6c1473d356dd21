"""The statements behind the store of reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from models.api_tables import ReviewRow, UploadRow
from models.page import Route
from models.pool import SubmissionState
from models.tables import PageRow, PageState, SourceRow, SubmissionRow
from pipeline.store.cost_centre_statements import is_paid_by
from pipeline.store.review_records import (
    PagesShown,
    ReviewFilter,
    ReviewPlace,
)

ESCALATED: Final = (Route.VLM, Route.OCR_DEGRADED)
UPLOADS_AT_FIRST: Final = 50
UPLOADS_AT_MOST: Final = 2_000


def is_seen_from(
    column: InstrumentedAttribute[str] | InstrumentedAttribute[str | None], cost_centre: str | None
) -> ColumnElement[bool]:
    return true() if cost_centre is None else is_paid_by(column, cost_centre)


def is_of(*, reading_id: int, page_number: int, reviewer: str) -> ColumnElement[bool]:
    return and_(
        ReviewRow.reading_id == reading_id,
        ReviewRow.page_number == page_number,
        ReviewRow.reviewer == reviewer,
    )


def is_read() -> ColumnElement[bool]:
    return and_(without_index(PageRow.state) == PageState.DONE, PageRow.summary.is_not(None))


def without_index(state: InstrumentedAttribute[Any]) -> ColumnElement[Any]:
    """Nearly all rows are in the state that is asked for, and a planner that begins with them looks at all."""
    return func.coalesce(state, state)


def is_shown(show: PagesShown) -> ColumnElement[bool]:
    match show:
        case PagesShown.ESCALATED:
            return PageRow.route.in_(ESCALATED)
        case PagesShown.ACCEPTED:
            return PageRow.route.not_in(ESCALATED)
        case PagesShown.ALL:
            return true()


def of_finished_uploads(query: Select[*tuple[Any, ...]], wanted: ReviewFilter) -> Select[*tuple[Any, ...]]:
    newer, newer_source, newer_submission = aliased(UploadRow), aliased(SourceRow), aliased(SubmissionRow)
    came_again = (
        exists()
        .where(
            newer.submission_id == newer_source.submission_id,
            newer.submission_id == newer_submission.submission_id,
            newer_submission.state == SubmissionState.FINISHED,
            newer_source.reading_id == SourceRow.reading_id,
            newer.erased_at_s.is_(None),
            is_seen_from(newer.cost_centre, wanted.cost_centre),
            tuple_(newer.created_at_s, newer.upload_id) > tuple_(UploadRow.created_at_s, UploadRow.upload_id),
        )
        .correlate(UploadRow, SourceRow)
    )
    return (
        query.select_from(UploadRow)
        .join(SubmissionRow, SubmissionRow.submission_id == UploadRow.submission_id)
        .join(SourceRow, SourceRow.submission_id == UploadRow.submission_id)
        .join(PageRow, PageRow.reading_id == SourceRow.reading_id)
        .where(
            without_index(SubmissionRow.state) == SubmissionState.FINISHED,
            UploadRow.erased_at_s.is_(None),
            is_seen_from(UploadRow.cost_centre, wanted.cost_centre),
            is_read(),
            is_shown(wanted.show),
            ~came_again,
        )
    )


def with_review(
    query: Select[*tuple[Any, ...]], own: type[ReviewRow], reviewer: str
) -> Select[*tuple[Any, ...]]:
    return query.outerjoin(
        own,
        and_(
            own.reading_id == PageRow.reading_id,
            own.page_number == PageRow.page_number,
            own.reviewer == reviewer,
        ),
    )


def uploads_in_turn(
    session: Session, cost_centre: str | None, after: ReviewPlace | None
) -> Iterator[Sequence[str]]:
    """Ids of uploads from the place on, in the order of the list, more and more at a time: asked at once, every
    page there is would be sorted."""
    at_a_time = UPLOADS_AT_FIRST
    age = (UploadRow.created_at_s, UploadRow.upload_id)
    query = (
        select(*age)
        .where(UploadRow.erased_at_s.is_(None), is_seen_from(UploadRow.cost_centre, cost_centre))
        .order_by(*(column.desc() for column in age))
    )
    following = query if after is None else query.where(tuple_(*age) <= tuple_(*age_of(after)))
    while rows := session.execute(following.limit(at_a_time)).all():
        yield [row.upload_id for row in rows]
        following = query.where(tuple_(*age) < tuple_(*map(literal, rows[-1])))
        at_a_time = min(UPLOADS_AT_MOST, 2 * at_a_time)


def age_of(place: ReviewPlace) -> tuple[ColumnElement[float], ColumnElement[str]]:
    return literal(place.created_at_s), literal(place.upload_id)


def is_after(place: ReviewPlace) -> ColumnElement[bool]:
    upload = tuple_(UploadRow.created_at_s, UploadRow.upload_id)
    at = tuple_(*age_of(place))
    return or_(upload < at, and_(upload == at, PageRow.page_number > place.page_number))
