from __future__ import annotations

import pytest

from models.choices import RoutePolicy
from models.page import PageScore, Signal, TriageDecision, TriageReason
from pipeline.policy import HardRule, Policy, ProfileThresholds, WeighedSignal
from pipeline.signals.names import SignalName
from pipeline.triage import Audit, audit_draw, probability_signal, triage_page

POLICY = Policy(
    schema_version=1,
    policy_version="test-1",
    thresholds=ProfileThresholds(thorough=0.3, balanced=0.5, thrifty=0.7),
    bias=0.0,
    signals=(
        WeighedSignal(
            signal=SignalName.UNSURE_CHARACTER_SHARE, lowest=0, highest=0.5, missing=0, weight=6, neutral=0.25
        ),
        WeighedSignal(
            signal=SignalName.CONFIDENCE_P10,
            lowest=0.4,
            highest=0.9,
            missing=0.9,
            side="low",
            weight=2,
            neutral=0.65,
        ),
        WeighedSignal(
            signal=SignalName.STAMP_STRENGTH, lowest=0, highest=1, missing=0, weight=1, neutral=0.5
        ),
    ),
    rules=(
        HardRule(signal=SignalName.TABLE_RULED_CELLS, side="least", threshold=12),
        HardRule(signal=SignalName.CONFIDENCE_MEDIAN, side="below", threshold=0.2),
        HardRule(signal=SignalName.UNSURE_CHARACTER_SHARE, side="least", threshold=0.6),
    ),
)
CLEAN = {
    "confidence_p10": 0.93,
    "confidence_median": 0.96,
    "unsure_character_share": 0.02,
    "table_ruled_cells": 0.0,
    "stamp_strength": 0.1,
}


def score(**changes: float | None) -> PageScore:
    signals = {**CLEAN, **changes}
    return PageScore(
        signals=tuple(Signal(name=name, measured=value) for name, value in signals.items()), regions=()
    )


def decide(
    page: PageScore,
    *,
    route: RoutePolicy = RoutePolicy.AUTO,
    least_probability: float = 0.5,
    audit: Audit | None = None,
) -> TriageDecision:
    extra = {} if audit is None else {"audit": audit}
    return triage_page(page, policy=POLICY, least_probability=least_probability, route=route, **extra)


def reasons(decision: TriageDecision) -> list[str]:
    return [reason.signal for reason in decision.reasons]


def test_a_clean_page_is_accepted_with_the_policy_named() -> None:
    decision = decide(score())

    assert not decision.escalate
    assert decision.reasons == ()
    assert decision.policy_version == "test-1"
    assert decision.probability == pytest.approx(POLICY.probability(CLEAN))


@pytest.mark.parametrize(
    ("signal", "at", "short", "threshold"),
    [("table_ruled_cells", 12.0, 11.0, 12), ("confidence_median", 0.19, 0.2, 0.2)],
)
def test_a_hard_rule_escalates_alone_whatever_the_probability(
    signal: str, at: float, short: float, threshold: float
) -> None:
    crossed = decide(score(**{signal: at}), least_probability=0.99)

    assert crossed.escalate
    assert crossed.reasons == (TriageReason(signal=signal, measured=at, threshold=threshold),)
    assert not decide(score(**{signal: short}), least_probability=0.99).escalate


def test_the_probability_escalates_and_the_signals_that_raised_it_come_after_it_by_weight() -> None:
    page = score(unsure_character_share=0.4, confidence_p10=0.6, stamp_strength=0.9)
    decision = decide(page)

    assert decision.escalate
    assert decision.reasons == (
        TriageReason(signal="needs_vlm_probability", measured=decision.probability or 0.0, threshold=0.5),
        TriageReason(signal="unsure_character_share", measured=0.4, threshold=0.25),
        TriageReason(signal="stamp_strength", measured=0.9, threshold=0.5),
        TriageReason(signal="confidence_p10", measured=0.6, threshold=0.65),
    )


def test_the_threshold_of_the_probability_is_an_argument() -> None:
    page = score(unsure_character_share=0.3)
    probability = decide(page).probability or 0.0

    assert decide(page, least_probability=probability).escalate
    assert not decide(page, least_probability=probability + 1e-6).escalate


def test_a_signal_whose_rule_fired_is_told_once() -> None:
    decision = decide(score(unsure_character_share=0.8))

    assert reasons(decision) == ["unsure_character_share", "needs_vlm_probability"]
    assert decision.reasons[0].threshold == 0.6


def test_a_signal_that_was_not_measured_is_no_reason_and_counts_as_the_policy_says() -> None:
    decision = decide(
        score(confidence_p10=None, stamp_strength=None, unsure_character_share=0.5, table_ruled_cells=None)
    )

    assert reasons(decision) == ["needs_vlm_probability", "unsure_character_share"]
    assert POLICY.probability({"confidence_p10": None}) == POLICY.probability({"confidence_p10": 0.9})


def test_ocr_by_order_keeps_the_reasons_and_says_that_it_was_an_order() -> None:
    decision = decide(score(table_ruled_cells=20), route=RoutePolicy.OCR)

    assert not decision.escalate
    assert reasons(decision) == ["forced_ocr", "table_ruled_cells"]
    assert decide(score(), route=RoutePolicy.OCR).reasons == ()


def test_vlm_by_order_says_so_first() -> None:
    decision = decide(score(table_ruled_cells=20), route=RoutePolicy.VLM)

    assert decision.escalate
    assert reasons(decision) == ["forced_vlm", "table_ruled_cells"]
    assert reasons(decide(score(), route=RoutePolicy.VLM)) == ["forced_vlm"]


@pytest.mark.parametrize("route", RoutePolicy)
def test_a_blank_page_never_escalates(route: RoutePolicy) -> None:
    decision = decide(score(blank=1.0, table_ruled_cells=40), route=route, audit=Audit(draw=0.0, share=1.0))

    assert not decision.escalate
    assert decision.reasons == ()
    assert decision.probability is None
    assert probability_signal(decision) == ()


def test_an_audited_page_is_escalated_though_accepted() -> None:
    drawn = Audit(draw=0.009, share=0.01)

    assert decide(score(), audit=drawn).reasons == (
        TriageReason(signal="audit", measured=0.009, threshold=0.01),
    )
    assert decide(score(), audit=drawn).escalate
    assert not decide(score(), audit=Audit(draw=0.01, share=0.01)).escalate
    assert reasons(decide(score(table_ruled_cells=20), audit=drawn)) == ["table_ruled_cells"]
    assert not decide(score(), audit=drawn, route=RoutePolicy.OCR).escalate


def test_the_draw_is_the_same_for_a_page_and_spread_over_pages() -> None:
    draws = [audit_draw("a" * 64, number) for number in range(1, 2001)]

    assert audit_draw("a" * 64, 7) == draws[6]
    assert audit_draw("b" * 64, 7) != draws[6]
    assert all(0 <= draw < 1 for draw in draws)
    assert 0.07 < sum(draw < 0.1 for draw in draws) / len(draws) < 0.13


def test_the_probability_is_one_of_the_page_s_signals() -> None:
    decision = decide(score())

    assert [signal.name for signal in probability_signal(decision)] == ["needs_vlm_probability"]
    assert probability_signal(decision)[0].measured == decision.probability
