"""Calibration on made-up signals whose use is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from models.choices import TriageProfile
from models.errors import SettingsError
from pipeline.policy import HardRule, Policy, load_policy, policy_json
from pipeline.policy_signals import SignalForm
from pipeline.signals.names import SignalName
from workers import calibrated_policy
from workers.calibrated_policy import calibrate
from workers.calibration import cross_validate, fit, labelled_signals, neutral_log_odds, weighed_signals
from workers.corpus_reading import MeasuredPage
from workers.labelled import LabelledPage, ManifestRow

USEFUL = SignalForm(signal=SignalName.UNCOVERED_INK_SHARE, lowest=0, highest=1, missing=0)
USELESS = SignalForm(signal=SignalName.STROKE_IRREGULARITY, lowest=0, highest=1, missing=0)
BACKWARDS = SignalForm(signal=SignalName.STAMP_STRENGTH, lowest=0, highest=1, missing=0)
FORMS = (USEFUL, USELESS, BACKWARDS)
RULES = (HardRule(signal=SignalName.TABLE_RULED_CELLS, side="least", threshold=12),)


def corpus(count: int = 160, *, sources: int = 16) -> list[MeasuredPage]:
    """Half of the pages need the model: ink is left uncovered there, and stamps are less likely."""
    chance = random.Random(7)
    return [_page(number, f"source-{number % sources}", chance) for number in range(count)]


def _page(number: int, source: str, chance: random.Random) -> MeasuredPage:
    needs = number % 2 == 0
    row = ManifestRow(
        id=f"p{number}", path=Path(f"p{number}.png"), needs_vlm=needs, source_repo=f"{source}-{number % 2}"
    )
    signals = {
        "uncovered_ink_share": min(1.0, max(0.0, chance.gauss(0.7 if needs else 0.3, 0.15))),
        "stroke_irregularity": chance.random(),
        "stamp_strength": chance.random() * (0.5 if needs else 1.0),
        "table_ruled_cells": 20.0 if number == 0 else 0.0,
    }
    label = LabelledPage(row=row, path=row.path, truth_text=None, truth_table=None)
    return MeasuredPage(label=label, is_read=True, signals=signals, visual_tokens=1000)


def weights(pages: Sequence[MeasuredPage]) -> dict[str, float]:
    data = labelled_signals(pages, FORMS, RULES)
    signals = weighed_signals(data, fit(data))
    return {signal.signal.value: signal.weight for signal in signals}


def test_a_useful_signal_weighs_most_and_one_that_counts_backwards_nothing() -> None:
    found = weights(corpus())

    assert found["uncovered_ink_share"] > 3
    assert found.get("stroke_irregularity", 0.0) < 1
    assert "stamp_strength" not in found


def test_the_written_policy_gives_the_fitted_probabilities() -> None:
    pages = corpus()
    data = labelled_signals(pages, FORMS, RULES)
    model = fit(data)
    policy = Policy.model_validate(
        load_policy().model_dump()
        | {
            "signals": [one.model_dump() for one in weighed_signals(data, model)],
            "bias": neutral_log_odds(model),
            "strongest_weight": float(model.coefficients[-1]),
        }
    )

    by_policy = [policy.probability(page.signals) for page in pages]
    assert by_policy == pytest.approx(model.probability(data.levels).tolist(), abs=1e-3)


def test_cross_validation_never_sees_the_source_it_judges() -> None:
    """Every source has a mark of its own and one label: who has seen the source knows the label, who has not
    can say the same of all pages only."""
    data = labelled_signals(corpus(200, sources=10), FORMS, ())
    sources = sorted(set(data.groups))
    marks = np.array([[float(group == source) for source in sources] for group in data.groups])
    data = replace(data, levels=marks)
    split = replace(data, groups=np.array([str(number) for number in range(200)]))

    (seen,) = cross_validate(split, repetitions=1)
    (unseen,) = cross_validate(data, repetitions=1)

    assert np.mean((seen >= 0.5) == data.needs) == 1.0
    assert np.mean((unseen >= 0.5) == data.needs) < 0.7


def test_too_few_pages_are_refused() -> None:
    with pytest.raises(SettingsError, match="a policy takes 20 of each kind from 10 sources"):
        labelled_signals(corpus(30), FORMS, RULES)
    with pytest.raises(SettingsError, match="2 sources"):
        labelled_signals(corpus(100, sources=1), FORMS, RULES)


def test_a_calibrated_policy_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrated_policy, "FORMS", FORMS)
    base = load_policy().model_copy(update={"rules": RULES})
    found = calibrate(corpus(), base, corpus="made-up", fitted_on=date(2026, 3, 1))

    policy = found.policy
    assert policy.policy_version.startswith("2026-03-01-")
    assert policy.rules == RULES
    assert policy.provenance["corpus"] == "made-up"
    assert policy.provenance["pages"] == 160
    assert Policy.model_validate_json(policy_json(policy)) == policy
    balanced = found.cross_validated[TriageProfile.BALANCED]
    assert (balanced.clear.f1 or 0.0) > 0.85
    assert balanced.calibration.ece < 0.15
    assert (
        found.ablation["hard rules alone"].clear.precision,
        found.ablation["hard rules alone"].clear.f1,
    ) == (
        1.0,
        pytest.approx(2 / 81),
    )
    assert (found.ablation["without uncovered_ink_share"].clear.f1 or 0.0) < (balanced.clear.f1 or 0.0) - 0.05


def test_the_same_pages_give_the_same_policy() -> None:
    first, second = (weights(corpus()) for _ in range(2))
    assert first == second


def test_one_strong_sign_is_reason_enough_though_sources_differ_in_kind() -> None:
    """Half of the pages in need show one sign, half another: pages that show either weigh as much as both would."""
    pages = [
        replace(
            page,
            signals={
                "uncovered_ink_share": 0.7 if page.label.row.needs_vlm and number % 4 < 2 else 0.2,
                "stamp_strength": 0.9 if page.label.row.needs_vlm and number % 4 >= 2 else 0.0,
            },
        )
        for number, page in enumerate(corpus())
    ]
    data = labelled_signals(pages, FORMS, ())
    probabilities = fit(data).probability(data.levels)

    assert probabilities[data.needs].min() > 0.8
    assert probabilities[~data.needs].max() < 0.2
