from __future__ import annotations

import pytest

from models.page import PageScore, RoutePolicy, Signal, TriageReason
from pipeline.settings import TriageThresholds
from pipeline.signals.names import SignalName
from pipeline.triage import triage_page

THRESHOLDS = TriageThresholds()
CLEAN = {
    "confidence_p05": 0.91,
    "confidence_p10": 0.93,
    "confidence_median": 0.96,
    "unsure_character_share": 0.02,
    "odd_word_share": 0.01,
    "uncovered_ink_share": 0.01,
    "uncovered_line_share": 0.0,
    "stroke_irregularity": 0.12,
    "handwriting_likeness": 0.0,
    "table_ruled_cells": 0.0,
    "table_aligned_rows": 2.0,
    "table_layout_confidence": None,
    "stamp_strength": 0.3,
}


def score(**changes: float | None) -> PageScore:
    signals = {**CLEAN, **changes}
    return PageScore(
        signals=tuple(Signal(name=name, measured=value) for name, value in signals.items()), regions=()
    )


def test_a_clean_page_is_accepted_with_the_policy_named() -> None:
    decision = triage_page(score(), thresholds=THRESHOLDS, route=RoutePolicy.AUTO)

    assert not decision.escalate
    assert decision.reasons == ()
    assert decision.policy_version == THRESHOLDS.policy_version


@pytest.mark.parametrize(
    ("signal", "at", "short"),
    [
        ("unsure_character_share", 0.30, 0.299),
        ("odd_word_share", 0.20, 0.199),
        ("uncovered_line_share", 0.08, 0.079),
        ("uncovered_ink_share", 0.40, 0.399),
        ("handwriting_likeness", 0.45, 0.449),
        ("table_ruled_cells", 6.0, 5.0),
        ("table_aligned_rows", 7.0, 6.0),
        ("table_layout_confidence", 0.75, 0.749),
        ("stamp_strength", 0.80, 0.799),
        ("page_image_damaged", 1.0, 0.0),
        ("confidence_p10", 0.19, 0.20),
    ],
)
def test_each_signal_escalates_alone_from_its_threshold_on(signal: str, at: float, short: float) -> None:
    crossed = triage_page(score(**{signal: at}), thresholds=THRESHOLDS, route=RoutePolicy.AUTO)
    close = triage_page(score(**{signal: short}), thresholds=THRESHOLDS, route=RoutePolicy.AUTO)

    assert crossed.escalate
    assert [(reason.signal, reason.measured) for reason in crossed.reasons] == [(signal, at)]
    assert not close.escalate


def test_every_threshold_belongs_to_a_signal_that_exists() -> None:
    fields = set(TriageThresholds.model_fields) - {"policy_version"}

    assert {field.rpartition("_")[0] for field in fields} <= set(SignalName)


def test_all_reasons_are_given_with_measured_value_and_threshold() -> None:
    decision = triage_page(
        score(unsure_character_share=0.61, table_ruled_cells=24.0),
        thresholds=THRESHOLDS,
        route=RoutePolicy.AUTO,
    )

    assert decision.reasons == (
        TriageReason(signal="unsure_character_share", measured=0.61, threshold=0.30),
        TriageReason(signal="table_ruled_cells", measured=24.0, threshold=6),
    )


def test_ocr_by_order_keeps_the_reasons() -> None:
    decision = triage_page(score(stamp_strength=0.95), thresholds=THRESHOLDS, route=RoutePolicy.OCR)

    assert not decision.escalate
    assert [reason.signal for reason in decision.reasons] == ["stamp_strength"]


def test_vlm_by_order_says_so_first() -> None:
    decision = triage_page(score(stamp_strength=0.95), thresholds=THRESHOLDS, route=RoutePolicy.VLM)

    assert decision.escalate
    assert [reason.signal for reason in decision.reasons] == ["forced_vlm", "stamp_strength"]


@pytest.mark.parametrize("route", RoutePolicy)
def test_a_blank_page_never_escalates(route: RoutePolicy) -> None:
    decision = triage_page(score(blank=1.0, uncovered_ink_share=1.0), thresholds=THRESHOLDS, route=route)

    assert not decision.escalate
    assert decision.reasons == ()


def test_a_signal_switched_off_or_not_measured_is_no_reason() -> None:
    without_stamps = TriageThresholds(stamp_strength_least=None)
    measured = score(stamp_strength=1.0, unsure_character_share=None, confidence_p10=None)

    assert not triage_page(measured, thresholds=without_stamps, route=RoutePolicy.AUTO).escalate
