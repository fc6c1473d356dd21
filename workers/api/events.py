"""What becomes of a document, told as it happens: server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
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
ASKED_EVERY_S: Final = 5.0
"""Whether the key with which somebody follows is still taken."""

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
    events = events_of(parts.store, record, Told.from_id(last), lambda: parts.access.still_holds(request))
    return _Following(parts.streams, asking.team, events)


class _Following(EventSourceResponse):
    """Holds its place for as long as it is sent, and no longer."""

    def __init__(self, gate: Gate, team: str | None, events: AsyncIterator[dict[str, str]]) -> None:
        super().__init__(events, ping=COMMENT_EVERY_S, send_timeout=SEND_LIMIT_S, sep="\n")
        self._gate = gate
        self._team = team

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises ``TooManyAtOnce``."""
        with self._gate.entered(self._team):
            await super().__call__(scope, receive, send)


@dataclass(slots=True)
class Told:
    """What a client has heard. It is the whole of an event's id, so that any server can go on from it: the state, and
    the numbers of the pages, as ``reading;1-3,5``. ``ranges`` are in order, with pages between them."""

    state: str = ""
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def id(self) -> str:
        ranges = (f"{first}-{last}" if first < last else str(first) for first, last in self.ranges)
        return f"{self.state};{','.join(ranges)}"

    @classmethod
    def from_id(cls, text: str) -> Told:
        """Of an id that is none nothing is told yet."""
        state, _, ranges = text.partition(";")
        try:
            return cls(state, _joined(sorted(_read_ranges(ranges))))
        except ValueError:
            return cls()

    def has(self, page_number: int) -> bool:
        place = bisect_right(self.ranges, (page_number, MOST_PAGES))
        return place > 0 and self.ranges[place - 1][1] >= page_number

    def add(self, page_number: int) -> None:
        place = bisect_right(self.ranges, (page_number, MOST_PAGES))
        around = slice(max(0, place - 1), place + 1)
        self.ranges[around] = _joined(sorted([*self.ranges[around], (page_number, page_number)]))

    def forget_beyond(self, page_count: int) -> None:
        """Whoever asks says what was heard, also of pages that there are not."""
        self.ranges = [(first, min(last, page_count)) for first, last in self.ranges if first <= page_count]


def _read_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Raises ValueError, also for pages that no document has."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if not 1 <= begin <= end <= MOST_PAGES:
            raise ValueError(part)
        yield begin, end


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of ranges in order, those that touch are one."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


async def events_of(
    store: Store, record: UploadRecord, told: Told, still_holds: Callable[[], bool]
) -> AsyncIterator[dict[str, str]]:
    """Until the document is over, or whoever asked may ask no more."""
    since_s, asked_s = 0.0, time.monotonic()
    while True:
        began_s, next_since_s = time.monotonic(), time.time() - OVERLAP_S
        if began_s - asked_s >= ASKED_EVERY_S:
            asked_s = began_s
            if not await run_sync(still_holds):
                return
        try:
            seen, pages = await run_sync(_look, store, record, since_s)
        except StoreUnavailable:
            await asyncio.sleep(AWAY_S)
            continue
        if seen is None:
            return
        for event in _news(seen, pages, told):
            yield event
        if not seen.state.is_open:
            yield _event("end", ENDED, document_json(seen))
            return
        since_s = next_since_s
        await asyncio.sleep(max(LOOK_EVERY_S, (time.monotonic() - began_s) / SHARE_OF_TIME))


def _news(seen: UploadRecord, pages: Iterable[SettledPage], told: Told) -> Iterator[dict[str, str]]:
    if seen.page_count is not None:
        told.forget_beyond(seen.page_count)
    if seen.state != told.state:
        told.state = str(seen.state)
        yield _event("document", told.id, document_json(seen))
    for page in pages:
        if not told.has(page.page_number):
            told.add(page.page_number)
            yield _event("page", told.id, _page_json(page))


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
