"""A gateway before vLLM, as LiteLLM is one: it adds fields to a call, and passes everything else on as it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.asgi_host import AsgiHost

TIMEOUT_S: Final = 600
METHODS: Final = ["GET", "POST"]
OF_ONE_CONNECTION: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})
"""Headers that are not passed on."""

AddedFields = Callable[[int], Mapping[str, object]]
"""What is added to the calls of a page, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A call that was answered, by the name that vLLM knows it by. ``usage`` is what vLLM says that it cost."""

    request_id: str
    usage: Mapping[str, Any]


class AddingGateway:
    """Serves between ``with`` and its end. It dies with the server behind it: a connection that breaks there breaks
    here, and none is taken any more."""

    def __init__(self, origin: str, added: AddedFields) -> None:
        self._origin = origin
        self._added = added
        self.passed: list[Passed] = []
        self.paths: set[str] = set()
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/{path:path}", self._other, methods=METHODS),
        ]
        self._host = AsgiHost(Starlette(routes=routes))

    def __enter__(self) -> Self:
        self._host.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._host.__exit__()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._host.port}/v1"

    @property
    def is_up(self) -> bool:
        return self._host.is_up

    async def _chat(self, request: Request) -> Response:
        request_id = request.headers["x-request-id"]
        body = json.dumps(await request.json() | self._added(page_number_of(request_id)))
        answer = await self._forwarded(request, body.encode())
        if answer.status_code == 200:
            completion = json.loads(bytes(answer.body))
            known_as = completion["id"].removeprefix("chatcmpl-")
            self.passed.append(Passed(request_id=known_as, usage=completion["usage"]))
        return answer

    async def _other(self, request: Request) -> Response:
        return await self._forwarded(request, await request.body())

    async def _forwarded(self, request: Request, body: bytes) -> Response:
        self.paths.add(request.url.path)
        url = httpx2.URL(f"{self._origin}{request.url.path}", query=request.url.query.encode())
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client:
                answer = await client.request(
                    request.method, url, content=body, headers=_passed_on(request.headers)
                )
        except httpx2.TransportError:
            await self._host.crash()
            return Response(status_code=502)
        return Response(answer.content, status_code=answer.status_code, headers=_passed_on(answer.headers))


def page_number_of(request_id: str) -> int:
    return int(request_id.split("/")[2])


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    left_out = OF_ONE_CONNECTION | {"content-encoding", "accept-encoding"}
    return {name: value for name, value in headers.items() if name.lower() not in left_out}
