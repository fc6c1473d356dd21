"""Answers as JSON, with what caches and repeated requests need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

JSON_TYPE = "application/json"


def json_answer(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        json.dumps(content, ensure_ascii=False),
        status_code=status,
        media_type=JSON_TYPE,
        headers={"cache-control": "no-store", **(headers or {})},
    )


def is_known(request: Request, etag: str) -> bool:
    """Whether the client says that it has just this."""
    given = request.headers.get("if-none-match", "")
    known = {one.strip().removeprefix("W/") for one in given.split(",")}
    return etag in known or "*" in known


def not_modified(etag: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status_code=304, headers={**cached_by_etag(etag), **(headers or {})})


def cached_by_etag(etag: str) -> dict[str, str]:
    """It may be kept by the client alone, and is asked for again each time."""
    return {"etag": etag, "cache-control": "private, no-cache"}


def tagged_json(
    request: Request, content: Any, etag: str, headers: Mapping[str, str] | None = None
) -> Response:
    if is_known(request, etag):
        return not_modified(etag, headers)
    return json_answer(content, headers={**(headers or {}), **cached_by_etag(etag)})
