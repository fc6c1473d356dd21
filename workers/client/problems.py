"""Problems (RFC 9457) that the API answers with, as the errors that they are in ``models.errors``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from models.errors import (
    BudgetSpent,
    DoctriageError,
    RequestInvalid,
    ScopeMissing,
    ServerError,
    SubmissionNotFound,
    TryAgainLater,
    VlmError,
)

DEFAULT_RETRY_S: Final = 5
NOT_OURS: Final = "check that the address is that of a doctriage server"
MADE_OTHERWISE: Final = (BudgetSpent, ServerError, SubmissionNotFound, VlmError)
"""Errors that carry more than a problem has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``code`` is stable. ``errors`` name fields and what is wrong with them. ``retry_after_s`` is of the header."""

    status: int
    code: str
    detail: str
    advice: str
    errors: tuple[tuple[str, str], ...] = ()
    retry_after_s: float | None = None


def problem_of(status: int, content: object, retry_after_s: float | None) -> Problem | None:
    """None for a body that is none."""
    if not isinstance(content, Mapping) or not all(isinstance(content.get(name), str) for name in TEXTS):
        return None
    return Problem(
        status=status,
        code=content["code"],
        detail=content["detail"],
        advice=str(content.get("advice", "")),
        errors=tuple(_errors(content.get("errors"))),
        retry_after_s=retry_after_s,
    )


TEXTS: Final = ("code", "detail")


def error_of(problem: Problem) -> DoctriageError:
    """Of the class with the problem's code; ServerError where this program knows none."""
    kind = _classes().get(problem.code)
    message = problem.detail
    if kind is None or issubclass(kind, MADE_OTHERWISE):
        said = (
            message if problem.advice in ("", message.rpartition("; ")[2]) else f"{message}; {problem.advice}"
        )
        return ServerError(said, status=problem.status, problem_code=problem.code)
    if issubclass(kind, TryAgainLater):
        return kind(message, retry_after_s=round(problem.retry_after_s or DEFAULT_RETRY_S))
    if issubclass(kind, RequestInvalid):
        return kind(_with_faults(message, problem.errors), faults=problem.errors)
    if issubclass(kind, ScopeMissing):
        return kind(message, scope="")
    return kind(message)


def unknown_answer(status: int) -> ServerError:
    """An error whose body is no problem, as a proxy or another server sends it."""
    return ServerError(f"HTTP {status} came back, and not from the API; {NOT_OURS}", status=status)


def _errors(content: Any) -> Iterator[tuple[str, str]]:
    for one in content if isinstance(content, list) else ():
        if isinstance(one, Mapping):
            yield str(one.get("field", "")), str(one.get("message", ""))


def _with_faults(message: str, faults: tuple[tuple[str, str], ...]) -> str:
    """A message that names the fields alone, and not what is wrong with them, is no help."""
    told = ", ".join(f"{name}: {fault}" for name, fault in faults if fault and fault not in message)
    return f"{message} ({told})" if told else message


def _classes() -> dict[str, type[DoctriageError]]:
    """By code; of those with one code the class furthest up."""
    found: dict[str, type[DoctriageError]] = {}
    waiting: list[type[DoctriageError]] = [DoctriageError]
    while waiting:
        kind = waiting.pop(0)
        found.setdefault(kind.code, kind)
        waiting.extend(kind.__subclasses__())
    return found
