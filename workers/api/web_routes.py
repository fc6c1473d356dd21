"""The web page: its files, and what it asks besides the rest of the API."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

import workers.web
from models.errors import DocumentErased, DocumentNotFound, PageNotFound, RequestInvalid
from pipeline.exports.html import page_html
from workers.api import schema
from workers.api.answers import is_known, json_answer
from workers.api.declared import Upload, answer, problems
from workers.api.documents_routes import visible
from workers.api.pages_routes import Number
from workers.api.parts import Asking, House

FOLDER: Final = Path(workers.web.__file__).parent
FIRST_FILE: Final = "index.html"

MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types doctriage",
    )
)

HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    content: bytes
    media_type: str
    etag: str


router = APIRouter(include_in_schema=False)
asked_by_the_page = APIRouter(prefix="/v1")


@router.get("/")
def get_first_file(request: Request) -> Response:
    return _answer(request, FIRST_FILE)


@router.get("/web/access.json")
def get_access(parts: House) -> Response:
    """Whether whoever asks has to show a key: what the page has to know before it asks anything else."""
    return json_answer({"is_open": parts.access.is_open})


@router.get("/web/{path:path}")
def get_file(request: Request, path: str) -> Response:
    return _answer(request, path)


@asked_by_the_page.get("/me", response_model=schema.Caller, responses=problems())
def get_caller(asking: Asking) -> Response:
    """Who asks, for which cost centre, and how far that goes."""
    return json_answer(
        {
            "name": asking.name,
            "cost_centre": asking.cost_centre,
            "scopes": sorted(asking.scopes),
            "is_admin": asking.is_admin,
            "max_priority": asking.max_priority,
        }
    )


@asked_by_the_page.get(
    "/documents/{upload_id}/pages/{page_number}/html",
    response_class=Response,
    responses={
        200: answer("A part of an HTML document.", content={"text/html": {"schema": {"type": "string"}}}),
        **problems(404, DocumentNotFound, DocumentErased, PageNotFound, RequestInvalid),
    },
)
def get_page_html(asking: Asking, parts: House, upload_id: Upload, page_number: Number) -> Response:
    """The page's Markdown as HTML, of which a browser runs nothing: a part of a document, without a frame."""
    record = visible(parts, asking, upload_id)
    page = (
        None if record.reading_id is None else parts.store.uploads.page_result(record.reading_id, page_number)
    )
    if page is None or page.content is None:
        raise PageNotFound(
            f"document {upload_id} has no page {page_number} that was read; GET …/pages lists them"
        )
    return Response(
        page_html(page.content["markdown"] or ""),
        media_type="text/html; charset=utf-8",
        headers={"cache-control": "no-store"},
    )


def read_web_files() -> dict[str, WebFile]:
    """By their path below ``/web/``."""
    return {
        path.relative_to(FOLDER).as_posix(): _web_file(path)
        for path in FOLDER.rglob("*")
        if path.suffix in MEDIA_TYPES
    }


def _web_file(path: Path) -> WebFile:
    content = path.read_bytes()
    return WebFile(
        content=content,
        media_type=MEDIA_TYPES[path.suffix],
        etag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    )


FILES: Final = read_web_files()


def _answer(request: Request, path: str) -> Response:
    file = FILES.get(path)
    if file is None:
        raise HTTPException(404)
    headers = {**HEADERS, "etag": file.etag}
    if is_known(request, file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
