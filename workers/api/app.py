"""The application: routes, errors, and what stands around every answer."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers.api import (
    callbacks_routes,
    documents_routes,
    events,
    health_routes,
    money_routes,
    pages_routes,
    results_routes,
    review_routes,
    web_routes,
)
from workers.api.access import AccessHeaders
from workers.api.draining import DrainedBodies
from workers.api.metrics import ApiMetrics, CountedRequests
from workers.api.openapi import DescribedApp
from workers.api.parts import Parts
from workers.api.problems import add_handlers

OPENAPI_PATH: Final = "/v1/openapi.json"

MOST_BODY_BYTES: Final = 64 * 1024
BODY_S: Final = 20.0
"""Of a request that is no upload: it is read before anybody looks at who sends it."""

UPLOAD_PATHS: Final = frozenset({"/v1/documents", "/v1/quotes"})
"""Their forms are bounded while they arrive."""

SAFE_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "referrer-policy": "no-referrer",
}
"""A document's text is a stranger's: no browser is to run any of it."""


def described_app() -> DescribedApp:
    """All routes, and nothing behind them."""
    app = DescribedApp(
        title="doctriage",
        version=version("doctriage"),
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    for routes in (
        documents_routes,
        results_routes,
        pages_routes,
        callbacks_routes,
        events,
        money_routes,
        health_routes,
        review_routes,
        web_routes,
    ):
        app.include_router(routes.router)
    app.include_router(web_routes.asked_by_the_page)
    return app


def make_app(parts: Parts, metrics: ApiMetrics) -> DescribedApp:
    app = described_app()
    app.state.parts = parts
    app.state.access = parts.access
    app.state.metrics = metrics
    add_handlers(app)
    app.add_middleware(AccessHeaders)
    app.add_middleware(BoundedBodies)
    app.add_middleware(DrainedBodies)
    app.add_middleware(SafeHeaders)
    app.add_middleware(CountedRequests, metrics=metrics)
    return app


class BoundedBodies:
    """ASGI middleware: whoever reads the body of a request that is no upload reads no more than so much, for no longer
    than so long: then the client counts as gone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read_bytes = 0
        is_over = False
        until_s = asyncio.get_running_loop().time() + BODY_S

        async def bounded() -> Message:
            nonlocal read_bytes, is_over
            message = await receive() if is_over else await _received(receive, until_s)
            is_over = not message.get("more_body", False)
            read_bytes += len(message.get("body", b""))
            if read_bytes > MOST_BODY_BYTES:
                raise HTTPException(413)
            return message

        is_upload = scope["type"] != "http" or scope["path"] in UPLOAD_PATHS
        await self._app(scope, receive if is_upload else bounded, send)


async def _received(receive: Receive, until_s: float) -> Message:
    try:
        async with asyncio.timeout_at(until_s):
            return await receive()
    except TimeoutError:
        return {"type": "http.disconnect"}


class SafeHeaders:
    """ASGI middleware. What an answer says itself stays."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)
