"""Retries, as a table."""

from __future__ import annotations

import pytest

from models.errors import (
    DoctriageError,
    DocumentCorrupt,
    EngineError,
    PageFailed,
    PageNotRendered,
    PageTimedOut,
    WorkerCrashed,
)
from workers.retry import RetryDecision, retry_decision

AGAIN = RetryDecision(next_attempt=2, delay_s=0.0)


@pytest.mark.parametrize(
    ("error", "attempt", "max_attempts", "decision"),
    [
        (WorkerCrashed("x"), 1, 2, AGAIN),
        (PageTimedOut("x"), 1, 2, AGAIN),
        (EngineError("x"), 1, 2, AGAIN),
        (WorkerCrashed("x"), 2, 2, None),
        (WorkerCrashed("x"), 1, 1, None),
        (WorkerCrashed("x"), 3, 2, None),
        (PageNotRendered("x"), 1, 2, None),
        (PageFailed("x"), 1, 9, None),
        (DocumentCorrupt("x"), 1, 9, None),
    ],
)
def test_decisions(
    error: DoctriageError, attempt: int, max_attempts: int, decision: RetryDecision | None
) -> None:
    assert retry_decision(error, attempt, max_attempts=max_attempts) == decision
