"""What the API answers, parsed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from models.budget import BudgetMonth, Level, WhenSpent
from models.errors import ServerError
from tests.fakes.scripted_api import document_content, page_content
from workers.budget_json import budget_json
from workers.client.records import (
    DocumentState,
    Fault,
    budgets_of,
    document_of,
    page_settled_of,
    page_summary_of,
    parsed,
)


def test_a_document_is_read_and_what_a_newer_server_adds_is_passed_over() -> None:
    document = document_of({**document_content(), "colour": "blue"})
    assert (document.id, document.state, document.page_count) == ("d1", DocumentState.FINISHED, 2)
    assert document.created_at == datetime(2026, 11, 30, 10, tzinfo=UTC)
    assert (document.outputs, document.metadata, document.is_replayed) == (("markdown",), {"case": 1}, False)


def test_a_document_that_nobody_has_looked_into_has_no_pages_yet() -> None:
    document = document_of(document_content("queued", page_count=None, document_id=None, media_type=None))
    assert document.state.is_open
    assert (document.page_count, document.finished_at, document.error) == (None, None, None)


def test_why_a_document_failed_is_told() -> None:
    document = document_of(document_content("failed", error={"code": "empty_file", "message": "empty"}))
    assert document.error == Fault(code="empty_file", message="empty")


@pytest.mark.parametrize(
    "content", [None, [], "text", {}, document_content("asleep"), document_content(created_at="yesterday")]
)
def test_anything_else_is_no_document(content: Any) -> None:
    with pytest.raises(ServerError, match="same version"):
        parsed(document_of, content)


def test_a_page_that_is_not_read_has_sums_of_nothing() -> None:
    unread = dict.fromkeys(
        (
            "route",
            "escalate",
            "reasons",
            "text_chars",
            "visual_tokens_if_vlm",
            "degraded",
            "vlm_calls",
            "prompt_tokens",
            "completion_tokens",
            "elapsed_s",
            "error",
        )
    )
    page = page_summary_of({"page_number": 3, "state": "pending", **unread})
    assert (page.page_number, page.state, page.route, page.reasons) == (3, "pending", None, ())
    assert (page.text_chars, page.vlm_calls, page.prompt_tokens, page.completion_tokens) == (0, 0, 0, 0)


def test_a_page_of_an_event_is_read() -> None:
    page = page_settled_of({**page_content(2, "failed"), "error": {"code": "c", "message": "m"}})
    assert (page.page_number, page.state, page.error) == (2, "failed", Fault(code="c", message="m"))


def test_budgets_are_what_they_were_at_the_server() -> None:
    budget = BudgetMonth(
        cost_centre="harbour",
        month="2026-11",
        money=Level(limit=12_500_000, spent=12_000_001, reserved=0),
        currency="EUR",
        tokens=Level(limit=10, spent=1, reserved=2),
        warn_percent=80,
        when_spent=WhenSpent.HOLD,
    )
    assert budgets_of({"month": "2026-11", "budgets": [budget_json(budget)]}) == (budget,)
