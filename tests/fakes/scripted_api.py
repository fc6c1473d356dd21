"""An API that answers as a script says, over a real socket, and remembers what it was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.asgi_host import AsgiHost, reset
from workers.api.problems import MEDIA_TYPE

START_BYTES = 4_096

Step = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    method: str
    path: str
    headers: Mapping[str, str]
    query: str
    body_bytes: int
    body_sha256: str


@dataclass(slots=True)
class ScriptedApi:
    """Each request takes the next of ``steps``; the last one is there for all that come after it."""

    steps: Sequence[Step]
    heard: list[Heard] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        """``state.start`` of the request is the beginning of its body."""
        digest, count, request.state.start = hashlib.sha256(), 0, b""
        async for chunk in request.stream():
            digest.update(chunk)
            count += len(chunk)
            request.state.start = (request.state.start + chunk)[:START_BYTES]
        self.heard.append(
            Heard(
                method=request.method,
                path=request.url.path,
                headers=dict(request.headers),
                query=request.url.query,
                body_bytes=count,
                body_sha256=digest.hexdigest(),
            )
        )
        return await self.steps[min(len(self.heard), len(self.steps)) - 1](request)


@contextmanager
def scripted_api(*steps: Step) -> Iterator[ScriptedApi]:
    api = ScriptedApi(steps)
    methods = ["GET", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", api.answer, methods=methods)])
    with AsgiHost(app) as host:
        api.url = f"http://127.0.0.1:{host.port}"
        yield api


def answers(content: object, status: int = 200, **headers: str) -> Step:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def step(_: Request) -> Response:
        return JSONResponse(content, status_code=status, headers=named)

    return step


def refuses(status: int, code: str, detail: str = "no; do something", **headers: str) -> Step:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"code": code, "detail": detail, "status": status, "title": code, "type": "x"})

    async def step(_: Request) -> Response:
        return Response(body, status_code=status, media_type=MEDIA_TYPE, headers=named)

    return step


def says(text: str, status: int) -> Step:
    async def step(_: Request) -> Response:
        return Response(text, status_code=status, media_type="text/html")

    return step


async def dies(request: Request) -> Response:
    """Without a word."""
    reset(request.scope["transport"])
    return Response()


def streams(text: str, *, dies_after: bool = False, media_type: str = "text/event-stream") -> Step:
    """All of ``text``, and then the end, or a connection that is lost."""

    async def step(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield text.encode()
            if dies_after:
                transport = request.scope["transport"]
                while transport.get_write_buffer_size():
                    raise AssertionError("so little is sent at once")
                transport.close()

        return StreamingResponse(chunks(), media_type=media_type)

    return step


def event(kind: str, event_id: str, content: object) -> str:
    return f"event: {kind}\nid: {event_id}\ndata: {json.dumps(content)}\n\n"


def document_content(state: str = "finished", **changed: Any) -> dict[str, Any]:
    """As ``docs/api.md`` has it."""
    is_over = state not in ("queued", "reading")
    content = {
        "id": "d1",
        "name": "a.pdf",
        "state": state,
        "document_id": "ab" * 32,
        "media_type": "application/pdf",
        "byte_count": 10,
        "page_count": 2,
        "pages": {"done": 2},
        "routes": {"ocr": 2},
        "degraded_pages": 0,
        "cost_centre": "harbour",
        "priority": 5,
        "outputs": ["markdown"],
        "metadata": {"case": 1},
        "created_at": "2026-11-30T10:00:00.000Z",
        "finished_at": "2026-11-30T10:00:01.000Z" if is_over else None,
        "error": None,
        "links": {"self": "/v1/documents/d1"},
    }
    return {**content, **changed}


def page_content(page_number: int, state: str = "done") -> dict[str, Any]:
    """Of an event."""
    return {
        "page_number": page_number,
        "state": state,
        "route": "ocr",
        "attempts": 1,
        "elapsed_s": 0.5,
        "from_earlier_run": False,
        "error": None,
    }
