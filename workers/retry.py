"""The only place that decides a retry."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from models.errors import DoctriageError, VlmError
from models.transcription import Verdict


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


CALLBACK_PAUSES_S: Final = (5, 30, 120, 600, 1_800, 3_600, 7_200)
"""After the first, the second, … attempt to deliver a callback; the last one for all after it."""
CALLBACK_KEPT_S: Final = 86_400.0
CALLBACK_MOST_TURNS: Final = 50
"""Far more than fit into a day: whoever took it so often did not live to say what came of it."""
CALLBACK_MOST_ASKED_S: Final = 7_200.0
"""A receiver may ask for so long a pause, and no longer."""

GONE: Final = 410
"""The receiver wants no more of these, as Standard Webhooks has it."""


def callback_retry_decision(
    attempt: int,
    *,
    status: int | None,
    age_s: float,
    retry_after_s: float | None = None,
    jitter: Callable[[], float] = random.random,
) -> RetryDecision | None:
    """What to do after attempt number ``attempt`` (from 1) to deliver a callback that was entered ``age_s`` ago. The
    receiver answered with ``status``, None for not at all. None gives up: a day is over, or it is told to.

    A pause is drawn from its last quarter, so that those who failed together do not come together again.
    """
    if status == GONE:
        return None
    pause_s = CALLBACK_PAUSES_S[min(attempt, len(CALLBACK_PAUSES_S)) - 1] * (0.75 + 0.25 * jitter())
    delay_s = max(pause_s, min(retry_after_s or 0.0, CALLBACK_MOST_ASKED_S))
    if age_s + delay_s > CALLBACK_KEPT_S:
        return None
    return RetryDecision(next_attempt=attempt + 1, delay_s=delay_s)


REQUEST_FIRST_BACKOFF_S: Final = 0.5
REQUEST_LONGEST_BACKOFF_S: Final = 30.0


def request_retry_decision(
    attempt: int,
    *,
    waited_s: float,
    patience_s: float,
    retry_after_s: float | None = None,
    jitter: Callable[[], float] = random.random,
) -> RetryDecision | None:
    """What a client of the API does after attempt number ``attempt`` (from 1) at a request that may be made again.
    ``waited_s`` is the sum of the pauses so far; None gives up: the next would make it more than ``patience_s``.

    The longest pause doubles each time, and one is drawn from its upper half; it is never shorter than the server asks
    for.
    """
    longest_s = min(REQUEST_LONGEST_BACKOFF_S, REQUEST_FIRST_BACKOFF_S * 2.0 ** min(attempt - 1, 30))
    delay_s = max(longest_s * (0.5 + 0.5 * jitter()), retry_after_s or 0.0)
    if waited_s + delay_s > patience_s:
        return None
    return RetryDecision(next_attempt=attempt + 1, delay_s=delay_s)


class NextCall(StrEnum):
    """How the next call for a page differs from the last one."""

    SAME = "same"
    WARMER = "warmer"
    """At the higher temperature that the decision names."""
    LARGER = "larger"
    """The next higher tier, and more tokens for the answer."""
    UPRIGHT = "upright"
    """Rendered anew, turned as the answer says."""


ANOTHER_SAMPLE = frozenset(
    {
        Verdict.REPETITION,
        Verdict.OVERLONG,
        Verdict.EMPTY,
        Verdict.WRONG_SCRIPT,
        Verdict.REFUSAL,
        Verdict.PROMPT_ECHO,
        Verdict.LOST_WORDS,
        Verdict.INVENTED_TEXT,
        Verdict.BROKEN_TABLE,
    }
)
"""The model may do better if it does not take the same way again."""

TOO_SMALL = frozenset({Verdict.TRUNCATED, Verdict.ILLEGIBLE})
"""The image, or the room for the answer."""
LYING_DOWN = frozenset({Verdict.NOT_UPRIGHT})

COST_NOTHING = frozenset({Verdict.UNREACHABLE, Verdict.RATE_LIMITED, Verdict.OVERLOADED})
"""The model was not reached."""

LOST = frozenset(
    {
        Verdict.CONNECTION_LOST,
        Verdict.TIMED_OUT,
        Verdict.SERVER_ERROR,
        Verdict.BAD_RESPONSE,
        Verdict.ABANDONED,
    }
)
"""The model may have worked for nothing; it may also be this page that breaks the service."""

FINAL = frozenset(
    {
        Verdict.ACCEPTED,
        Verdict.CONTENT_FILTERED,
        Verdict.REQUEST_REFUSED,
        Verdict.UNAUTHORISED,
        Verdict.MODEL_NOT_FOUND,
    }
)

CONTENT_FAULTS = ANOTHER_SAMPLE | TOO_SMALL | LYING_DOWN
SERVICE_FAULTS = COST_NOTHING | LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmRetryLimits:
    """How much a page may cost. ``answers`` that were no good and ``lost_calls`` each may have cost tokens;
    ``calls`` counts every call. ``wait_s`` is what a page may lose to an ailing service, ``call_s`` what a call may
    take. The n-th sample is taken at the n-th of ``temperatures``, the last one for all after it."""

    answers: int = 3
    lost_calls: int = 4
    calls: int = 8
    wait_s: float = 600.0
    call_s: float = 300.0
    temperatures: tuple[float, ...] = (0.0, 0.3, 0.7)
    first_backoff_s: float = 1.0
    longest_backoff_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmRetry:
    """Call again for this page, as attempt number ``next_attempt``, after ``delay_s``, changed as said."""

    next_attempt: int
    delay_s: float
    change: NextCall
    temperature: float


def vlm_retry_decision(
    verdicts: Sequence[Verdict],
    limits: VlmRetryLimits,
    *,
    retry_after_s: float | None = None,
    waited_s: float = 0.0,
    can_enlarge: bool = True,
    jitter: Callable[[], float] = random.random,
) -> VlmRetry | None:
    """What to do after calls that ended in ``verdicts``, the oldest first; None leaves the page to its OCR text.

    ``retry_after_s`` is what the server asked for after the last call; the next is never sooner. ``waited_s`` is
    what the page has lost to the service so far: calls without an answer, and the pauses between. ``can_enlarge``:
    there is a higher tier or room for a longer answer. ``jitter`` gives a number from 0 up to 1.
    """
    last = verdicts[-1]
    if last in FINAL or _is_exhausted(verdicts, limits) or (last in TOO_SMALL and not can_enlarge):
        return None
    delay_s: float | None = 0.0
    if last in SERVICE_FAULTS:
        backoff_s = jitter() * _longest_backoff_s(verdicts, limits)
        delay_s = _affordable_s(backoff_s, retry_after_s or 0.0, limits.wait_s - waited_s)
    if delay_s is None:
        return None
    samples = sum(verdict in ANOTHER_SAMPLE for verdict in verdicts)
    return VlmRetry(
        next_attempt=len(verdicts) + 1,
        delay_s=delay_s,
        change=_change(last),
        temperature=limits.temperatures[min(samples, len(limits.temperatures) - 1)],
    )


def verdict_of(error: VlmError) -> Verdict:
    """What a call that ended in ``error`` is booked as. Raises ValueError for an error that is no call's end."""
    return Verdict(error.code.removeprefix("vlm_"))


def _is_exhausted(verdicts: Sequence[Verdict], limits: VlmRetryLimits) -> bool:
    answers = sum(verdict in CONTENT_FAULTS for verdict in verdicts)
    lost_calls = sum(verdict in LOST for verdict in verdicts)
    return len(verdicts) >= limits.calls or answers >= limits.answers or lost_calls >= limits.lost_calls


def _change(last: Verdict) -> NextCall:
    if last in ANOTHER_SAMPLE:
        return NextCall.WARMER
    if last in TOO_SMALL:
        return NextCall.LARGER
    return NextCall.UPRIGHT if last in LYING_DOWN else NextCall.SAME


def _longest_backoff_s(verdicts: Sequence[Verdict], limits: VlmRetryLimits) -> float:
    """Doubles with each fault of the service since the last answer ("full jitter": any time up to it)."""
    in_a_row = 0
    for verdict in reversed(verdicts):
        if verdict not in SERVICE_FAULTS:
            break
        in_a_row += 1
    return min(limits.longest_backoff_s, limits.first_backoff_s * 2.0 ** min(in_a_row - 1, 30))


def _affordable_s(backoff_s: float, asked_s: float, left_s: float) -> float | None:
    """The pause: at least what the server asked for, and within what is left of the page's time; None where that
    is not possible."""
    if left_s <= 0 or asked_s > left_s:
        return None
    return max(asked_s, min(backoff_s, left_s))
