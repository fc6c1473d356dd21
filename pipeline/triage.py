"""Triage: does the page need to be seen? A pure decision over the score, with every reason that fired."""

from __future__ import annotations

from typing import assert_never

from models.page import PageScore, RoutePolicy, TriageDecision, TriageReason
from pipeline.settings import TriageThresholds
from pipeline.signals.names import SignalName


def triage_page(score: PageScore, *, thresholds: TriageThresholds, route: RoutePolicy) -> TriageDecision:
    """Escalate when any signal crosses its threshold; ``route`` may overrule that either way.

    The reasons list every signal that crossed, also when overruled. A blank page never escalates.
    """
    is_blank = any(signal.name == SignalName.BLANK for signal in score.signals)
    reasons = () if is_blank else crossed_signals(score, thresholds)
    match route:
        case RoutePolicy.AUTO:
            escalate = bool(reasons)
        case RoutePolicy.OCR:
            escalate = False
        case RoutePolicy.VLM:
            escalate = not is_blank
            if escalate:
                reasons = (TriageReason(signal=SignalName.FORCED_VLM, measured=1.0, threshold=1.0), *reasons)
        case _:
            assert_never(route)
    return TriageDecision(escalate=escalate, reasons=reasons, policy_version=thresholds.policy_version)


def crossed_signals(score: PageScore, thresholds: TriageThresholds) -> tuple[TriageReason, ...]:
    """Every signal at or beyond its threshold, in the order of the settings."""
    measured = {signal.name: signal.measured for signal in score.signals}
    reasons = []
    for field in type(thresholds).model_fields:
        name, _, side = field.rpartition("_")
        threshold, value = getattr(thresholds, field), measured.get(name)
        if side not in {"least", "below"} or threshold is None or value is None:
            continue
        if value >= threshold if side == "least" else value < threshold:
            reasons.append(TriageReason(signal=name, measured=value, threshold=threshold))
    return tuple(reasons)
