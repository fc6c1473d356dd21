"""What people said of pages that came through the API: whether each needs the VLM, and of what classes it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased

from models.api_tables import ReviewRow, UploadRow
from models.document import MediaType
from models.page import Route
from models.pool import SubmissionState
from models.tables import DocumentRow, PageRow, PageState, ReadingRow, SourceRow, SubmissionRow
from pipeline.store.database import Database, insert_missing, rows_changed, streamed
from pipeline.store.review_records import (
    PagesShown,
    PageToReview,
    Review,
    ReviewedPage,
    ReviewFilter,
    ReviewPlace,
    ReviewProgress,
)

ESCALATED: Final = (Route.VLM, Route.OCR_DEGRADED)
PAGES_AT_A_TIME: Final = 500


class ReviewStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, reading_id: int, page_number: int, review: Review) -> bool:
        """The reviewer's last word on the page; False where there is no such page that was read."""
        words: dict[str, Any] = {
            "cost_centre": review.cost_centre,
            "needs_vlm": review.needs_vlm,
            "classes": list(review.classes),
            "remark": review.remark,
            "reviewed_at_s": review.reviewed_at_s,
        }
        page = select(PageRow.page_number).where(
            PageRow.reading_id == reading_id, PageRow.page_number == page_number, _is_read()
        )
        with self._database.write() as session:
            if session.scalar(page.with_for_update(key_share=True)) is None:
                return False
            key = {"reading_id": reading_id, "page_number": page_number, "reviewer": review.reviewer}
            insert_missing(session, ReviewRow, [{**key, **words}])
            theirs = _is_of(reading_id=reading_id, page_number=page_number, reviewer=review.reviewer)
            rows_changed(session, update(ReviewRow).where(theirs).values(words))
        return True

    def delete(self, reading_id: int, page_number: int, *, reviewer: str) -> bool:
        """Whether there was one."""
        theirs = _is_of(reading_id=reading_id, page_number=page_number, reviewer=reviewer)
        with self._database.write() as session:
            review_id = session.scalar(select(ReviewRow.review_id).where(theirs).with_for_update())
            session.execute(delete(ReviewRow).where(ReviewRow.review_id == review_id))
        return review_id is not None

    def of_page(self, reading_id: int, page_number: int) -> tuple[Review, ...]:
        """The last word of each reviewer, the newest first."""
        query = (
            select(ReviewRow)
            .where(ReviewRow.reading_id == reading_id, ReviewRow.page_number == page_number)
            .order_by(ReviewRow.reviewed_at_s.desc(), ReviewRow.review_id.desc())
        )
        with self._database.read() as session:
            return tuple(map(_review, session.scalars(query)))

    def pages(
        self, wanted: ReviewFilter, *, after: ReviewPlace | None = None, limit: int
    ) -> tuple[PageToReview, ...]:
        """Read pages of uploads that are finished. A document that came more than once is there as it came last."""
        own = aliased(ReviewRow)
        order = (UploadRow.created_at_s.desc(), UploadRow.upload_id.desc(), PageRow.page_number)
        query = _with_review(
            _of_finished_uploads(
                select(
                    UploadRow.created_at_s,
                    UploadRow.upload_id,
                    UploadRow.cost_centre,
                    SourceRow.name,
                    PageRow.page_number,
                    PageRow.route,
                    PageRow.summary,
                    own.needs_vlm,
                ),
                wanted,
            ),
            own,
            wanted.reviewer,
        )
        if wanted.is_reviewed is not None:
            query = query.where(own.review_id.is_not(None) if wanted.is_reviewed else own.review_id.is_(None))
        if after is not None:
            query = query.where(_is_after(after))
        with self._database.read() as session:
            return tuple(
                PageToReview(
                    place=ReviewPlace(
                        created_at_s=row.created_at_s, upload_id=row.upload_id, page_number=row.page_number
                    ),
                    name=row.name,
                    cost_centre=row.cost_centre,
                    route=Route(row.route),
                    summary=row.summary,
                    needs_vlm=row.needs_vlm,
                )
                for row in session.execute(query.order_by(*order).limit(limit))
            )

    def progress(self, wanted: ReviewFilter) -> ReviewProgress:
        """Over all pages that ``pages`` would give without ``is_reviewed``."""
        own = aliased(ReviewRow)
        counted = select(func.count(), func.count(own.review_id))
        query = _with_review(_of_finished_uploads(counted, wanted), own, wanted.reviewer)
        with self._database.read() as session:
            pages, reviewed = session.execute(query).one()
        return ReviewProgress(pages=pages, reviewed=reviewed)

    def reviewed_pages(self, cost_centre: str | None = None) -> Iterator[ReviewedPage]:
        """All that anybody has reviewed, for ``cost_centre`` and those below it, by document and page number. What was
        said of the same bytes in several readings counts together."""
        theirs = _is_seen_from(ReviewRow.cost_centre, cost_centre)
        place = (ReadingRow.document_id, ReviewRow.page_number)
        newest_first = (ReviewRow.reviewed_at_s.desc(), ReviewRow.review_id.desc())
        needed = case((ReviewRow.needs_vlm, 1), else_=0)
        ranked = (
            select(
                ReadingRow.document_id,
                ReviewRow.page_number,
                ReviewRow.needs_vlm,
                ReviewRow.classes,
                ReviewRow.remark,
                ReviewRow.reviewed_at_s,
                func.row_number().over(partition_by=place, order_by=newest_first).label("rank"),
                func.min(needed).over(partition_by=place).label("least"),
                func.max(needed).over(partition_by=place).label("most"),
                func.count().over(partition_by=place).label("reviewers"),
            )
            .join(ReadingRow, ReadingRow.reading_id == ReviewRow.reading_id)
            .where(theirs)
            .subquery()
        )
        name = (
            select(func.min(SourceRow.name))
            .join(ReadingRow, ReadingRow.reading_id == SourceRow.reading_id)
            .where(ReadingRow.document_id == ranked.c.document_id)
            .correlate(ranked)
            .scalar_subquery()
        )
        query = (
            select(ranked, DocumentRow.media_type, name.label("name"))
            .join(DocumentRow, DocumentRow.document_id == ranked.c.document_id)
            .where(ranked.c.rank == 1)
            .order_by(ranked.c.document_id, ranked.c.page_number)
        )
        with self._database.read() as session, streamed(session, query, at_a_time=PAGES_AT_A_TIME) as rows:
            for row in rows:
                yield ReviewedPage(
                    document_id=row.document_id,
                    media_type=MediaType(row.media_type),
                    page_number=row.page_number,
                    name=row.name or row.document_id,
                    needs_vlm=row.needs_vlm,
                    differ=row.least != row.most,
                    reviewers=row.reviewers,
                    classes=tuple(row.classes),
                    remark=row.remark,
                    reviewed_at_s=row.reviewed_at_s,
                )


def _is_seen_from(column: InstrumentedAttribute[str], cost_centre: str | None) -> ColumnElement[bool]:
    """Compared letter by letter: LIKE passes over their case on SQLite."""
    if cost_centre is None:
        return true()
    below = f"{cost_centre}/"
    return or_(column == cost_centre, func.substr(column, 1, len(below)) == below)


def _is_of(*, reading_id: int, page_number: int, reviewer: str) -> ColumnElement[bool]:
    return and_(
        ReviewRow.reading_id == reading_id,
        ReviewRow.page_number == page_number,
        ReviewRow.reviewer == reviewer,
    )


def _is_read() -> ColumnElement[bool]:
    return and_(PageRow.state == PageState.DONE, PageRow.summary.is_not(None))


def _is_shown(show: PagesShown) -> ColumnElement[bool]:
    match show:
        case PagesShown.ESCALATED:
            return PageRow.route.in_(ESCALATED)
        case PagesShown.ACCEPTED:
            return PageRow.route.not_in(ESCALATED)
        case PagesShown.ALL:
            return true()


def _of_finished_uploads(query: Select[*tuple[Any, ...]], wanted: ReviewFilter) -> Select[*tuple[Any, ...]]:
    newer, newer_source, newer_submission = aliased(UploadRow), aliased(SourceRow), aliased(SubmissionRow)
    came_again = (
        exists()
        .where(
            newer.submission_id == newer_source.submission_id,
            newer.submission_id == newer_submission.submission_id,
            newer_submission.state == SubmissionState.FINISHED,
            newer_source.reading_id == SourceRow.reading_id,
            newer.erased_at_s.is_(None),
            _is_seen_from(newer.cost_centre, wanted.cost_centre),
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
            SubmissionRow.state == SubmissionState.FINISHED,
            UploadRow.erased_at_s.is_(None),
            _is_seen_from(UploadRow.cost_centre, wanted.cost_centre),
            _is_read(),
            _is_shown(wanted.show),
            ~came_again,
        )
    )


def _with_review(
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


def _is_after(place: ReviewPlace) -> ColumnElement[bool]:
    upload = tuple_(UploadRow.created_at_s, UploadRow.upload_id)
    at = (literal(place.created_at_s), literal(place.upload_id))
    return or_(upload < tuple_(*at), and_(upload == tuple_(*at), PageRow.page_number > place.page_number))


def _review(row: ReviewRow) -> Review:
    return Review(
        reviewer=row.reviewer,
        needs_vlm=row.needs_vlm,
        classes=tuple(row.classes),
        remark=row.remark,
        cost_centre=row.cost_centre,
        reviewed_at_s=row.reviewed_at_s,
    )
