"""A policy fitted on labelled pages, with what cross-validation says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

from models.page import TriageProfile
from pipeline.policy import SCHEMA_VERSION, Policy, policy_json
from pipeline.policy_signals import FORMS
from workers.calibration import (
    Figures,
    LabelledSignals,
    ablation,
    choose_thresholds,
    cross_validate,
    figures,
    fit,
    labelled_signals,
    weighed_signals,
)
from workers.corpus_reading import MeasuredPage
from workers.evaluation import Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPolicy:
    """``ablation``: without each of the signals; see ``workers.calibration.ablation``."""

    policy: Policy
    cross_validated: Mapping[TriageProfile, Figures]
    in_sample: Mapping[TriageProfile, Figures]
    ablation: Mapping[str, Figures]


def calibrate(
    pages: Sequence[MeasuredPage], base: Policy, *, corpus: str, fitted_on: date
) -> CalibratedPolicy:
    """Fit the probability and its thresholds; the hard rules are those of ``base``. Raises SettingsError for too
    few pages."""
    data = labelled_signals(pages, FORMS, base.rules)
    repeated = cross_validate(data)
    thresholds = choose_thresholds(data, repeated)
    model = fit(data)
    signals, bias = weighed_signals(data, model)
    at = {profile: thresholds.of(profile) for profile in TriageProfile}
    cross_validated = {profile: figures(data, repeated, least) for profile, least in at.items()}
    seen = [model.probability(data.levels)]
    policy = Policy(
        schema_version=SCHEMA_VERSION,
        policy_version=fitted_on.isoformat(),
        provenance=_provenance(data, corpus, fitted_on, cross_validated),
        thresholds=thresholds,
        bias=bias,
        signals=signals,
        rules=base.rules,
    )
    return CalibratedPolicy(
        policy=_named(policy),
        cross_validated=cross_validated,
        in_sample={profile: figures(data, seen, least) for profile, least in at.items()},
        ablation=dict(ablation(pages, FORMS, base.rules)),
    )


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
