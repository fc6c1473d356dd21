"""The triage policy: from named signals to the probability that a page needs the vision-language model.

A policy is one JSON file, ``pipeline/policies/default.json`` or the user's own; ``docs/triage.md`` documents
it and ``doctriage calibrate`` writes it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from models.choices import TriageProfile
from models.errors import SettingsError
from pipeline.policy_signals import SignalForm
from pipeline.settings import Section
from pipeline.signals.names import SignalName

SCHEMA_VERSION: Final = 1

Measured = Mapping[str, float | None]
"""Signals by name; None, or no entry, for what was not measured."""

Probability = Annotated[float, Field(ge=0, le=1)]


NEUTRAL_LEVEL: Final = 0.5
"""Half-way between the ends of its range a signal speaks neither for nor against the model."""


class WeighedSignal(SignalForm):
    """``weight`` is what the signal adds to the log-odds between the two ends of its range, besides what the page's
    strongest sign adds. ``neutral``, in the signal's own unit, is half-way."""

    weight: float = Field(ge=0)
    neutral: float

    def contribution(self, measured: float | None) -> float:
        """What it adds to the log-odds on this page; under 0 where it speaks against the model."""
        return self.weight * (self.level(measured) - NEUTRAL_LEVEL)


class HardRule(Section):
    """Escalates by itself, whatever the probability: from ``threshold`` up (``least``), or ``below`` it."""

    signal: SignalName
    side: Literal["least", "below"]
    threshold: float

    def fires(self, measured: float | None) -> bool:
        if measured is None:
            return False
        return measured >= self.threshold if self.side == "least" else measured < self.threshold


class ProfileThresholds(Section):
    """The probability from which a page goes to the model."""

    thrifty: Probability
    balanced: Probability
    thorough: Probability

    @model_validator(mode="after")
    def _are_in_order(self) -> Self:
        if not self.thorough <= self.balanced <= self.thrifty:
            raise ValueError("thorough may not be above balanced, nor balanced above thrifty")
        return self

    def of(self, profile: TriageProfile) -> float:
        return {
            TriageProfile.THRIFTY: self.thrifty,
            TriageProfile.BALANCED: self.balanced,
            TriageProfile.THOROUGH: self.thorough,
        }[profile]


class Policy(Section):
    """``bias`` is the log-odds of a page whose signals are all neutral. One strong sign is reason enough, so the
    signal with the highest level has ``strongest_weight`` as well. ``provenance`` says on which pages the
    policy was fitted and how well it did there; it decides nothing."""

    schema_version: Literal[1]
    policy_version: str = Field(min_length=1)
    provenance: Mapping[str, object] = Field(default_factory=dict)
    thresholds: ProfileThresholds
    bias: float
    strongest_weight: float = Field(ge=0, default=0.0)
    signals: tuple[WeighedSignal, ...]
    rules: tuple[HardRule, ...]

    @property
    def digest(self) -> str:
        """A SHA-256 in hex over all that decides."""
        what_counts = self.model_dump(mode="json", exclude={"provenance"})
        return hashlib.sha256(json.dumps(what_counts, sort_keys=True).encode()).hexdigest()

    def probability(self, measured: Measured) -> float:
        """That the page needs the model, 0 to 1."""
        log_odds = self.bias + sum(part.log_odds for part in self.contributions(measured))
        return 1 / (1 + math.exp(-log_odds))

    def contributions(self, measured: Measured) -> Iterator[Contribution]:
        """What each signal adds to the log-odds."""
        levels = [signal.level(measured.get(signal.signal)) for signal in self.signals]
        strongest = levels.index(max(levels)) if levels else None
        for index, signal in enumerate(self.signals):
            value = measured.get(signal.signal)
            extra = self.strongest_weight * (levels[index] - NEUTRAL_LEVEL) if index == strongest else 0.0
            yield Contribution(signal=signal, measured=value, log_odds=signal.contribution(value) + extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    signal: WeighedSignal
    measured: float | None
    log_odds: float


def load_policy(path: Path | None = None) -> Policy:
    """The policy in the file, or the one that is shipped. Raises SettingsError for a file that is none."""
    if path is None:
        shipped = resources.files("pipeline").joinpath("policies/default.json")
        return Policy.model_validate_json(shipped.read_bytes())
    try:
        return Policy.model_validate_json(path.expanduser().read_bytes())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; name a policy file, docs/triage.md") from error
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'file'}: {fault['msg']}"
            for fault in error.errors()[:3]
        )
        raise SettingsError(f"{path}: no policy ({faults}); docs/triage.md has the format") from error


def policy_json(policy: Policy) -> str:
    """The file's text."""
    return json.dumps(policy.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
