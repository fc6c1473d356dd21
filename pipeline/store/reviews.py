"""What people said of pages that came through the API: whether each needs the VLM, and of what classes it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import (
    Row,
    case,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.orm import aliased

from models.api_tables import ReviewRow, UploadRow
from models.document import MediaType
from models.page import Route
from models.tables import DocumentRow, PageRow, ReadingRow, SourceRow, SubmissionRow
from pipeline.store.database import Database, insert_missing, rows_changed, streamed
from pipeline.store.review_records import (
    PageToReview,
    Review,
    ReviewedPage,
    ReviewFilter,
    ReviewPlace,
    ReviewProgress,
)
from pipeline.store.review_statements import (
    is_after,
    is_of,
    is_read,
    is_seen_from,
    of_finished_uploads,
    uploads_in_turn,
    with_review,
)

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
            PageRow.reading_id == reading_id, PageRow.page_number == page_number, is_read()
        )
        with self._database.write() as session:
            if session.scalar(page.with_for_update(key_share=True)) is None:
                return False
            key = {"reading_id": reading_id, "page_number": page_number, "reviewer": review.reviewer}
            insert_missing(session, ReviewRow, [{**key, **words}])
            theirs = is_of(reading_id=reading_id, page_number=page_number, reviewer=review.reviewer)
            rows_changed(session, update(ReviewRow).where(theirs).values(words))
        return True

    def delete(self, reading_id: int, page_number: int, *, reviewer: str) -> bool:
        """Whether there was one."""
        theirs = is_of(reading_id=reading_id, page_number=page_number, reviewer=reviewer)
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
        query = with_review(
            of_finished_uploads(
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
            query = query.where(is_after(after))
        found: list[PageToReview] = []
        with self._database.read() as session:
            for uploads in uploads_in_turn(session, wanted.cost_centre, after):
                theirs = query.where(UploadRow.upload_id.in_(uploads)).order_by(*order)
                found += map(_page_to_review, session.execute(theirs.limit(limit - len(found))))
                if len(found) == limit:
                    break
        return tuple(found)

    def progress(self, wanted: ReviewFilter) -> ReviewProgress:
        """Over all pages that ``pages`` would give without ``is_reviewed``."""
        own = aliased(ReviewRow)
        counted = select(func.count(), func.count(own.review_id))
        query = with_review(of_finished_uploads(counted, wanted), own, wanted.reviewer)
        with self._database.read() as session:
            pages, reviewed = session.execute(query).one()
        return ReviewProgress(pages=pages, reviewed=reviewed)

    def reviewed_pages(self, cost_centre: str | None = None) -> Iterator[ReviewedPage]:
        """All that anybody has reviewed, for ``cost_centre`` and those below it, by document and page number. What was
        said of the same bytes in several readings counts together."""
        theirs = is_seen_from(ReviewRow.cost_centre, cost_centre)
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
            .join(SubmissionRow, SubmissionRow.submission_id == SourceRow.submission_id)
            .where(
                ReadingRow.document_id == ranked.c.document_id,
                is_seen_from(SubmissionRow.cost_centre, cost_centre),
            )
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


def _page_to_review(row: Row[*tuple[Any, ...]]) -> PageToReview:
    return PageToReview(
        place=ReviewPlace(
            created_at_s=row.created_at_s, upload_id=row.upload_id, page_number=row.page_number
        ),
        name=row.name,
        cost_centre=row.cost_centre,
        route=Route(row.route),
        summary=row.summary,
        needs_vlm=row.needs_vlm,
    )


def _review(row: ReviewRow) -> Review:
    return Review(
        reviewer=row.reviewer,
        needs_vlm=row.needs_vlm,
        classes=tuple(row.classes),
        remark=row.remark,
        cost_centre=row.cost_centre,
        reviewed_at_s=row.reviewed_at_s,
    )
