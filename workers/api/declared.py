"""What routes declare beside what they take: the problems that they answer with, media types and headers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from fastapi import Path

from models.errors import (
    CostCentreRefused,
    CredentialsRefused,
    DoctriageError,
    IssuerUnavailable,
    NotAuthenticated,
    ScopeMissing,
    StoreUnavailable,
    StoreUnreachable,
    TooManyRequests,
)
from workers.api import schema
from workers.api.problems import CODE_OF, MEDIA_TYPE, status_of

Json = Mapping[str, Any]
Answers = dict[int | str, dict[str, Any]]

ASKING: Final = (
    NotAuthenticated,
    CredentialsRefused,
    ScopeMissing,
    CostCentreRefused,
    TooManyRequests,
    IssuerUnavailable,
    StoreUnavailable,
    StoreUnreachable,
)
"""What becomes of whoever may not ask, or asks in vain, whatever it is."""

NO_NUL: Final = r"^[^\x00]*$"
"""Of text that is looked for, or kept: databases differ in what they make of a NUL."""

Upload = Annotated[
    str, Path(description="The document's `id`.", json_schema_extra={"pattern": schema.UPLOAD_ID})
]


def header(description: str, *, kind: str = "string", is_always: bool = False) -> Json:
    return {"description": description, "required": is_always, "schema": {"type": kind}}


RETRY_AFTER: Final = {"Retry-After": header("Seconds until it is worth asking again.", kind="integer")}
ETAG: Final = {"ETag": header("Changes with anything in the answer.", is_always=True)}
VARY: Final = {"Vary": header("`accept`: it depends on that header.", is_always=True)}
LOCATION: Final = {"Location": header("The document's path.", is_always=True)}
REPLAYED: Final = {"Idempotency-Replayed": header("`true` where the request had come before.")}
ATTACHED: Final = {"Content-Disposition": header("The name to save it under.", is_always=True)}
ASKED_FOR: Final = {
    "WWW-Authenticate": header(
        "How to say who asks (RFC 6750); not where a cost centre or a priority is refused."
    )
}


def parameter(name: str, description: str, kind: Json) -> Json:
    return {"name": name, "in": "header", "required": False, "description": description, "schema": kind}


IF_NONE_MATCH: Final = parameter(
    "If-None-Match", "An `ETag` that is there already: 304 where it still holds.", {"type": "string"}
)
IDEMPOTENCY_KEY: Final = parameter(
    "Idempotency-Key",
    "The same request with the same key makes one document.",
    {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
)
LAST_EVENT_ID: Final = parameter(
    "Last-Event-ID", "The `id` of the last event heard: it goes on from there.", {"type": "string"}
)
ACCEPT: Final = parameter("Accept", "Media types, with weights.", {"type": "string"})


def taking(*parameters: Json) -> dict[str, Any]:
    """For ``openapi_extra``."""
    return {"parameters": list(parameters)}


def answer(
    description: str, *, content: Json | None = None, headers: Json | None = None, links: Json | None = None
) -> dict[str, Any]:
    """One without ``content`` has no body, or the route's own."""
    declared: dict[str, Any] = {"description": description}
    if content is not None:
        declared["content"] = dict(content)
    if headers:
        declared["headers"] = dict(headers)
    if links:
        declared["links"] = dict(links)
    return declared


def tagged(*, content: Json | None = None, headers: Json | None = None, links: Json | None = None) -> Answers:
    """Of a route whose answers have an ETag."""
    return {
        200: answer("As it is now.", content=content, headers={**ETAG, **(headers or {})}, links=links),
        304: answer("What the client has still holds.", headers=ETAG),
    }


def bytes_of(*media_types: str) -> Json:
    return {media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in media_types}


def kinds(error: type[DoctriageError]) -> Iterator[type[DoctriageError]]:
    """It and those below it."""
    yield error
    for kind in error.__subclasses__():
        yield from kinds(kind)


def problems(*errors: type[DoctriageError] | int, asking: bool = True) -> Answers:
    """By status, with the codes that each may have; a status stands for the framework's own refusal. Those of whoever
    may not ask, and a fault of the server, are among them."""
    codes: dict[int, dict[str, None]] = defaultdict(dict)
    for error in (*(ASKING if asking else ()), *errors):
        status, code = (error, CODE_OF[error]) if isinstance(error, int) else (status_of(error), error.code)
        codes[status][code] = None
    codes[500]["internal_error"] = None
    return {status: _problem(status, codes[status]) for status in sorted(codes)}


def _problem(status: int, codes: Iterable[str]) -> dict[str, Any]:
    own = {"properties": {"status": {"const": status}, "code": {"enum": sorted(codes)}}}
    described = {"allOf": [{"$ref": "#/components/schemas/Problem"}, own]}
    return answer(
        ", ".join(f"`{code}`" for code in sorted(codes)),
        content={MEDIA_TYPE: {"schema": described}},
        headers=_headers_of(status),
    )


def _headers_of(status: int) -> Json:
    if status in (401, 403):
        return ASKED_FOR
    return RETRY_AFTER if status in (409, 429, 503) else {}
