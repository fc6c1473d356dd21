"""Documents: sent, listed, looked at, cancelled and erased."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from models.document_state import DocumentState
from models.errors import RequestInvalid, SubmissionNotOpen
from pipeline.store.upload_records import UploadFilter, UploadPlace, UploadRecord
from workers.api.access import Caller
from workers.api.answers import json_answer, tagged_json
from workers.api.arrivals import received
from workers.api.document_json import document_json, etag_of, found, no_such_document
from workers.api.entering import Entering
from workers.api.parts import Asking, House, Parts
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


@router.post("", status_code=202)
async def send_document(request: Request, asking: Asking, parts: House) -> Response:
    """Send a document as multipart/form-data."""
    async with parts.uploads.entered():
        entering = Entering(
            parts=parts,
            asking=asking,
            idempotency_key=idempotency_key(request.headers.get("idempotency-key")),
        )
        await run_sync(entering.require_room)
        arrival = await received(
            request,
            parts.blobs,
            max_bytes=parts.max_upload_bytes,
            idle_s=parts.settings.api.upload_idle_s,
        )
        accepted = await run_sync(entering.enter, arrival)
    record = await run_sync(found, parts.store, accepted.upload_id)
    headers = {"location": f"/v1/documents/{record.upload_id}", **retry_headers(record)}
    if not accepted.is_new:
        headers["idempotency-replayed"] = "true"
    return json_answer(document_json(record), status=202, headers=headers)


@router.get("")
def list_documents(
    asking: Asking,
    parts: House,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    state: DocumentState | None = None,
    cost_centre: str | None = None,
    name: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
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


@router.get("/{upload_id}")
def get_document(request: Request, asking: Asking, parts: House, upload_id: str) -> Response:
    record = visible(parts, asking, upload_id)
    content = document_json(record)
    return tagged_json(request, content, etag_of(content), retry_headers(record))


@router.delete("/{upload_id}")
def delete_document(asking: Asking, parts: House, upload_id: str, erase: bool = False) -> Response:
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
    text = f"{record.created_at_s!r} {record.upload_id}"
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def _place(cursor: str) -> UploadPlace:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        seconds, _, upload_id = text.partition(" ")
        return UploadPlace(created_at_s=float(seconds), upload_id=upload_id)
    except (ValueError, binascii.Error) as error:
        raise RequestInvalid(
            "the cursor is none; send next_cursor as it came", faults=(("cursor", "is no cursor"),)
        ) from error
