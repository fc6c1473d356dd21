"""The ladder of retries for a page at the VLM, as a table and by what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import errors
from models.errors import VlmError, VlmWaitedOut
from models.transcription import Verdict
from workers.retry import (
    ANOTHER_SAMPLE,
    CONTENT_FAULTS,
    COST_NOTHING,
    FINAL,
    LOST,
    LYING_DOWN,
    SERVICE_FAULTS,
    TOO_SMALL,
    NextCall,
    VlmRetry,
    VlmRetryLimits,
    verdict_of,
    vlm_retry_decision,
)

LIMITS = VlmRetryLimits(
    answers=3,
    lost_calls=4,
    calls=8,
    wait_s=100.0,
    temperatures=(0.0, 0.3, 0.7),
    first_backoff_s=1.0,
    longest_backoff_s=30.0,
)
NO_CALL = {VlmError, VlmWaitedOut}
"""These end no call, so nothing is booked for them."""


def retry(attempt: int, change: NextCall, temperature: float = 0.0, delay_s: float = 0.0) -> VlmRetry:
    return VlmRetry(next_attempt=attempt, delay_s=delay_s, change=change, temperature=temperature)


def test_every_verdict_has_its_place() -> None:
    places = [ANOTHER_SAMPLE, TOO_SMALL, LYING_DOWN, COST_NOTHING, LOST, FINAL]
    assert sum(map(len, places)) == len(frozenset().union(*places)) == len(Verdict)
    assert set(Verdict) == CONTENT_FAULTS | SERVICE_FAULTS | FINAL


def test_every_error_of_a_call_has_its_verdict() -> None:
    kinds = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, VlmError)
    } - NO_CALL
    assert len(kinds) >= 10
    verdicts = {kind: verdict_of(kind("x")) for kind in kinds}
    assert len(set(verdicts.values())) == len(kinds)
    for kind, verdict in verdicts.items():
        assert (verdict in SERVICE_FAULTS) == kind.retryable
        assert (verdict in LOST) == kind.may_have_cost
    for kind in NO_CALL:
        with pytest.raises(ValueError):
            verdict_of(kind("x"))


@pytest.mark.parametrize("verdict", sorted(ANOTHER_SAMPLE))
def test_a_bad_answer_is_asked_for_again_at_a_higher_temperature(verdict: Verdict) -> None:
    assert vlm_retry_decision([verdict], LIMITS) == retry(2, NextCall.WARMER, 0.3)
    assert vlm_retry_decision([verdict] * 2, LIMITS) == retry(3, NextCall.WARMER, 0.7)
    assert vlm_retry_decision([verdict] * 3, LIMITS) is None


@pytest.mark.parametrize(
    ("verdicts", "decision"),
    [
        ([Verdict.TRUNCATED], retry(2, NextCall.LARGER)),
        ([Verdict.TRUNCATED] * 2, retry(3, NextCall.LARGER)),
        ([Verdict.TRUNCATED] * 3, None),
        ([Verdict.ILLEGIBLE], retry(2, NextCall.LARGER)),
        ([Verdict.ILLEGIBLE, Verdict.TRUNCATED], retry(3, NextCall.LARGER)),
        ([Verdict.NOT_UPRIGHT], retry(2, NextCall.UPRIGHT)),
        ([Verdict.NOT_UPRIGHT] * 3, None),
        ([Verdict.NOT_UPRIGHT, Verdict.REPETITION], retry(3, NextCall.WARMER, 0.3)),
        ([Verdict.REPETITION, Verdict.TRUNCATED], retry(3, NextCall.LARGER, 0.3)),
        ([Verdict.REPETITION, Verdict.UNREACHABLE], retry(3, NextCall.SAME, 0.3, delay_s=0.5)),
        ([Verdict.UNREACHABLE, Verdict.REPETITION], retry(3, NextCall.WARMER, 0.3)),
        ([Verdict.EMPTY, Verdict.NOT_UPRIGHT, Verdict.REFUSAL], None),
        *(([verdict], None) for verdict in sorted(FINAL)),
        ([Verdict.UNREACHABLE, Verdict.UNAUTHORISED], None),
    ],
)
def test_the_ladder(verdicts: list[Verdict], decision: VlmRetry | None) -> None:
    assert vlm_retry_decision(verdicts, LIMITS, jitter=lambda: 0.5) == decision


@pytest.mark.parametrize("verdict", sorted(SERVICE_FAULTS))
def test_a_fault_of_the_service_is_waited_out_for_longer_and_longer(verdict: Verdict) -> None:
    calls = range(1, LIMITS.lost_calls if verdict in LOST else LIMITS.calls)
    decisions = [vlm_retry_decision([verdict] * count, LIMITS, jitter=lambda: 1.0) for count in calls]
    delays_s = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0][: len(calls)]
    assert decisions == [
        retry(count + 1, NextCall.SAME, delay_s=delay_s)
        for count, delay_s in zip(calls, delays_s, strict=True)
    ]
    assert vlm_retry_decision([verdict] * (calls[-1] + 1), LIMITS) is None


def test_an_answer_in_between_makes_the_pauses_short_again() -> None:
    verdicts = [Verdict.UNREACHABLE] * 4 + [Verdict.REPETITION, Verdict.UNREACHABLE]
    decision = vlm_retry_decision(verdicts, LIMITS, jitter=lambda: 1.0)
    assert decision == retry(7, NextCall.SAME, 0.3, delay_s=1.0)


@pytest.mark.parametrize(
    ("retry_after_s", "waited_s", "jitter", "delay_s"),
    [
        (2.0, 0.0, 0.0, 2.0),
        (0.2, 0.0, 0.9, 0.9),
        (None, 0.0, 0.0, 0.0),
        (100.0, 0.0, 0.0, 100.0),
        (100.1, 0.0, 0.0, None),
        (None, 99.5, 1.0, 0.5),  # what is left is used
        (0.4, 99.5, 0.0, 0.4),
        (0.6, 99.5, 0.0, None),
        (None, 100.0, 0.0, None),
        (None, 250.0, 0.0, None),
    ],
)
def test_the_pause(
    retry_after_s: float | None, waited_s: float, jitter: float, delay_s: float | None
) -> None:
    decision = vlm_retry_decision(
        [Verdict.RATE_LIMITED],
        LIMITS,
        retry_after_s=retry_after_s,
        waited_s=waited_s,
        jitter=lambda: jitter,
    )
    assert (decision and decision.delay_s) == delay_s
    assert (decision is None) == (delay_s is None)


def test_a_page_that_may_not_wait_still_climbs_the_ladder_of_answers() -> None:
    limits = VlmRetryLimits(wait_s=0.0)
    assert vlm_retry_decision([Verdict.UNREACHABLE], limits) is None
    assert vlm_retry_decision([Verdict.EMPTY], limits, waited_s=50.0) == retry(2, NextCall.WARMER, 0.3)


def test_what_cannot_be_made_larger_is_not_asked_for_again() -> None:
    for verdict in TOO_SMALL:
        assert vlm_retry_decision([verdict], LIMITS, can_enlarge=False) is None
    assert vlm_retry_decision([Verdict.EMPTY], LIMITS, can_enlarge=False) is not None


limits_of_any_kind = st.builds(
    VlmRetryLimits,
    answers=st.integers(1, 5),
    lost_calls=st.integers(1, 6),
    calls=st.integers(1, 12),
    wait_s=st.floats(0, 2000),
    temperatures=st.lists(st.floats(0, 2), min_size=1, max_size=4).map(tuple),
    first_backoff_s=st.floats(0, 10),
    longest_backoff_s=st.floats(0, 100),
)
call_ends = st.tuples(
    st.sampled_from(sorted(set(Verdict) - FINAL)), st.none() | st.floats(0, 60), st.floats(0, 300)
)


@given(
    ends=st.lists(call_ends, min_size=40, max_size=40),
    limits=limits_of_any_kind,
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_whatever_the_calls_come_to_a_page_ends_within_its_limits(
    ends: list[tuple[Verdict, float | None, float]], limits: VlmRetryLimits, jitter: float
) -> None:
    verdicts: list[Verdict] = []
    waited_s = paused_s = 0.0
    for verdict, retry_after_s, took_s in ends:
        verdicts.append(verdict)
        if verdict in SERVICE_FAULTS:
            waited_s += took_s
        decision = vlm_retry_decision(
            verdicts, limits, retry_after_s=retry_after_s, waited_s=waited_s, jitter=lambda: jitter
        )
        if decision is None:
            break
        assert decision.next_attempt == len(verdicts) + 1
        assert decision.temperature in limits.temperatures
        assert decision.delay_s >= (retry_after_s or 0.0 if verdict in SERVICE_FAULTS else 0.0)
        waited_s += decision.delay_s
        paused_s += decision.delay_s
    assert len(verdicts) <= limits.calls
    assert sum(verdict in CONTENT_FAULTS for verdict in verdicts) <= limits.answers
    assert sum(verdict in LOST for verdict in verdicts) <= limits.lost_calls
    assert paused_s <= limits.wait_s * (1 + 1e-9)
