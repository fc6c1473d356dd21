"""Documents: sent, listed, looked at, cancelled and erased."""

from __future__ import annotations

from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from models.document_state import DocumentState
from models.errors import (
    BodyMalformed,
    BodyUnsupported,
    CallbackUrlRefused,
    DocumentErased,
    DocumentInUse,
    DocumentNotFound,
    EmptyFile,
    IdempotencyKeyReused,
    PoolBusy,
    PriorityRefused,
    RequestInvalid,
    SubmissionNotOpen,
    TooManyAtOnce,
    TooManyBytes,
    TooManyOpenDocuments,
    UnsupportedMediaType,
    UploadTooSlow,
)
from pipeline.store.upload_records import UploadFilter, UploadPlace, UploadRecord
from workers.api import schema
from workers.api.access import Caller
from workers.api.answers import json_answer, tagged_json
from workers.api.arrivals import received
from workers.api.cursors import cursor as cursor_of
from workers.api.cursors import place_of
from workers.api.declared import (
    IDEMPOTENCY_KEY,
    IF_NONE_MATCH,
    LOCATION,
    NO_NUL,
    REPLAYED,
    RETRY_AFTER,
    Upload,
    answer,
    problems,
    tagged,
    taking,
)
from workers.api.document_json import document_json, etag_of, found, no_such_document
from workers.api.entering import Entering
from workers.api.links import OF_A_DOCUMENT, OF_A_LIST, OF_A_NEW_DOCUMENT
from workers.api.openapi import upload_body
from workers.api.parts import Asking, House, Parts, Sending
from workers.api.spelt import AS_DIGITS, Truth
from workers.api.upload_order import idempotency_key
from workers.owner import is_alive

MOST_LISTED: Final = 200
RETRY_AFTER_S: Final = {DocumentState.QUEUED: 5, DocumentState.READING: 2}

router = APIRouter(prefix="/v1/documents")


def visible(parts: Parts, asking: Caller, upload_id: str) -> UploadRecord:
    """Raises ``DocumentNotFound``, also for one that the caller may not see, and ``DocumentErased``."""
    record = found(parts.store, upload_id)
    if not asking.sees(record.cost_centre):
        raise no_such_document(upload_id)
    return record


def retry_headers(record: UploadRecord) -> dict[str, str]:
    seconds = RETRY_AFTER_S.get(record.state)
    return {} if seconds is None else {"retry-after": str(seconds)}


@router.post(
    "",
    status_code=202,
    response_model=schema.Document,
    responses={
        202: answer(
            "It is entered.", headers={**LOCATION, **RETRY_AFTER, **REPLAYED}, links=OF_A_NEW_DOCUMENT
        ),
        **problems(
            BodyMalformed,
            BodyUnsupported,
            RequestInvalid,
            TooManyBytes,
            EmptyFile,
            UnsupportedMediaType,
            UploadTooSlow,
            IdempotencyKeyReused,
            CallbackUrlRefused,
            PriorityRefused,
            PoolBusy,
            TooManyAtOnce,
            TooManyOpenDocuments,
        ),
    },
    openapi_extra={**taking(IDEMPOTENCY_KEY), **upload_body()},
)
async def send_document(request: Request, asking: Sending, parts: House) -> Response:
    """Send a document as multipart/form-data."""
    async with parts.uploads.entered(asking.team):
        entering = Entering(
            parts=parts,
            asking=asking,
            idempotency_key=idempotency_key(request.headers.get("idempotency-key")),
        )
        await run_sync(entering.require_room, limiter=parts.upload_threads)
        arrival = await received(
            request,
            parts.blobs,
            max_bytes=parts.max_upload_bytes,
            idle_s=parts.settings.api.upload_idle_s,
            threads=parts.upload_threads,
        )
        accepted = await run_sync(entering.enter, arrival, limiter=parts.upload_threads)
    record = await run_sync(found, parts.store, accepted.upload_id, limiter=parts.upload_threads)
    headers = {"location": f"/v1/documents/{record.upload_id}", **retry_headers(record)}
    if not accepted.is_new:
        headers["idempotency-replayed"] = "true"
    return json_answer(document_json(record), status=202, headers=headers)


@router.get(
    "",
    response_model=schema.DocumentList,
    responses={200: answer("So many of them.", links=OF_A_LIST), **problems(RequestInvalid)},
)
def list_documents(
    asking: Asking,
    parts: House,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED), AS_DIGITS] = 50,
    state: DocumentState | None = None,
    cost_centre: Annotated[str | None, Query(pattern=NO_NUL)] = None,
    name: Annotated[str | None, Query(min_length=1, max_length=200, pattern=NO_NUL)] = None,
) -> Response:
    """The newest first; with ``next_cursor`` the list goes on."""
    if cost_centre is not None:
        asking.require_cost_centre(cost_centre)
    own = None if asking.is_admin else asking.cost_centre
    records = parts.store.uploads.list(
        UploadFilter(cost_centre=cost_centre or own, state=state, name=name),
        limit=limit + 1,
        after=None if cursor is None else _place(cursor),
    )
    shown = records[:limit]
    next_cursor = _cursor(shown[-1]) if len(records) > limit else None
    return json_answer({"documents": [document_json(record) for record in shown], "next_cursor": next_cursor})


@router.get(
    "/{upload_id}",
    response_model=schema.Document,
    responses={
        **tagged(headers=RETRY_AFTER, links=OF_A_DOCUMENT),
        **problems(404, DocumentNotFound, DocumentErased, RequestInvalid),
    },
    openapi_extra=taking(IF_NONE_MATCH),
)
def get_document(request: Request, asking: Asking, parts: House, upload_id: Upload) -> Response:
    record = visible(parts, asking, upload_id)
    content = document_json(record)
    return tagged_json(request, content, etag_of(content), retry_headers(record))


@router.delete(
    "/{upload_id}",
    response_model=schema.Document,
    responses={
        200: answer("It is cancelled."),
        204: answer("It is erased."),
        **problems(404, DocumentNotFound, DocumentErased, SubmissionNotOpen, DocumentInUse, RequestInvalid),
    },
)
def delete_document(asking: Asking, parts: House, upload_id: Upload, erase: Truth = False) -> Response:
    """Cancel one that is open; with ``erase`` erase one that is over."""
    record = visible(parts, asking, upload_id)
    if not erase:
        if not parts.store.pool.cancel(record.submission_id):
            raise SubmissionNotOpen(f"document {upload_id} is {record.state} already; ?erase=true erases it")
        return json_answer(document_json(found(parts.store, upload_id)))
    if record.state.is_open:
        raise SubmissionNotOpen(f"document {upload_id} is being read; cancel it first")
    parts.blobs.delete_results(record.source_id)
    parts.store.uploads.erase(upload_id, is_alive, parts.blobs.drop)
    parts.store.purge.empty_log()
    return Response(status_code=204)


def _cursor(record: UploadRecord) -> str:
    return cursor_of(record.created_at_s, record.upload_id)


def _place(cursor: str) -> UploadPlace:
    """Raises RequestInvalid."""
    seconds, upload_id, _ = place_of(cursor)
    return UploadPlace(created_at_s=seconds, upload_id=upload_id)
