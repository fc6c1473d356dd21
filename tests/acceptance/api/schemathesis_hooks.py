"""What Schemathesis is to know beside the schema: what begins as a document, else the form of an upload is never looked
at; and that a document is gone once it is erased, but not once it is cancelled."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import schemathesis

from workers.api.upload_order import KEY

BEGINNING: Final = "%PDF-1.7\n"
NOBODY: Final = "https://callbacks.invalid/"
NUMBERS: Final = count()
ERASED: Final[set[str]] = set()


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    if isinstance(case.body, dict):
        _make_form_matter(case, case.body)
    key = case.headers.get("Idempotency-Key")
    if isinstance(key, str) and KEY.fullmatch(key):
        case.headers["Idempotency-Key"] = f"{key[:200]}{next(NUMBERS)}"


def _make_form_matter(case: schemathesis.Case, form: dict[str, Any]) -> None:
    """The file begins as a document does, but for quotes that are right else: those take seconds each. Callbacks go
    nowhere."""
    is_right = case.meta is not None and case.meta.generation.mode.is_positive
    if is_right and form.get("callback_url"):
        form["callback_url"] = NOBODY
    file = form.get("file")
    if isinstance(file, str | bytes) and file and not (is_right and case.operation.path == "/v1/quotes"):
        beginning = BEGINNING if isinstance(file, str) else BEGINNING.encode()
        form["file"] = file if file[:5] == beginning[:5] else beginning + file  # type: ignore[operator]


@schemathesis.check
def erased_is_gone(
    context: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Takes the place of ``use_after_free``, which takes a DELETE that cancels for one that erases."""
    upload_id = case.path_parameters.get("upload_id")
    is_erasure = (
        case.operation.definition.raw["operationId"] == "delete_document" and response.status_code == 204
    )
    if upload_id in ERASED:
        assert response.status_code >= 400, f"document {upload_id} was erased"
    elif is_erasure:
        ERASED.add(str(upload_id))
