"""When a client asks the API again, as a table."""

from __future__ import annotations

import pytest

from workers.retry import RetryDecision, request_retry_decision


def decided(
    attempt: int, *, waited_s: float = 0.0, retry_after_s: float | None = None, jitter: float = 1.0
) -> RetryDecision | None:
    return request_retry_decision(
        attempt, waited_s=waited_s, patience_s=600.0, retry_after_s=retry_after_s, jitter=lambda: jitter
    )


@pytest.mark.parametrize(("attempt", "delay_s"), [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (5_000, 30)])
def test_pauses_grow(attempt: int, delay_s: float) -> None:
    assert decided(attempt) == RetryDecision(next_attempt=attempt + 1, delay_s=delay_s)


@pytest.mark.parametrize(("asked_s", "delay_s"), [(None, 1), (0.5, 1), (20, 20), (600, 600)])
def test_it_never_comes_sooner_than_it_is_asked_to(asked_s: float | None, delay_s: float) -> None:
    again = decided(2, retry_after_s=asked_s)
    assert again is not None
    assert again.delay_s == delay_s


def test_no_two_need_come_at_the_same_time() -> None:
    assert decided(7, jitter=0.0) == RetryDecision(next_attempt=8, delay_s=15)


def test_patience_ends() -> None:
    assert decided(7, waited_s=570) is not None
    assert decided(7, waited_s=570.1) is None
    assert decided(1, retry_after_s=601) is None
