"""The only place that decides a retry."""

from __future__ import annotations

from dataclasses import dataclass

from models.errors import DoctriageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """Try again, as attempt number ``next_attempt``, after ``delay_s``."""

    next_attempt: int
    delay_s: float


def retry_decision(error: DoctriageError, attempt: int, *, max_attempts: int) -> RetryDecision | None:
    """What to do after attempt number ``attempt`` (from 1) ended in ``error``; None gives up.

    On one machine a crash, a time-out or an engine's failure is tried again at once.
    """
    if not error.retryable or attempt >= max_attempts:
        return None
    return RetryDecision(next_attempt=attempt + 1, delay_s=0.0)
