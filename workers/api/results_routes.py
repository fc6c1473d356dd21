"""The outputs of a document, in the form that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from models.document_name import last_part
from models.document_state import DocumentState
from models.errors import (
    DocumentErased,
    DocumentFailed,
    DocumentNotFound,
    FormatNotAcceptable,
    NotReady,
    RequestInvalid,
    ResultExpired,
    ResultMissing,
    SubmissionNotOpen,
)
from pipeline.exports.formats import FORMATS, OutputFormat
from pipeline.store.upload_records import UploadRecord
from workers.api.answers import cached_by_etag, is_known, not_modified
from workers.api.declared import ACCEPT, ATTACHED, IF_NONE_MATCH, VARY, Upload, problems, tagged, taking
from workers.api.document_json import etag_of
from workers.api.documents_routes import RETRY_AFTER_S, visible
from workers.api.openapi import result_content
from workers.api.parts import Asking, House
from workers.cluster.wishes import Wishes

CHUNK_BYTES: Final = 256 * 1024

Named = Annotated[str | None, Query(alias="format")]

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
            ResultExpired,
            FormatNotAcceptable,
            NotReady,
            SubmissionNotOpen,
            DocumentFailed,
            RequestInvalid,
        ),
    },
    openapi_extra=taking(ACCEPT, IF_NONE_MATCH),
)
def get_result(
    request: Request, asking: Asking, parts: House, upload_id: Upload, named: Named = None
) -> Response:
    """In the format that is named, or the first that the header Accept has, of the document's outputs."""
    record = visible(parts, asking, upload_id)
    require_over(record)
    chosen = _chosen(record, named, request.headers.get("accept"))
    etag = etag_of((record.upload_id, chosen.name, record.finished_at_s))
    if is_known(request, etag):
        return not_modified(etag)
    with ExitStack() as opening:
        stream = opening.enter_context(parts.blobs.open_result(record.source_id, chosen.suffix))
        kept_open = opening.pop_all()
    return StreamingResponse(
        _chunks(stream, kept_open),
        media_type=chosen.media_type,
        headers={
            **cached_by_etag(etag),
            "vary": "accept",
            "content-disposition": _disposition(last_part(record.name) + chosen.suffix),
        },
    )


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
    with kept_open:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _chosen(record: UploadRecord, named: str | None, accept: str | None) -> OutputFormat:
    outputs = [FORMATS[name] for name in Wishes.from_json(record.wishes).formats if name in FORMATS]
    if named is not None:
        if named not in FORMATS:
            raise FormatNotAcceptable(f"there is no format {named[:40]!r}; name one of {', '.join(FORMATS)}")
        if FORMATS[named] not in outputs:
            has = ", ".join(output.name for output in outputs)
            raise ResultMissing(
                f"the document's outputs are {has}; send it again with outputs={named}, no page is read again for that"
            )
        return FORMATS[named]
    for wanted in _by_preference(accept or "*/*"):
        for output in outputs:
            if wanted.matches(output.media_type):
                return output
    kinds = ", ".join(output.media_type for output in outputs)
    raise FormatNotAcceptable(f"the document has none of the kinds in Accept; accept one of {kinds}")


@dataclass(frozen=True, slots=True)
class _Range:
    kind: str
    weight: float

    def matches(self, media_type: str) -> bool:
        wanted, _, part = self.kind.partition("/")
        kind, _, own_part = media_type.partition(";")[0].strip().partition("/")
        return wanted in ("*", kind) and part in ("*", own_part)


def _by_preference(accept: str) -> list[_Range]:
    """RFC 9110: the greatest weight first, the more specific before the less, else as they stand."""
    ranges = []
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.lower().split(";"))
        weight = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        try:
            ranges.append(_Range(kind, float(weight)))
        except ValueError:
            continue
    wanted = [one for one in ranges if one.weight > 0]
    return sorted(wanted, key=lambda one: (-one.weight, one.kind.count("*")))


def _disposition(name: str) -> str:
    """RFC 6266: the name in ASCII for those who know no more, and as it is (RFC 8187)."""
    plain = "".join(
        character if character.isascii() and character.isprintable() and character not in '"\\%' else "_"
        for character in name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
