"""Triage: does the page need to be seen? A pure decision over the score, with every reason for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from models.choices import RoutePolicy
from models.page import PageScore, Signal, TriageDecision, TriageReason
from pipeline.policy import Measured, Policy
from pipeline.signals.names import SignalName

MOST_CONTRIBUTIONS = 3
"""Signals named as those that made the probability what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A page whose ``draw`` (0 to 1) is under ``share`` is escalated though it was accepted."""

    draw: float
    share: float


NO_AUDIT = Audit(draw=1.0, share=0.0)


def audit_draw(document_id: str, page_number: int) -> float:
    """Evenly spread from 0 to 1, and the same whenever the page is read."""
    digest = hashlib.sha256(f"{document_id}/{page_number}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def triage_page(
    score: PageScore,
    *,
    policy: Policy,
    least_probability: float,
    route: RoutePolicy,
    audit: Audit = NO_AUDIT,
) -> TriageDecision:
    """Escalate when a hard rule fires or the probability reaches ``least_probability``; ``route`` may overrule
    that either way, which is a reason of its own. A blank page never escalates: there is nothing to see.
    """
    measured = {signal.name: signal.measured for signal in score.signals}
    if measured.get(SignalName.BLANK) is not None:
        return TriageDecision(escalate=False, reasons=(), policy_version=policy.policy_version)
    probability = policy.probability(measured)
    reasons = (
        *rule_reasons(policy, measured),
        *_probability_reasons(policy, measured, probability, least_probability),
    )
    reasons = _without_repetition(reasons)
    match route:
        case RoutePolicy.AUTO:
            if not reasons and audit.draw < audit.share:
                reasons = (TriageReason(signal=SignalName.AUDIT, measured=audit.draw, threshold=audit.share),)
            escalate = bool(reasons)
        case RoutePolicy.OCR:
            escalate = False
            if reasons:
                reasons = (_forced(SignalName.FORCED_OCR), *reasons)
        case RoutePolicy.VLM:
            escalate = True
            reasons = (_forced(SignalName.FORCED_VLM), *reasons)
        case _:
            assert_never(route)
    return TriageDecision(
        escalate=escalate, reasons=reasons, policy_version=policy.policy_version, probability=probability
    )


def probability_signal(decision: TriageDecision) -> tuple[Signal, ...]:
    """The probability as one of the page's signals; none for a page that was not judged."""
    if decision.probability is None:
        return ()
    return (Signal(name=SignalName.NEEDS_VLM_PROBABILITY, measured=decision.probability),)


def rule_reasons(policy: Policy, measured: Measured) -> Iterator[TriageReason]:
    """The hard rules that fire."""
    for rule in policy.rules:
        value = measured.get(rule.signal)
        if value is not None and rule.fires(value):
            yield TriageReason(signal=rule.signal, measured=value, threshold=rule.threshold)


def _probability_reasons(
    policy: Policy, measured: Measured, probability: float, least_probability: float
) -> Iterator[TriageReason]:
    """The probability where it is reached, and the signals that raised it most, each with the value at which
    it would have been neutral."""
    if probability < least_probability:
        return
    yield TriageReason(
        signal=SignalName.NEEDS_VLM_PROBABILITY, measured=probability, threshold=least_probability
    )
    raising = [part for part in policy.contributions(measured) if part.log_odds > 0]
    raising.sort(key=lambda part: -part.log_odds)
    for part in raising[:MOST_CONTRIBUTIONS]:
        if part.measured is not None:
            yield TriageReason(
                signal=part.signal.signal, measured=part.measured, threshold=part.signal.neutral
            )


def _without_repetition(reasons: Sequence[TriageReason]) -> tuple[TriageReason, ...]:
    """A signal whose rule fired is not told again as one that raised the probability."""
    first = {reason.signal: reason for reason in reversed(reasons)}
    return tuple(reason for reason in reasons if first[reason.signal] is reason)


def _forced(name: SignalName) -> TriageReason:
    return TriageReason(signal=name, measured=1.0, threshold=1.0)
