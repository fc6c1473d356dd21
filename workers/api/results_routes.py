"""A document in the form that is asked for: as it is kept, or made for that."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, BinaryIO, Final
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from models.document_name import last_part
from models.document_state import DocumentState
from models.errors import (
    BlobDamaged,
    BlobMissing,
    DocumentEncrypted,
    DocumentErased,
    DocumentFailed,
    DocumentNotFound,
    FormatNotAcceptable,
    NotReady,
    OutputImpossible,
    RequestInvalid,
    ResultExpired,
    ResultMissing,
    SubmissionNotOpen,
    TooManyAtOnce,
)
from pipeline.exports.formats import FORMATS, OutputFormat
from pipeline.store.upload_records import UploadRecord
from workers.api.answers import cached_by_etag, is_known, not_modified
from workers.api.child import NotWanted
from workers.api.declared import ACCEPT, ATTACHED, IF_NONE_MATCH, VARY, Upload, problems, tagged, taking
from workers.api.document_json import etag_of
from workers.api.documents_routes import RETRY_AFTER_S, visible
from workers.api.exports import ExportOrder
from workers.api.negotiation import chosen_format
from workers.api.openapi import result_content
from workers.api.parts import Asking, House, Parts
from workers.cluster.wishes import Wishes

CHUNK_BYTES: Final = 256 * 1024
VARIES: Final = {"vary": "accept"}
CLIENT_GONE: Final = 499
"""Nobody reads it; the metrics count it."""

Named = Annotated[str | None, Query(alias="format", json_schema_extra={"enum": list(FORMATS)})]

router = APIRouter(prefix="/v1/documents/{upload_id}")


@router.get(
    "/result",
    response_class=Response,
    responses={
        **tagged(content=result_content(), headers={**VARY, **ATTACHED}),
        **problems(
            404,
            DocumentNotFound,
            DocumentErased,
            ResultMissing,
            FormatNotAcceptable,
            NotReady,
            SubmissionNotOpen,
            DocumentFailed,
            OutputImpossible,
            DocumentEncrypted,
            BlobMissing,
            BlobDamaged,
            TooManyAtOnce,
            RequestInvalid,
        ),
    },
    openapi_extra=taking(ACCEPT, IF_NONE_MATCH),
)
async def get_result(
    request: Request, asking: Asking, parts: House, upload_id: Upload, named: Named = None
) -> Response:
    """In the format that is named, or the one that the header Accept wants most. One that was not asked for with the
    document is made of what was read."""
    record = await run_sync(visible, parts, asking, upload_id)
    require_over(record)
    outputs = Wishes.from_json(record.wishes).formats
    chosen = chosen_format(outputs, named, request.headers.get("accept"))
    etag = etag_of((record.upload_id, chosen.name, record.finished_at_s))
    if is_known(request, etag):
        return not_modified(etag, VARIES)
    headers = {
        **cached_by_etag(etag),
        **VARIES,
        "content-disposition": _disposition(last_part(record.name) + chosen.suffix),
    }
    kept = await run_sync(_kept, parts, record, chosen) if chosen.name in outputs else None
    if kept is not None:
        return StreamingResponse(_chunks(*kept), media_type=chosen.media_type, headers=headers)
    made = await _made(request, parts, asking.team, await run_sync(_order, parts, record, chosen))
    if made is None:
        return Response(status_code=CLIENT_GONE)
    require_over(await run_sync(visible, parts, asking, upload_id))
    headers["content-length"] = str(os.fstat(made.fileno()).st_size)
    return StreamingResponse(_chunks(made, ExitStack()), media_type=chosen.media_type, headers=headers)


def _kept(parts: Parts, record: UploadRecord, chosen: OutputFormat) -> tuple[BinaryIO, ExitStack] | None:
    """None for one that was kept long enough: its pages are there still."""
    with ExitStack() as opening:
        try:
            stream = opening.enter_context(parts.blobs.open_result(record.source_id, chosen.suffix))
        except ResultExpired:
            return None
        return stream, opening.pop_all()


async def _made(request: Request, parts: Parts, team: str | None, order: ExportOrder) -> BinaryIO | None:
    """None once the client is gone, for whom it is not made any further."""
    unwanted = threading.Event()
    async with parts.exporting.entered(team):
        making = asyncio.ensure_future(run_sync(parts.exports.make, order, unwanted))
        leaving = asyncio.ensure_future(_client_is_gone(request))
        try:
            await asyncio.wait({making, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not making.done():
                unwanted.set()
            return await making
        except NotWanted:
            return None
        finally:
            unwanted.set()
            leaving.cancel()


def _order(parts: Parts, record: UploadRecord, chosen: OutputFormat) -> ExportOrder:
    """Raises ``DocumentErased`` where that has just happened."""
    document = None if record.document_id is None else parts.store.pages.document(record.document_id)
    if document is None or record.reading_id is None:
        raise DocumentErased(f"document {record.upload_id} was erased; send it again")
    return ExportOrder(
        document=document, reading_id=record.reading_id, source=record.name, output=chosen.name
    )


async def _client_is_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def require_over(record: UploadRecord) -> None:
    """Raises ``NotReady``, and for a document without outputs what became of it."""
    if record.state.is_open:
        raise NotReady(
            f"document {record.upload_id} is {record.state}; ask again in {RETRY_AFTER_S[record.state]} s",
            retry_after_s=RETRY_AFTER_S[record.state],
        )
    if record.state is DocumentState.CANCELLED:
        raise SubmissionNotOpen(f"document {record.upload_id} was cancelled; send it again")
    if record.state is DocumentState.FAILED:
        raise DocumentFailed(record.error_message or "the document could not be read; send it again")


def _chunks(stream: BinaryIO, kept_open: ExitStack) -> Iterator[bytes]:
    with kept_open, stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _disposition(name: str) -> str:
    """RFC 6266: the name in ASCII for those who know no more, and as it is (RFC 8187)."""
    plain = "".join(
        character if character.isascii() and character.isprintable() and character not in '"\\%' else "_"
        for character in name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
