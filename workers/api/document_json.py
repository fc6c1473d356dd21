"""A document of the API as JSON: ``docs/api.md`` describes it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from models.errors import DocumentErased, DocumentNotFound
from models.page import Route
from models.tables import PageState
from pipeline.store import Store
from pipeline.store.purge_statements import PURGED
from pipeline.store.upload_records import UploadRecord
from workers.api import schema
from workers.cluster.wishes import Wishes

UPLOAD_ID: Final = re.compile(schema.UPLOAD_ID)
"""No database is asked for what cannot be one: not all of them take every text."""

STATES: Final[Mapping[PageState, schema.PageStateName]] = {
    PageState.PENDING: "pending",
    PageState.RUNNING: "reading",
    PageState.AWAITING_VLM: "awaiting_vlm",
    PageState.TRANSCRIBING: "transcribing",
    PageState.DONE: "done",
    PageState.FAILED: "failed",
}


def document_json(record: UploadRecord) -> schema.Document:
    here = f"/v1/documents/{record.upload_id}"
    error: schema.Fault | None = None
    if record.error_code is not None:
        error = {"code": record.error_code, "message": record.error_message or ""}
    return {
        "id": record.upload_id,
        "name": record.name,
        "state": record.state,
        "document_id": record.document_id or record.blob_id,
        "media_type": record.media_type,
        "byte_count": record.byte_count,
        "page_count": record.page_count,
        "pages": _pages_by_state(record),
        "routes": {Route(name): count for name, count in record.routes.items()},
        "degraded_pages": record.degraded_pages,
        "cost_centre": record.cost_centre,
        "priority": record.priority,
        "outputs": list(Wishes.from_json(record.wishes).formats),
        "metadata": dict(record.details or {}),
        "created_at": moment(record.created_at_s),
        "finished_at": None if record.finished_at_s is None else moment(record.finished_at_s),
        "error": error,
        "links": {
            "self": here,
            "result": f"{here}/result",
            "pages": f"{here}/pages",
            "events": f"{here}/events",
            "cost": f"{here}/cost",
        },
    }


def _pages_by_state(record: UploadRecord) -> schema.PagesByState:
    return {
        "pending": record.pages.get(PageState.PENDING, 0),
        "reading": record.pages.get(PageState.RUNNING, 0),
        "awaiting_vlm": record.pages.get(PageState.AWAITING_VLM, 0),
        "transcribing": record.pages.get(PageState.TRANSCRIBING, 0),
        "done": record.pages.get(PageState.DONE, 0),
        "failed": record.pages.get(PageState.FAILED, 0),
    }


def document_of(store: Store, upload_id: str) -> schema.Document | None:
    """None where there is none any more. Raises ``StoreUnavailable``."""
    record = store.uploads.find(upload_id)
    is_gone = record is None or record.erased_at_s is not None or record.error_code == PURGED
    return None if record is None or is_gone else document_json(record)


def found(store: Store, upload_id: str) -> UploadRecord:
    """Raises ``DocumentNotFound`` and ``DocumentErased``."""
    record = store.uploads.find(upload_id) if UPLOAD_ID.fullmatch(upload_id) else None
    if record is None:
        raise no_such_document(upload_id)
    if record.erased_at_s is not None:
        raise DocumentErased(f"document {upload_id} was erased; send it again")
    return record


def no_such_document(upload_id: str) -> DocumentNotFound:
    return DocumentNotFound(
        f"there is no document {upload_id[:40]!r} that you may see; GET /v1/documents lists those there are"
    )


def moment(seconds: float) -> str:
    """RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def etag_of(content: object) -> str:
    """Of what would be sent."""
    text = json.dumps(content, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'
