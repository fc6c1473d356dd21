"""A receiver of callbacks on a real socket, which checks signatures with the reference library and answers as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self

from standardwebhooks import Webhook
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.asgi_host import AsgiHost

ENDLESS = 1
"""In the place of a status: an answer without an end."""
SILENT = 2
"""No answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    message_id: str
    host: str
    path: str
    headers: dict[str, str]
    message: dict[str, Any]


@dataclass(slots=True)
class CallbackReceiver:
    """``answers`` are used up, each status once; then it is 204. ``secret`` None checks nothing."""

    secret: str | None
    answers: list[int] = field(default_factory=list)
    answer_headers: dict[str, str] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    sent_bytes: int = 0
    _host: AsgiHost = field(init=False)

    def __post_init__(self) -> None:
        routes = [Route("/{path:path}", self._take, methods=["GET", "POST"])]
        self._host = AsgiHost(Starlette(routes=routes))

    def __enter__(self) -> Self:
        self._host.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._host.__exit__(*exception)

    @property
    def port(self) -> int:
        return self._host.port

    def url(self, host: str = "receiver.example", path: str = "/done?case=4711") -> str:
        return f"http://{host}:{self.port}{path}"

    async def _take(self, request: Request) -> Response:
        body = await request.body()
        headers = dict(request.headers)
        message = {} if self.secret is None else Webhook(self.secret).verify(body, headers)
        self.received.append(
            Received(
                message_id=headers.get("webhook-id", ""),
                host=headers["host"],
                path=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
                headers=headers,
                message=message,
            )
        )
        status = self.answers.pop(0) if self.answers else 204
        if status == ENDLESS:
            return StreamingResponse(self._endless())
        if status == SILENT:
            await asyncio.sleep(60)
        if status == 204:
            return Response(status_code=204)
        return PlainTextResponse("as told", status_code=status, headers=self.answer_headers)

    async def _endless(self) -> AsyncIterator[bytes]:
        while True:
            self.sent_bytes += 8_192
            yield b"x" * 8_192
            await asyncio.sleep(0)
