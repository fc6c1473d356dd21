"""When a callback is tried again, as a table."""

from __future__ import annotations

import pytest

from workers.retry import CALLBACK_KEPT_S, RetryDecision, callback_retry_decision


def decided(
    attempt: int, status: int | None = 500, age_s: float = 0.0, **more: float | None
) -> RetryDecision | None:
    return callback_retry_decision(attempt, status=status, age_s=age_s, jitter=lambda: 1.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "delay_s"), [(1, 5), (2, 30), (3, 120), (4, 600), (6, 3_600), (7, 7_200), (40, 7_200)]
)
def test_pauses_grow(attempt: int, delay_s: float) -> None:
    assert decided(attempt) == RetryDecision(next_attempt=attempt + 1, delay_s=delay_s)


def test_no_two_need_come_at_the_same_time() -> None:
    again = callback_retry_decision(2, status=None, age_s=0.0, jitter=lambda: 0.0)
    assert again == RetryDecision(next_attempt=3, delay_s=22.5)


@pytest.mark.parametrize("status", [None, 301, 400, 401, 404, 429, 500, 503])
def test_a_receiver_may_be_mended_whatever_it_says(status: int | None) -> None:
    assert decided(1, status) is not None


def test_a_receiver_that_is_gone_is_left_alone() -> None:
    assert decided(1, 410) is None


def test_after_a_day_nothing_is_tried() -> None:
    assert decided(1, age_s=CALLBACK_KEPT_S - 5) is not None
    assert decided(1, age_s=CALLBACK_KEPT_S - 4.9) is None
    age_s, attempts = 0.0, 1
    while (again := decided(attempts, age_s=age_s)) is not None:
        age_s, attempts = age_s + again.delay_s, again.next_attempt
    assert 12 <= attempts <= 25


@pytest.mark.parametrize(("asked_s", "delay_s"), [(None, 5), (1.0, 5), (60.0, 60), (10**6, 7_200)])
def test_a_receiver_may_ask_for_a_longer_pause_within_reason(asked_s: float | None, delay_s: float) -> None:
    again = decided(1, 503, retry_after_s=asked_s)
    assert again is not None
    assert again.delay_s == delay_s
