"""Fitting the policy on labelled pages, and how well it does on pages it was not fitted on.

The model is a logistic regression with a strong L2 penalty on signals between 0 and 1, none of which may count
against its side. As the penalty makes probabilities timid, their scale is set on cross-validated log-odds.
Folds never share a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from models.errors import SettingsError
from pipeline.policy import NEUTRAL_LEVEL, HardRule, ProfileThresholds, WeighedSignal
from pipeline.policy_signals import SignalForm
from workers.corpus_reading import MeasuredPage
from workers.evaluation import Calibration, Outcomes, calibration, outcomes
from workers.labelled import source_groups

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

INVERSE_PENALTY: Final = 3.0
"""Of coefficients between the two ends of a signal's range. From 0.5 to 5 the cross-validated F1 hardly moves."""
SINGLE_SCALE: Final = 0.5
"""The signals one by one are held to a fourfold penalty; the strongest sign carries over to new sources best."""
BORDERLINE_WEIGHT: Final = 0.5
SYNTHETIC_WEIGHT: Final = 0.5
FOLDS: Final = 5
REPETITIONS: Final = 5
LEAST_GROUPS: Final = 2 * FOLDS
LEAST_PAGES_OF_A_KIND: Final = 4 * FOLDS

THRESHOLDS: Final = tuple(step / 100 for step in range(5, 96))
LEAST_THOROUGH_PRECISION: Final = 0.90
"""What share of the clearly labelled pages that ``thorough`` sends must have needed it: within that, as many as
possible are sent."""
NEAR_BEST: Final = 0.005
"""``balanced`` has the best F1 on clearly labelled pages, ``thrifty`` the best F0.5, in which precision counts
double. As a threshold at the edge of what does well fails on the next page, it is the middle of those that do so
well but for half a point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSignals:
    """Pages that are not blank, a row each: ``levels`` (a column a form), labels, and where each comes from."""

    forms: tuple[SignalForm, ...]
    levels: Numbers
    has_rule: Flags
    needs: Flags
    is_clear: Flags
    is_real: Flags
    groups: NDArray[np.str_]

    @property
    def weights(self) -> Numbers:
        clear = np.where(self.is_clear, 1.0, BORDERLINE_WEIGHT)
        result: Numbers = clear * np.where(self.is_real, 1.0, SYNTHETIC_WEIGHT)
        return result

    def rows(self, index: Indices) -> LabelledSignals:
        return replace(
            self,
            levels=self.levels[index],
            has_rule=self.has_rule[index],
            needs=self.needs[index],
            is_clear=self.is_clear[index],
            is_real=self.is_real[index],
            groups=self.groups[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOdds:
    """``coefficients`` are 0 for signals that would have counted against their side; the last is that of the page's
    highest level among the others."""

    coefficients: Numbers
    intercept: float

    def of(self, levels: Numbers) -> Numbers:
        kept = self.coefficients[:-1] > 0
        columns = _with_strongest(levels[:, kept])
        result: Numbers = (
            columns @ np.append(self.coefficients[:-1][kept], self.coefficients[-1]) + self.intercept
        )
        return result

    def probability(self, levels: Numbers) -> Numbers:
        result: Numbers = 1 / (1 + np.exp(-self.of(levels)))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of real pages, at one threshold."""

    clear: Outcomes
    all_labels: Outcomes
    calibration: Calibration


def labelled_signals(
    pages: Sequence[MeasuredPage], forms: Sequence[SignalForm], rules: Sequence[HardRule]
) -> LabelledSignals:
    """Raises SettingsError for too few pages to say anything."""
    groups = source_groups([page.label for page in pages])
    judged = [(page, group) for page, group in zip(pages, groups, strict=True) if is_judged(page)]
    rows = [page.label for page, _ in judged]
    data = LabelledSignals(
        forms=tuple(forms),
        levels=np.array(
            [[form.level(page.signals.get(form.signal)) for form in forms] for page, _ in judged]
        ).reshape(len(judged), len(forms)),
        has_rule=np.array(
            [any(rule.fires(page.signals.get(rule.signal)) for rule in rules) for page, _ in judged], bool
        ),
        needs=np.array([label.row.needs_vlm for label in rows], bool),
        is_clear=np.array([label.is_clear for label in rows], bool),
        is_real=np.array([not label.row.synthetic for label in rows], bool),
        groups=np.array([group for _, group in judged], np.str_),
    )
    _require_enough(data)
    return data


def fit(data: LabelledSignals) -> LogOdds:
    """The model on all these pages, its scale set on folds of them."""
    model = _fit_signs(data)
    held_out = np.concatenate([test for _, test in _folds(data, seed=0)])
    log_odds = np.concatenate(
        [_fit_signs(data.rows(train)).of(data.levels[test]) for train, test in _folds(data, seed=0)]
    )
    scale = LogisticRegression(C=INVERSE_PENALTY).fit(
        log_odds.reshape(-1, 1), data.needs[held_out], sample_weight=data.weights[held_out]
    )
    slope = max(float(scale.coef_[0, 0]), 0.0)
    return LogOdds(
        coefficients=slope * model.coefficients,
        intercept=slope * model.intercept + float(scale.intercept_[0]),
    )


def cross_validate(data: LabelledSignals, *, repetitions: int = REPETITIONS) -> tuple[Numbers, ...]:
    """For each repetition, every page's probability by a model that saw no page of its group."""
    repeated = []
    for seed in range(1, repetitions + 1):
        probabilities = np.zeros(len(data.needs))
        for train, test in _folds(data, seed=seed):
            probabilities[test] = fit(data.rows(train)).probability(data.levels[test])
        repeated.append(probabilities)
    return tuple(repeated)


def figures(data: LabelledSignals, repeated: Sequence[Numbers], least_probability: float) -> Figures:
    """Counts add up over the repetitions, and so do the bins; rates and calibration errors are means."""
    real = np.flatnonzero(data.is_real)
    clear = np.flatnonzero(data.is_real & data.is_clear)
    sent = [data.has_rule | (probabilities >= least_probability) for probabilities in repeated]
    pairs = [_pairs(probabilities, data.needs, real) for probabilities in repeated]
    single, pooled = [calibration(one) for one in pairs], calibration([pair for one in pairs for pair in one])
    assert pooled is not None
    errors = [one.ece for one in single if one is not None]
    return Figures(
        clear=outcomes((needs, is_sent) for one in sent for is_sent, needs in _pairs(one, data.needs, clear)),
        all_labels=outcomes(
            (needs, is_sent) for one in sent for is_sent, needs in _pairs(one, data.needs, real)
        ),
        calibration=replace(pooled, ece=sum(errors) / len(errors)),
    )


def _pairs(values: Numbers | Flags, needs: Flags, index: Indices) -> list[tuple[Any, bool]]:
    """Python's own values, a pair a page."""
    return list(zip(values[index].tolist(), needs[index].tolist(), strict=True))


def choose_thresholds(data: LabelledSignals, repeated: Sequence[Numbers]) -> ProfileThresholds:
    """On cross-validated probabilities of clearly labelled pages."""
    clear = {threshold: figures(data, repeated, threshold).clear for threshold in THRESHOLDS}
    precise = (
        threshold
        for threshold in THRESHOLDS
        if (clear[threshold].precision or 0.0) >= LEAST_THOROUGH_PRECISION
    )
    thorough = next(precise, THRESHOLDS[-1])
    balanced = max(thorough, _middle_of_best(clear, beta=1.0))
    return ProfileThresholds(
        thorough=thorough, balanced=balanced, thrifty=max(balanced, _middle_of_best(clear, beta=0.5))
    )


def _middle_of_best(clear: Mapping[float, Outcomes], *, beta: float) -> float:
    score = {threshold: found.f_beta(beta) or 0.0 for threshold, found in clear.items()}
    best = max(score, key=lambda threshold: score[threshold])
    first = last = THRESHOLDS.index(best)
    least = score[best] - NEAR_BEST
    while first > 0 and score[THRESHOLDS[first - 1]] >= least:
        first -= 1
    while last < len(THRESHOLDS) - 1 and score[THRESHOLDS[last + 1]] >= least:
        last += 1
    return THRESHOLDS[(first + last) // 2]


def weighed_signals(data: LabelledSignals, model: LogOdds) -> tuple[WeighedSignal, ...]:
    """Those that count."""
    return tuple(
        WeighedSignal(
            **form.model_dump(),
            weight=round(float(weight), 4),
            neutral=round(form.value_at(NEUTRAL_LEVEL), 4),
        )
        for form, weight in zip(data.forms, model.coefficients, strict=False)
        if weight > 0
    )


def neutral_log_odds(model: LogOdds) -> float:
    """Of a page whose signals are all neutral."""
    return round(model.intercept + NEUTRAL_LEVEL * float(model.coefficients.sum()), 4)


def ablation(
    pages: Sequence[MeasuredPage], forms: Sequence[SignalForm], rules: Sequence[HardRule]
) -> Iterator[tuple[str, Figures]]:
    """Cross-validated figures without each of the signals, in the model and in the rules, at the ``balanced``
    threshold that then results; and those of the rules alone and of the model alone."""
    yield "hard rules alone", _rules_alone(labelled_signals(pages, forms, rules))
    yield "probability alone", _best(labelled_signals(pages, forms, ()))
    for left_out in forms:
        kept = [form for form in forms if form is not left_out]
        other_rules = [rule for rule in rules if rule.signal != left_out.signal]
        yield f"without {left_out.signal}", _best(labelled_signals(pages, kept, other_rules))


def _best(data: LabelledSignals) -> Figures:
    repeated = cross_validate(data, repetitions=2)
    return figures(data, repeated, choose_thresholds(data, repeated).balanced)


def _rules_alone(data: LabelledSignals) -> Figures:
    return figures(data, [data.has_rule.astype(float)], 1.0)


def is_judged(page: MeasuredPage) -> bool:
    """Nobody asks the policy about other pages."""
    return page.is_read and not page.is_blank


def _fit_signs(data: LabelledSignals) -> LogOdds:
    """Fitted again without the signal that counts most against its side, until there is none. A signal that is left
    out is no page's strongest sign either."""
    kept = np.ones(data.levels.shape[1], bool)
    while True:
        scales = np.append(np.full(int(kept.sum()), SINGLE_SCALE), 1.0)
        model = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000)
        columns = _with_strongest(data.levels[:, kept]) * scales
        model.fit(columns, data.needs, sample_weight=data.weights)
        found = model.coef_[0]
        if (found[:-1] > 0).all() or kept.sum() == 1:
            break
        kept[np.flatnonzero(kept)[found[:-1].argmin()]] = False
    coefficients = np.zeros(len(kept) + 1)
    coefficients[np.append(kept, True)] = np.maximum(found, 0) * scales
    return LogOdds(coefficients=coefficients, intercept=float(model.intercept_[0]))


def _with_strongest(levels: Numbers) -> Numbers:
    return np.column_stack([levels, levels.max(axis=1, initial=0.0)])


def _folds(data: LabelledSignals, *, seed: int) -> Iterator[tuple[Indices, Indices]]:
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    yield from splitter.split(data.levels, data.needs, data.groups)


def _require_enough(data: LabelledSignals) -> None:
    groups, needing = len(set(data.groups)), int(data.needs.sum())
    fewest = min(needing, len(data.needs) - needing)
    if groups < LEAST_GROUPS or fewest < LEAST_PAGES_OF_A_KIND:
        raise SettingsError(
            f"the corpus has {needing} pages that need the model, {len(data.needs) - needing} that do not, and "
            f"{groups} sources; a policy takes {LEAST_PAGES_OF_A_KIND} of each kind from {LEAST_GROUPS} sources"
        )
