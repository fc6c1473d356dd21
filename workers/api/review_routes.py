"""What people say of pages: pages to review, reviews, and the labels that they become."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints
from starlette.responses import Response

from models.errors import DocumentErased, DocumentNotFound, PageNotFound, RequestInvalid
from pipeline.store.review_records import (
    PagesShown,
    PageToReview,
    Review,
    ReviewFilter,
    ReviewPlace,
    new_review,
)
from pipeline.store.upload_records import UploadRecord
from workers.api import schema
from workers.api.access import Caller
from workers.api.answers import json_answer
from workers.api.cursors import LARGEST_NUMBER, place_of
from workers.api.cursors import cursor as cursor_of
from workers.api.declared import ATTACHED, NO_NUL, Upload, answer, problems
from workers.api.document_json import moment
from workers.api.documents_routes import visible
from workers.api.links import OF_PAGES_TO_REVIEW
from workers.api.pages_routes import Number
from workers.api.parts import Asking, House
from workers.api.spelt import AS_DIGITS, Truth
from workers.reviews import label_lines

MOST_LISTED: Final = 200
MOST_CLASSES: Final = 20
MOST_REMARK_CHARACTERS: Final = 2_000
LABELS_TYPE: Final = "application/jsonl"
NO_PAGE: Final = (DocumentNotFound, DocumentErased, PageNotFound, RequestInvalid)

ClassName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,40}$")]

router = APIRouter(prefix="/v1")


class ReviewWords(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    needs_vlm: StrictBool
    classes: Annotated[tuple[ClassName, ...], Field(max_length=MOST_CLASSES)] = ()
    remark: Annotated[str, Field(max_length=MOST_REMARK_CHARACTERS, pattern=NO_NUL)] | None = None


@router.get(
    "/reviews",
    response_model=schema.PagesToReview,
    responses={
        200: answer("So many of them.", links=OF_PAGES_TO_REVIEW),
        **problems(DocumentNotFound, DocumentErased, RequestInvalid),
    },
)
def list_pages_to_review(
    asking: Asking,
    parts: House,
    show: PagesShown = PagesShown.ESCALATED,
    reviewed: Truth | None = None,
    cursor: str | None = None,
    after_document: str | None = None,
    after_page: Annotated[int, Query(ge=1, le=LARGEST_NUMBER), AS_DIGITS] = LARGEST_NUMBER,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED), AS_DIGITS] = 50,
) -> Response:
    """Pages of finished documents, the newest documents first. The list goes on with ``next_cursor``, or behind a page
    that is named. Its beginning says how many of all of them the caller has ``reviewed``."""
    wanted = ReviewFilter(reviewer=asking.name, cost_centre=_seen(asking), show=show, is_reviewed=reviewed)
    place = None if cursor is None else _place(cursor)
    if after_document is not None:
        record = visible(parts, asking, after_document)
        place = ReviewPlace(
            created_at_s=record.created_at_s, upload_id=record.upload_id, page_number=after_page
        )
    pages = parts.store.reviews.pages(wanted, after=place, limit=limit + 1)
    shown = pages[:limit]
    progress = None if place else asdict(parts.store.reviews.progress(wanted))
    return json_answer(
        {
            "pages": [_page_json(page) for page in shown],
            "next_cursor": _cursor(shown[-1].place) if len(pages) > limit else None,
            "progress": progress,
        }
    )


@router.get(
    "/reviews/labels",
    response_class=Response,
    responses={
        200: answer(
            "Lines of JSON.", content={LABELS_TYPE: {"schema": {"type": "string"}}}, headers=ATTACHED
        ),
        **problems(),
    },
)
def get_labels(asking: Asking, parts: House) -> Response:
    """A line a reviewed page, as ``docs/triage.md`` describes a corpus."""
    lines = label_lines(parts.store.reviews.reviewed_pages(_seen(asking)))
    return Response(
        "".join(lines),
        media_type=LABELS_TYPE,
        headers={
            "cache-control": "no-store",
            "content-disposition": 'attachment; filename="MANIFEST.jsonl"',
        },
    )


@router.get(
    "/documents/{upload_id}/pages/{page_number}/review",
    response_model=schema.PageReviews,
    responses=problems(404, *NO_PAGE),
)
def get_review(asking: Asking, parts: House, upload_id: Upload, page_number: Number) -> Response:
    """The caller's own, and those of others whom the caller may see."""
    reading_id = _reading_id(visible(parts, asking, upload_id), page_number)
    reviews = parts.store.reviews.of_page(reading_id, page_number)
    own = next((one for one in reviews if one.reviewer == asking.name), None)
    others = [one for one in reviews if one.reviewer != asking.name and asking.sees(one.cost_centre)]
    return json_answer(
        {
            "review": None if own is None else _review_json(own),
            "others": [_review_json(one) for one in others],
        }
    )


@router.put(
    "/documents/{upload_id}/pages/{page_number}/review",
    response_model=schema.Review,
    responses=problems(400, 404, 413, *NO_PAGE),
)
def put_review(
    asking: Asking, parts: House, upload_id: Upload, page_number: Number, words: ReviewWords
) -> Response:
    """The caller's last word on the page."""
    record = visible(parts, asking, upload_id)
    review = new_review(
        reviewer=asking.name,
        needs_vlm=words.needs_vlm,
        classes=words.classes,
        remark=words.remark,
        cost_centre=record.cost_centre,
    )
    if not parts.store.reviews.put(_reading_id(record, page_number), page_number, review):
        raise _no_page(record, page_number)
    return json_answer(_review_json(review))


@router.delete(
    "/documents/{upload_id}/pages/{page_number}/review",
    status_code=204,
    response_class=Response,
    responses=problems(404, *NO_PAGE),
)
def delete_review(asking: Asking, parts: House, upload_id: Upload, page_number: Number) -> Response:
    """Take the caller's own back; nothing happens where there is none."""
    reading_id = _reading_id(visible(parts, asking, upload_id), page_number)
    parts.store.reviews.delete(reading_id, page_number, reviewer=asking.name)
    return Response(status_code=204)


def _seen(asking: Caller) -> str | None:
    return None if asking.is_admin else asking.cost_centre


def _reading_id(record: UploadRecord, page_number: int) -> int:
    if record.reading_id is None:
        raise _no_page(record, page_number)
    return record.reading_id


def _no_page(record: UploadRecord, page_number: int) -> PageNotFound:
    return PageNotFound(
        f"document {record.upload_id} has no page {page_number} that was read; GET …/pages lists its pages"
    )


def _page_json(page: PageToReview) -> schema.PageToReview:
    return {
        "id": page.place.upload_id,
        "page_number": page.place.page_number,
        "name": page.name,
        "cost_centre": page.cost_centre,
        "route": page.route,
        "escalate": page.summary.get("escalate"),
        "reasons": page.summary.get("reasons"),
        "degraded": page.summary.get("degraded"),
        "review": None if page.needs_vlm is None else {"needs_vlm": page.needs_vlm},
    }


def _review_json(review: Review) -> schema.Review:
    return {
        "reviewer": review.reviewer,
        "needs_vlm": review.needs_vlm,
        "classes": list(review.classes),
        "remark": review.remark,
        "reviewed_at": moment(review.reviewed_at_s),
    }


def _cursor(place: ReviewPlace) -> str:
    return cursor_of(place.created_at_s, place.upload_id, place.page_number)


def _place(cursor: str) -> ReviewPlace:
    """Raises RequestInvalid."""
    seconds, upload_id, page_number = place_of(cursor)
    return ReviewPlace(created_at_s=seconds, upload_id=upload_id, page_number=page_number or LARGEST_NUMBER)
