"""How sure the reader was, by character: long words weigh more than specks read as dots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.text import Line, Word

UNSURE_BELOW: Final = 0.8
"""Tesseract reads clean print above this almost always: 3 % of its characters lie below, of handwriting 32
%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSummary:
    """Quantiles over characters, 0 to 1, and the share of characters under ``UNSURE_BELOW``."""

    p05: float
    p10: float
    median: float
    unsure_share: float


def summarise_confidence(words: Sequence[Word]) -> ConfidenceSummary | None:
    """None when no word carries a confidence: a text layer, a blank page."""
    known = [(word.confidence, len(word.text)) for word in words if word.confidence is not None and word.text]
    if not known:
        return None
    confidences, lengths = np.array(known, dtype=np.float64).T
    order = np.argsort(confidences)
    ranked, below = confidences[order], np.cumsum(lengths[order])
    p05, p10, median = (float(ranked[np.searchsorted(below, q * below[-1])]) for q in (0.05, 0.10, 0.50))
    unsure = float(lengths[confidences < UNSURE_BELOW].sum() / below[-1])
    return ConfidenceSummary(p05=p05, p10=p10, median=median, unsure_share=unsure)


def mean_confidence(lines: Iterable[Line]) -> float:
    """Mean word confidence weighted by characters, 0 to 1; 0 where nothing was read."""
    words = [word for line in lines for word in line.words if word.confidence is not None]
    characters = sum(len(word.text) for word in words)
    if not characters:
        return 0.0
    return sum(len(word.text) * (word.confidence or 0.0) for word in words) / characters
