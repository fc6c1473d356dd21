"""Every error of the API as a problem of RFC 9457: a type, a stable code, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from models.errors import (
    ApiKeyNotFound,
    BlobMissing,
    BodyMalformed,
    BodyUnsupported,
    BrokerUnavailable,
    CallbackUrlRefused,
    CostCentreRefused,
    DoctriageError,
    DocumentErased,
    DocumentFailed,
    DocumentInUse,
    DocumentNotFound,
    DocumentRejected,
    EngineUnavailable,
    FormatNotAcceptable,
    IdempotencyKeyReused,
    IssuerUnavailable,
    NotAuthenticated,
    NotReady,
    PageFailed,
    PageNotFound,
    PoolBusy,
    PriorityRefused,
    RequestInvalid,
    ResultExpired,
    ResultMissing,
    ScopeMissing,
    StoreUnavailable,
    SubmissionNotFound,
    SubmissionNotOpen,
    TooManyAtOnce,
    TooManyBytes,
    TooManyRequests,
    UnsupportedMediaType,
    UploadTooSlow,
)

MEDIA_TYPE: Final = "application/problem+json"
TYPE: Final = "urn:doctriage:problem:"

STATUS_OF: Final[Mapping[type[DoctriageError], int]] = {
    ApiKeyNotFound: 404,
    BlobMissing: 410,
    BodyMalformed: 400,
    BodyUnsupported: 415,
    BrokerUnavailable: 503,
    CallbackUrlRefused: 422,
    CostCentreRefused: 403,
    DocumentErased: 410,
    DocumentFailed: 409,
    DocumentInUse: 409,
    DocumentNotFound: 404,
    DocumentRejected: 422,
    EngineUnavailable: 503,
    FormatNotAcceptable: 406,
    IdempotencyKeyReused: 422,
    IssuerUnavailable: 503,
    NotAuthenticated: 401,
    NotReady: 409,
    PageFailed: 422,
    PageNotFound: 404,
    PoolBusy: 503,
    PriorityRefused: 403,
    RequestInvalid: 422,
    ResultExpired: 410,
    ResultMissing: 404,
    ScopeMissing: 403,
    StoreUnavailable: 503,
    SubmissionNotFound: 404,
    SubmissionNotOpen: 409,
    TooManyAtOnce: 503,
    TooManyBytes: 413,
    TooManyRequests: 429,
    UnsupportedMediaType: 415,
    UploadTooSlow: 408,
}
"""The nearest class of an error decides. What is not here is a fault of the server."""

AWAY_RETRY_S: Final = 10
"""Where an error does not say when to come again."""

CODE_OF: Final[Mapping[int, str]] = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
}
"""Of the framework's own refusals."""

ADVICE_OF: Final[Mapping[int, str]] = {
    413: "send a smaller body",
    404: "check the path; GET /v1/openapi.json lists all there are",
    405: "use one of the methods in the header Allow",
    500: "try again; if it comes again, look at the server's log",
}

log = structlog.get_logger()


def status_of(error: type[DoctriageError]) -> int:
    return next((STATUS_OF[kind] for kind in error.__mro__ if kind in STATUS_OF), 500)


def problem(
    request: Request,
    *,
    status: int,
    code: str,
    detail: str,
    advice: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """``advice`` is taken from the detail, which says what to do after a semicolon, where none is given."""
    body = {
        "type": TYPE + code,
        "title": code.replace("_", " "),
        "status": status,
        "detail": detail,
        "instance": request.url.path,
        "code": code,
        "advice": advice or detail.rpartition("; ")[2],
        **more,
    }
    return Response(
        json.dumps(body),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={"cache-control": "no-store", **(headers or {})},
    )


def problem_of(request: Request, error: DoctriageError) -> Response:
    status = status_of(type(error))
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request_failed", path=request.url.path, code=error.code, exc_info=error)
    faults = error.faults if isinstance(error, RequestInvalid) else ()
    more: dict[str, Any] = {}
    if faults:
        more["errors"] = [{"field": field, "message": message} for field, message in faults]
    return problem(
        request,
        status=status,
        code=error.code,
        detail=str(error),
        headers=_retry_after(error, status),
        **more,
    )


def add_handlers(app: FastAPI) -> None:
    """Nothing else ever comes back as the body of an error."""
    app.add_exception_handler(DoctriageError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_anything)


async def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, DoctriageError)
    return problem_of(request, error)


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = tuple(
        (".".join(str(part) for part in fault["loc"][1:]) or str(fault["loc"][0]), str(fault["msg"]))
        for fault in error.errors()
    )
    fields = ", ".join(field for field, _ in faults)
    return problem_of(
        request, RequestInvalid(f"the request is not valid ({fields}); correct it", faults=faults)
    )


async def _of_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = CODE_OF.get(error.status_code, f"http_{error.status_code}")
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_allowed_methods(request, headers.get("allow", "")))
    return problem(
        request,
        status=error.status_code,
        code=code,
        detail=f"{request.method} {request.url.path}: {code.replace('_', ' ')}",
        advice=ADVICE_OF.get(error.status_code, "correct the request"),
        headers=headers,
    )


async def _of_anything(request: Request, error: Exception) -> Response:
    """What it was is in the log, and nothing of it in the answer."""
    log.error("request_failed", path=request.url.path, exc_info=error)
    return problem(
        request,
        status=500,
        code="internal_error",
        detail="the server failed at this request",
        advice=ADVICE_OF[500],
    )


def _allowed_methods(request: Request, named: str) -> list[str]:
    """Of all routes of the path; the framework names those of the first."""
    methods = {method.strip().upper() for method in named.split(",") if method.strip()}
    for template, operations in request.app.openapi()["paths"].items():
        pattern, _, _ = compile_path(template)
        if pattern.match(request.url.path):
            methods.update(method.upper() for method in operations)
    return sorted(methods)


def _retry_after(error: DoctriageError, status: int) -> Mapping[str, str]:
    given_s = getattr(error, "retry_after_s", None)
    if given_s is not None:
        return {"retry-after": str(max(1, round(given_s)))}
    return {"retry-after": str(AWAY_RETRY_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
