"""The pages of a document: what became of each, all that is known of it, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from models.errors import (
    DoctriageError,
    DocumentErased,
    DocumentNotFound,
    DocumentRejected,
    NotReady,
    PageFailed,
    PageNotFound,
    RequestInvalid,
    TooManyAtOnce,
)
from models.tables import PageState
from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text
from pipeline.store import BookedEntry, PageRecord
from pipeline.store.upload_records import UploadRecord
from workers.api import schema
from workers.api.access import Caller
from workers.api.answers import cached_by_etag, is_known, json_answer, not_modified, tagged_json
from workers.api.cursors import LARGEST_NUMBER
from workers.api.declared import (
    ACCEPT,
    IF_NONE_MATCH,
    VARY,
    Upload,
    answer,
    bytes_of,
    kinds,
    problems,
    tagged,
    taking,
)
from workers.api.document_json import STATES, etag_of, moment
from workers.api.documents_routes import RETRY_AFTER_S, visible
from workers.api.drawing import PictureOrder
from workers.api.links import OF_PAGES
from workers.api.openapi import PARTS
from workers.api.parts import Asking, House, Parts
from workers.api.spelt import AS_DIGITS
from workers.cluster.sealed_passwords import unsealed

MOST_PAGES: Final = 500
WIDTHS_PX: Final = (16, 4_000)

NOT_DRAWN: Final[tuple[type[DoctriageError] | int, ...]] = (
    404,
    DocumentNotFound,
    DocumentErased,
    PageNotFound,
    RequestInvalid,
    TooManyAtOnce,
    *kinds(DocumentRejected),
    *kinds(PageFailed),
)
PAGE_CONTENT: Final = {
    "application/json": {"schema": {"anyOf": [{"$ref": f"{PARTS}ReadPage"}, {"$ref": f"{PARTS}UnreadPage"}]}}
}

Number = Annotated[int, Path(ge=1, le=LARGEST_NUMBER), AS_DIGITS]
Width = Annotated[int | None, Query(ge=WIDTHS_PX[0], le=WIDTHS_PX[1]), AS_DIGITS]

router = APIRouter(prefix="/v1/documents/{upload_id}/pages")


@router.get(
    "",
    response_model=schema.PageList,
    responses={
        200: answer("So many of them.", links=OF_PAGES),
        **problems(404, DocumentNotFound, DocumentErased, RequestInvalid),
    },
)
def list_pages(
    asking: Asking,
    parts: House,
    upload_id: Upload,
    after: Annotated[int, Query(ge=0, le=LARGEST_NUMBER), AS_DIGITS] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGES), AS_DIGITS] = 100,
) -> Response:
    """In order, from the one behind page ``after`` on; ``next_after`` goes on from there."""
    record = visible(parts, asking, upload_id)
    pages = (
        parts.store.uploads.page_summaries(record.reading_id, after=after, limit=limit + 1)
        if record.reading_id is not None
        else ()
    )
    shown = pages[:limit]
    next_after = shown[-1].page_number if len(pages) > limit else None
    return json_answer({"pages": [_summary(page) for page in shown], "next_after": next_after})


@router.get(
    "/{page_number}",
    response_class=Response,
    responses={
        **tagged(content=PAGE_CONTENT),
        **problems(404, DocumentNotFound, DocumentErased, PageNotFound, RequestInvalid),
    },
    openapi_extra=taking(IF_NONE_MATCH),
)
def get_page(
    request: Request, asking: Asking, parts: House, upload_id: Upload, page_number: Number
) -> Response:
    """As ``docs/output.md`` describes a page, with the attempts at it and their costs."""
    record = visible(parts, asking, upload_id)
    page = _page(parts, record, page_number)
    assert record.reading_id is not None
    evidence = parts.store.pool.evidence_of(record.reading_id, page_number)
    content = {
        **_content(page),
        "page_number": page_number,
        "state": STATES[page.state],
        "booked": [_booked(one) for one in evidence.entries if asking.sees(one.entry.payer.cost_centre)],
    }
    return tagged_json(request, content, etag_of(content))


@router.get(
    "/{page_number}/image",
    response_class=Response,
    responses={
        **tagged(content=bytes_of("image/png", "image/jpeg"), headers=VARY),
        **problems(*NOT_DRAWN),
    },
    openapi_extra=taking(ACCEPT, IF_NONE_MATCH),
)
def get_image(
    request: Request,
    asking: Asking,
    parts: House,
    upload_id: Upload,
    page_number: Number,
    width_px: Width = None,
) -> Response:
    """The page as it is delivered; JPEG where Accept asks for it, else PNG."""
    record = visible(parts, asking, upload_id)
    return _picture(request, parts, record, page_number, asking=asking, width_px=width_px, page=None)


@router.get(
    "/{page_number}/overlay",
    response_class=Response,
    responses={**tagged(content=bytes_of("image/png"), headers=VARY), **problems(NotReady, *NOT_DRAWN)},
    openapi_extra=taking(IF_NONE_MATCH),
)
def get_overlay(
    request: Request,
    asking: Asking,
    parts: House,
    upload_id: Upload,
    page_number: Number,
    width_px: Width = None,
) -> Response:
    """The page with the boxes of what was read on it."""
    record = visible(parts, asking, upload_id)
    page = _page(parts, record, page_number)
    if page.content is None:
        raise NotReady(
            f"page {page_number} is {STATES[page.state]}; ask again when it is done",
            retry_after_s=RETRY_AFTER_S.get(record.state, 5),
        )
    return _picture(request, parts, record, page_number, asking=asking, width_px=width_px, page=page.content)


def _page(parts: Parts, record: UploadRecord, page_number: int) -> PageRecord:
    page = (
        None if record.reading_id is None else parts.store.uploads.page_result(record.reading_id, page_number)
    )
    if page is None:
        raise _no_page(record, page_number)
    return page


def _no_page(record: UploadRecord, page_number: int) -> PageNotFound:
    has = "its pages are not known yet" if record.page_count is None else f"it has {record.page_count}"
    return PageNotFound(
        f"document {record.upload_id} has no page {page_number}: {has}; GET …/pages lists them"
    )


def _content(page: PageRecord) -> Mapping[str, Any]:
    """A page that is not done has no content yet, or none any more."""
    if page.content is not None and page.state is not PageState.FAILED:
        return page.content
    error = None
    if page.state is PageState.FAILED:
        error = {"code": page.error_code or "", "message": page.error_message or ""}
    return {"route": None, "attempts": [], "error": error}


def _summary(page: PageRecord) -> schema.PageSummary:
    content = page.content or {}
    failed = page.state is PageState.FAILED
    error: schema.Fault | None = (
        {"code": page.error_code or "", "message": page.error_message or ""} if failed else None
    )
    return {
        "page_number": page.page_number,
        "state": STATES[page.state],
        "route": content.get("route"),
        "escalate": content.get("escalate"),
        "reasons": content.get("reasons"),
        "text_chars": content.get("text_chars"),
        "visual_tokens_if_vlm": content.get("visual_tokens_if_vlm"),
        "degraded": content.get("degraded"),
        "vlm_calls": content.get("vlm_calls"),
        "prompt_tokens": content.get("prompt_tokens"),
        "completion_tokens": content.get("completion_tokens"),
        "elapsed_s": page.elapsed_s,
        "error": error,
    }


def _booked(booked: BookedEntry) -> schema.Booked:
    entry = booked.entry
    return {
        "entry_id": booked.entry_id,
        "kind": entry.kind,
        "booked_at": moment(entry.booked_at.timestamp()),
        "cost_centre": entry.payer.cost_centre,
        "model_id": entry.model_id,
        "outcome": entry.outcome,
        "prompt_tokens": entry.prompt_tokens,
        "completion_tokens": entry.completion_tokens,
        "cpu_s": entry.cpu_s,
        "cost": None if entry.cost_micro is None else amount_text(entry.cost_micro, MONEY_DECIMALS),
        "currency": entry.prices.currency,
    }


def _picture(
    request: Request,
    parts: Parts,
    record: UploadRecord,
    page_number: int,
    *,
    asking: Caller,
    width_px: int | None,
    page: Mapping[str, Any] | None,
) -> Response:
    document = None if record.document_id is None else parts.store.pages.document(record.document_id)
    if document is None or page_number > document.page_count:
        raise _no_page(record, page_number)
    is_jpeg = page is None and "image/jpeg" in request.headers.get("accept", "")
    rasterise = parts.settings.rasterise.model_dump_json()
    etag = etag_of((document.document_id, page_number, width_px, is_jpeg, page, rasterise))
    if is_known(request, etag):
        return not_modified(etag, {"vary": "accept"})
    with parts.pictures.entered(asking.team):
        drawn = parts.drawing.draw(
            PictureOrder(
                document=document,
                page_number=page_number,
                password=_password(parts, record),
                width_px=width_px,
                is_jpeg=is_jpeg,
                page=page,
            )
        )
    return Response(
        drawn,
        media_type="image/jpeg" if is_jpeg else "image/png",
        headers={**cached_by_etag(etag), "vary": "accept"},
    )


def _password(parts: Parts, record: UploadRecord) -> str | None:
    """Passwords are kept until the document is over, and no longer."""
    terms = parts.store.pool.terms(record.submission_id)
    passwords = unsealed(terms.sealed_passwords, parts.settings.pool.secret_key)
    return passwords[0] if passwords else None
