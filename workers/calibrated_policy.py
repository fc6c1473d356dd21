"""A policy fitted on labelled pages, with what cross-validation says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

from models.choices import TriageProfile
from models.page import TriageDecision
from pipeline.policy import SCHEMA_VERSION, Policy, policy_json
from pipeline.policy_signals import FORMS
from pipeline.triage import rule_reasons
from workers.calibration import (
    Figures,
    LabelledSignals,
    Numbers,
    ablation,
    choose_thresholds,
    cross_validate,
    figures,
    fit,
    is_judged,
    labelled_signals,
    neutral_log_odds,
    weighed_signals,
)
from workers.corpus_reading import MeasuredPage
from workers.evaluation import JudgedPage, Outcomes, real_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPolicy:
    """``ablation``: without each of the signals; see ``workers.calibration.ablation``."""

    policy: Policy
    cross_validated: Mapping[TriageProfile, Figures]
    in_sample: Mapping[TriageProfile, Figures]
    ablation: Mapping[str, Figures]
    held_out: tuple[JudgedPage, ...]
    """Real pages, as policies decided that were fitted without their source."""


def calibrate(
    pages: Sequence[MeasuredPage], base: Policy, *, corpus: str, fitted_on: date
) -> CalibratedPolicy:
    """Fit the probability and its thresholds; the hard rules are those of ``base``. Raises SettingsError for too
    few pages."""
    data = labelled_signals(pages, FORMS, base.rules)
    repeated = cross_validate(data)
    thresholds = choose_thresholds(data, repeated)
    model = fit(data)
    at = {profile: thresholds.of(profile) for profile in TriageProfile}
    cross_validated = {profile: figures(data, repeated, least) for profile, least in at.items()}
    seen = [model.probability(data.levels)]
    policy = Policy(
        schema_version=SCHEMA_VERSION,
        policy_version=fitted_on.isoformat(),
        provenance=_provenance(data, corpus, fitted_on, cross_validated),
        thresholds=thresholds,
        bias=neutral_log_odds(model),
        strongest_weight=round(float(model.coefficients[-1]), 4),
        signals=weighed_signals(data, model),
        rules=base.rules,
    )
    return CalibratedPolicy(
        policy=_named(policy),
        cross_validated=cross_validated,
        in_sample={profile: figures(data, seen, least) for profile, least in at.items()},
        ablation=dict(ablation(pages, FORMS, base.rules)),
        held_out=tuple(real_pages(_held_out(pages, policy, repeated[0]))),
    )


def _held_out(pages: Sequence[MeasuredPage], policy: Policy, probabilities: Numbers) -> Iterator[JudgedPage]:
    left = iter(probabilities.tolist())
    for page in pages:
        probability = next(left) if is_judged(page) else None
        rules = tuple(rule_reasons(policy, page.signals)) if is_judged(page) else ()
        is_likely = probability is not None and probability >= policy.thresholds.balanced
        decision = TriageDecision(
            escalate=bool(rules) or is_likely,
            reasons=rules,
            policy_version=policy.policy_version,
            probability=probability,
        )
        yield JudgedPage(page=page, decision=decision, text=None, cells=None)


def _named(policy: Policy) -> Policy:
    """With a version that no other policy has: the day, and a digest of what it decides by."""
    digest = hashlib.sha256(policy_json(policy).encode()).hexdigest()
    return policy.model_copy(update={"policy_version": f"{policy.policy_version}-{digest[:8]}"})


def _provenance(
    data: LabelledSignals, corpus: str, fitted_on: date, cross_validated: Mapping[TriageProfile, Figures]
) -> Mapping[str, object]:
    return {
        "corpus": corpus,
        "pages": len(data.needs),
        "real_pages": int(data.is_real.sum()),
        "pages_that_need_the_model": int(data.needs.sum()),
        "sources": len(set(data.groups)),
        "date": fitted_on.isoformat(),
        "doctriage": version("doctriage"),
        "cross_validated": {
            profile.value: _figures_json(found) for profile, found in cross_validated.items()
        },
    }


def _figures_json(found: Figures) -> Mapping[str, object]:
    return {
        "clear_labels": _rates(found.clear),
        "all_labels": _rates(found.all_labels),
        "ece": round(found.calibration.ece, 4),
        "brier": round(found.calibration.brier, 4),
    }


def _rates(counted: Outcomes) -> Mapping[str, float | None]:
    rates = {"precision": counted.precision, "recall": counted.recall, "f1": counted.f1}
    return {name: None if rate is None else round(rate, 4) for name, rate in rates.items()}
