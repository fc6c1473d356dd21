from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.choices import TriageProfile
from models.errors import SettingsError
from pipeline.policy import Policy, load_policy, policy_json
from pipeline.policy_signals import FORMS, SignalForm
from pipeline.signals.names import SignalName

CLEAN = {"unsure_character_share": 0.01, "confidence_p10": 0.95, "confidence_median": 0.96}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.signal))
@given(share=st.floats(0, 1))
def test_a_level_is_between_0_and_1_grows_with_the_need_and_can_be_taken_back(
    form: SignalForm, share: float
) -> None:
    value = form.lowest + share * (form.highest - form.lowest)
    need = form.highest if form.side == "high" else form.lowest

    assert 0 <= form.level(value) <= 1
    assert form.level(need) == 1
    assert form.level(form.lowest - 1) in (0, 1)
    assert form.value_at(form.level(value)) == pytest.approx(value, abs=1e-6)


def test_the_shipped_policy_accepts_clean_print_and_sends_a_ruled_table() -> None:
    policy = load_policy()

    assert policy.probability(CLEAN) < policy.thresholds.thorough
    assert any(rule.fires(40) for rule in policy.rules if rule.signal == SignalName.TABLE_RULED_CELLS)


def test_a_policy_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(policy_json(load_policy()), encoding="utf-8")

    assert load_policy(path) == load_policy()
    assert load_policy(path).digest == load_policy().digest


def test_the_digest_is_that_of_what_decides() -> None:
    policy = load_policy()

    assert policy.model_copy(update={"provenance": {"pages": 3}}).digest == policy.digest
    assert policy.model_copy(update={"bias": policy.bias + 0.1}).digest != policy.digest


def test_a_profile_names_a_threshold() -> None:
    thresholds = load_policy().thresholds

    assert (
        thresholds.of(TriageProfile.THOROUGH)
        <= thresholds.of(TriageProfile.BALANCED)
        <= thresholds.of(TriageProfile.THRIFTY)
    )


def broken(**changes: object) -> str:
    return json.dumps(json.loads(policy_json(load_policy())) | changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Invalid JSON"),
        (broken(schema_version=2), "schema_version"),
        (broken(thresholds={"thrifty": 0.2, "balanced": 0.5, "thorough": 0.1}), "thresholds"),
        (broken(rules=[{"signal": "no_such_signal", "side": "least", "threshold": 1}]), "rules.0.signal"),
        (broken(surprise=1), "surprise"),
        (
            broken(
                signals=[
                    {
                        "signal": "stamp_strength",
                        "lowest": 1,
                        "highest": 0,
                        "missing": 0,
                        "weight": 1,
                        "neutral": 0,
                    }
                ]
            ),
            "lowest has to be under highest",
        ),
    ],
)
def test_a_file_that_is_no_policy_says_where(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match=r"mine\.json: no policy") as caught:
        load_policy(path)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json"):
        load_policy(tmp_path / "none.json")


def test_weights_speak_for_the_model_at_the_side_the_form_names() -> None:
    policy: Policy = load_policy()

    assert policy.signals
    for signal in policy.signals:
        need = signal.highest if signal.side == "high" else signal.lowest
        rest = signal.lowest if signal.side == "high" else signal.highest
        assert signal.contribution(rest) <= 0 <= signal.contribution(need)


def test_the_strongest_sign_counts_once_more_and_no_other() -> None:
    policy = load_policy().model_copy(update={"strongest_weight": 0.0})
    with_strongest = policy.model_copy(update={"strongest_weight": 4.0})
    measured = {signal.signal.value: signal.neutral for signal in policy.signals}
    sure = policy.signals[0]
    measured[sure.signal.value] = sure.highest if sure.side == "high" else sure.lowest

    without = [part.log_odds for part in policy.contributions(measured)]
    with_it = [part.log_odds for part in with_strongest.contributions(measured)]

    assert with_it[0] == pytest.approx(without[0] + 2.0)
    assert with_it[1:] == without[1:]
