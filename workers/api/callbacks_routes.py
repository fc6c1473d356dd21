"""What became of telling a document's sender about it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from models.errors import DocumentErased, DocumentNotFound, RequestInvalid
from pipeline.store.callbacks import CallbackRecord
from workers.api import schema
from workers.api.answers import json_answer
from workers.api.declared import Upload, problems
from workers.api.document_json import moment
from workers.api.documents_routes import visible
from workers.api.parts import Asking, House

router = APIRouter(prefix="/v1/documents")


@router.get(
    "/{upload_id}/callbacks",
    response_model=schema.CallbackList,
    responses=problems(404, DocumentNotFound, DocumentErased, RequestInvalid),
)
def list_callbacks(asking: Asking, parts: House, upload_id: Upload) -> Response:
    """The newest first: what was sent to the document's callback address, how often, and what was answered."""
    record = visible(parts, asking, upload_id)
    callbacks = parts.store.callbacks.of_upload(record.upload_id)
    return json_answer({"callbacks": [callback_json(callback) for callback in callbacks]})


def callback_json(callback: CallbackRecord) -> schema.Callback:
    return {
        "id": callback.message_id,
        "event": callback.event,
        "url": callback.url,
        "state": callback.state,
        "attempts": callback.attempts,
        "next_attempt_at": _moment(callback.next_attempt_at_s),
        "last_status": callback.last_status,
        "last_error": callback.last_error,
        "created_at": moment(callback.created_at_s),
        "delivered_at": _moment(callback.delivered_at_s),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else moment(seconds)
