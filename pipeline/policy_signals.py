"""The signals that the policy may weigh, each with the form in which it enters. One row a signal.

To let a new signal count, add a row and run ``doctriage calibrate`` again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal, Self

from pydantic import model_validator

from pipeline.settings import Section
from pipeline.signals.names import SignalName

Scale = Literal["linear", "sqrt", "log1p"]
_SCALES: Final[Mapping[Scale, Callable[[float], float]]] = {
    "linear": float,
    "sqrt": math.sqrt,
    "log1p": math.log1p,
}
_INVERSES: Final[Mapping[Scale, Callable[[float], float]]] = {
    "linear": float,
    "sqrt": lambda value: value * value,
    "log1p": math.expm1,
}


class SignalForm(Section):
    """How a measured value becomes a number from 0 to 1 that grows with the need for the model.

    Values are clipped to ``lowest`` and ``highest`` and put on ``scale``; ``side`` says which end speaks for
    the model. A page on which the signal was not measured counts as one that has the value ``missing``.
    """

    signal: SignalName
    lowest: float
    highest: float
    missing: float
    scale: Scale = "linear"
    side: Literal["high", "low"] = "high"

    @model_validator(mode="after")
    def _has_a_range(self) -> Self:
        if not self.lowest < self.highest:
            raise ValueError(f"{self.signal}: lowest has to be under highest")
        if self.scale != "linear" and self.lowest < 0:
            raise ValueError(f"{self.signal}: {self.scale} needs values from 0 up")
        return self

    def level(self, measured: float | None) -> float:
        """0 (nothing speaks for the model) to 1."""
        value = self.missing if measured is None else measured
        scaled = _SCALES[self.scale]
        low, high = scaled(self.lowest), scaled(self.highest)
        share = (scaled(min(max(value, self.lowest), self.highest)) - low) / (high - low)
        return share if self.side == "high" else 1 - share

    def value_at(self, level: float) -> float:
        """The measured value that has this level."""
        scaled = _SCALES[self.scale]
        low, high = scaled(self.lowest), scaled(self.highest)
        share = level if self.side == "high" else 1 - level
        return _INVERSES[self.scale](low + share * (high - low))


FORMS: Final = (
    SignalForm(signal=SignalName.UNSETTLED_CHARACTER_SHARE, lowest=0.1, highest=0.4, missing=0.1),
    SignalForm(signal=SignalName.ODD_WORD_SHARE, lowest=0.1, highest=0.3, missing=0.1),
    SignalForm(signal=SignalName.UNCOVERED_INK_SHARE, lowest=0.25, highest=0.55, missing=0.25),
    SignalForm(signal=SignalName.UNCOVERED_LINE_SHARE, lowest=0.04, highest=0.12, missing=0.04),
    SignalForm(signal=SignalName.HANDWRITING_LIKENESS, lowest=0.35, highest=0.55, missing=0.35),
    SignalForm(signal=SignalName.HANDWRITING_PROBABILITY, lowest=0.35, highest=0.65, missing=0.35),
    SignalForm(signal=SignalName.TABLE_RULED_CELLS, lowest=2, highest=10, missing=2),
    SignalForm(signal=SignalName.TABLE_ALIGNED_ROWS, lowest=4, highest=10, missing=4),
    SignalForm(signal=SignalName.TABLE_LAYOUT_CONFIDENCE, lowest=0.6, highest=0.9, missing=0.6),
    SignalForm(signal=SignalName.STAMP_STRENGTH, lowest=0.7, highest=0.9, missing=0.7),
    SignalForm(signal=SignalName.STAMP_WORDS, lowest=0, highest=1, missing=0),
)
"""The layout network is not asked, and gives no confidence, where the page is plain or the case clear."""
