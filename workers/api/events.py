"""What becomes of a document, told as it happens: server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from models.errors import DocumentErased, DocumentNotFound, RequestInvalid, StoreUnavailable, TooManyAtOnce
from models.page import Route
from models.tables import PageState
from pipeline.store import SettledPage, Store
from pipeline.store.upload_records import UploadRecord
from workers.api import schema
from workers.api.declared import LAST_EVENT_ID, Upload, answer, problems, taking
from workers.api.document_json import document_json
from workers.api.documents_routes import visible
from workers.api.parts import Asking, Gate, House

LOOK_EVERY_S: Final = 0.5
SHARE_OF_TIME: Final = 0.1
"""Looking takes no more of the time than this."""

OVERLAP_S: Final = 30.0
"""A transaction that began before another may become visible after it; so far back is looked again."""

COMMENT_EVERY_S: Final = 15
SEND_LIMIT_S: Final = 30.0
"""A client that takes nothing for so long is let go."""

AWAY_S: Final = 2.0
MOST_PAGES: Final = 100_000
ENDED: Final = "end"

STREAM: Final = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "description": "Each event; the `data` of `document` and `end` is a Document, that of `page` a PageEvent.",
            "properties": {
                "event": {"enum": ["document", "page", "end"]},
                "id": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
            },
            "required": ["event", "id", "data"],
        }
    }
}

router = APIRouter(prefix="/v1/documents/{upload_id}")


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: answer("What happens, until it is over.", content=STREAM),
        204: answer("Nothing more will happen: the last event was heard."),
        **problems(404, DocumentNotFound, DocumentErased, RequestInvalid, TooManyAtOnce),
    },
    openapi_extra=taking(LAST_EVENT_ID),
)
async def follow_document(request: Request, asking: Asking, parts: House, upload_id: Upload) -> Response:
    """``document`` when its state changes, ``page`` for each page that is done or failed, ``end`` when it is over.
    With Last-Event-ID it goes on from there."""
    record = await run_sync(visible, parts, asking, upload_id)
    last = request.headers.get("last-event-id", "")
    if last == ENDED:
        return Response(status_code=204)
    events = _events(parts.store, record, Told.from_id(last))
    return _Following(parts.streams, events)


class _Following(EventSourceResponse):
    """Holds its place for as long as it is sent, and no longer."""

    def __init__(self, gate: Gate, events: AsyncIterator[dict[str, str]]) -> None:
        super().__init__(events, ping=COMMENT_EVERY_S, send_timeout=SEND_LIMIT_S, sep="\n")
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises ``TooManyAtOnce``."""
        with self._gate.entered():
            await super().__call__(scope, receive, send)


@dataclass(slots=True)
class Told:
    """What a client has heard. It is the whole of an event's id, so that any server can go on from it: the state, and
    the numbers of the pages, as ``reading;1-3,5``."""

    state: str = ""
    pages: set[int] = field(default_factory=set)

    @property
    def id(self) -> str:
        ranges = (f"{first}-{last}" if first < last else str(first) for first, last in _ranges(self.pages))
        return f"{self.state};{','.join(ranges)}"

    @classmethod
    def from_id(cls, text: str) -> Told:
        """Of an id that is none nothing is told yet."""
        state, _, ranges = text.partition(";")
        try:
            return cls(state, set(_pages_of(ranges)))
        except ValueError:
            return cls()


def _pages_of(ranges: str) -> Iterator[int]:
    """Raises ValueError, also for more pages than any document has."""
    left = MOST_PAGES
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first) + 1
        left -= max(0, end - begin)
        if left < 0:
            raise ValueError(part)
        yield from range(begin, end)


def _ranges(pages: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for page in sorted(pages):
        if last is not None and page == last + 1:
            last = page
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = page
    if first is not None and last is not None:
        yield first, last


async def _events(store: Store, record: UploadRecord, told: Told) -> AsyncIterator[dict[str, str]]:
    since_s = 0.0
    while True:
        began_s, next_since_s = time.monotonic(), time.time() - OVERLAP_S
        try:
            seen, pages = await run_sync(_look, store, record, since_s)
        except StoreUnavailable:
            await asyncio.sleep(AWAY_S)
            continue
        if seen is None:
            return
        if seen.state != told.state:
            told.state = str(seen.state)
            yield _event("document", told.id, document_json(seen))
        for page in pages:
            if page.page_number not in told.pages:
                told.pages.add(page.page_number)
                yield _event("page", told.id, _page_json(page))
        if not seen.state.is_open:
            yield _event("end", ENDED, document_json(seen))
            return
        since_s = next_since_s
        await asyncio.sleep(max(LOOK_EVERY_S, (time.monotonic() - began_s) / SHARE_OF_TIME))


def _look(
    store: Store, record: UploadRecord, since_s: float
) -> tuple[UploadRecord | None, tuple[SettledPage, ...]]:
    """The document first: when it is over, all its pages are among those that are seen after it."""
    seen = store.uploads.find(record.upload_id)
    if seen is None or seen.erased_at_s is not None:
        return None, ()
    return seen, tuple(store.pool.settled_pages(record.submission_id, since_s=since_s))


def _event(kind: str, event_id: str, content: object) -> dict[str, str]:
    return {"event": kind, "id": event_id, "data": json.dumps(content, ensure_ascii=False)}


def _page_json(page: SettledPage) -> schema.PageEvent:
    is_failed = page.state is PageState.FAILED
    return {
        "page_number": page.page_number,
        "state": "failed" if is_failed else "done",
        "route": None if page.route is None else Route(page.route),
        "attempts": page.attempts,
        "elapsed_s": page.elapsed_s,
        "from_earlier_run": page.from_earlier_run,
        "error": {"code": page.error_code or "", "message": page.error_message or ""} if is_failed else None,
    }
