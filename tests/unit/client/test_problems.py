"""Problems become the errors that they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.errors import (
    CredentialsRefused,
    DoctriageError,
    RequestInvalid,
    ServerError,
    TooManyOpenDocuments,
)
from workers.api.problems import STATUS_OF
from workers.client.problems import Problem, error_of, problem_of

NOT_MADE = {"budget_spent", "submission_not_found"}


def problem(code: str, **more: object) -> Problem:
    given = {"status": 400, "code": code, "detail": "no; do something", "advice": "do something", **more}
    return Problem(**given)  # type: ignore[arg-type]


def all_below(kind: type[DoctriageError]) -> Iterator[type[DoctriageError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from all_below(below)


@pytest.mark.parametrize("kind", sorted(set(STATUS_OF), key=lambda kind: kind.__name__))
def test_every_error_that_the_api_answers_is_known_by_its_code(kind: type[DoctriageError]) -> None:
    error = error_of(problem(kind.code))
    if kind.code in NOT_MADE:
        assert isinstance(error, ServerError)
        assert error.problem_code == kind.code
    else:
        assert type(error) is kind
    assert str(error) == "no; do something"


def test_no_error_of_the_tree_breaks_the_client() -> None:
    kinds = {kind.code for kind in all_below(DoctriageError)}
    assert len(kinds) > 50
    for code in kinds:
        assert str(error_of(problem(code))).startswith("no; do something")


def test_an_error_says_when_to_come_again() -> None:
    error = error_of(problem("too_many_open_documents", retry_after_s=17.0))
    assert isinstance(error, TooManyOpenDocuments)
    assert error.retry_after_s == 17


def test_fields_and_what_is_wrong_with_them_are_in_the_message() -> None:
    error = error_of(problem("request_invalid", errors=(("priority", "at most 9"), ("x", ""))))
    assert isinstance(error, RequestInvalid)
    assert error.faults == (("priority", "at most 9"), ("x", ""))
    assert str(error) == "no; do something (priority: at most 9)"


def test_a_code_of_a_newer_server_is_told_with_its_advice() -> None:
    error = error_of(problem("moon_too_full", status=418, detail="the moon is full", advice="wait a week"))
    assert isinstance(error, ServerError)
    assert (error.status, error.problem_code) == (418, "moon_too_full")
    assert str(error) == "the moon is full; wait a week"


def test_a_problem_is_read_and_anything_else_is_none() -> None:
    read = problem_of(401, {"code": "credentials_refused", "detail": "the key is gone; get one"}, 3.0)
    assert read is not None
    assert read.retry_after_s == 3.0
    assert isinstance(error_of(read), CredentialsRefused)
    for content in (None, "text", [], {}, {"code": 5, "detail": "x"}, {"detail": "x"}):
        assert problem_of(500, content, None) is None
