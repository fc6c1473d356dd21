"""Whoever is refused while sending sees the answer: a connection that is closed on what is still to be read is reset,
and the answer with it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DRAINED_BYTES: Final = 32 * 2**20
DRAINED_S: Final = 5.0
"""So much of a body is read to no end, and for so long. Who sends more has to do without the answer."""

REFUSED: Final = 400


class DrainedBodies:
    """ASGI middleware: what is left of the body of a request that is refused is read before the answer is sent. Whoever
    waits to be told to go on (``Expect: 100-continue``) has nothing on its way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        body = _Body(receive, is_held_back="expect" in Headers(scope=scope))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= REFUSED:
                await body.drain()
            await send(message)

        await self._app(scope, body.receive, sent)


class _Body:
    def __init__(self, receive: Receive, *, is_held_back: bool) -> None:
        self._receive = receive
        self._is_held_back = is_held_back
        self._is_over = False

    async def receive(self) -> Message:
        self._is_held_back = False
        message = await self._receive()
        self._is_over = not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        drained_bytes = 0
        try:
            async with asyncio.timeout(DRAINED_S):
                while not (self._is_over or self._is_held_back or drained_bytes > DRAINED_BYTES):
                    drained_bytes += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
