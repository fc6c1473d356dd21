"""Handwriting-like ink: what the reader is unsure of, or passed over, is also irregular."""

from __future__ import annotations

from math import sqrt
from typing import Final

from pipeline.signals.confidence import ConfidenceSummary
from pipeline.signals.coverage import Coverage

TYPE_IRREGULARITY: Final = 0.2
"""Stroke heights of type seldom spread further than this (median absolute deviation over median)."""

HAND_IRREGULARITY: Final = 0.4
"""From here on strokes are written, not set: notarial hands of 1914 measure 0.3 to 0.6."""


def handwriting_likeness(coverage: Coverage, confidence: ConfidenceSummary | None) -> float | None:
    """0 to 1: the geometric mean of how badly the ink was read and of how far its strokes are from type.

    Badly read: the share of unsure characters, or of text-like ink without a word, whichever is larger. None
    where there are too few strokes to tell.
    """
    if coverage.uncovered_share is None or coverage.irregularity is None:
        return None
    badly_read = max(confidence.unsure_share if confidence is not None else 0.0, coverage.uncovered_share)
    unlike_type = (coverage.irregularity - TYPE_IRREGULARITY) / (HAND_IRREGULARITY - TYPE_IRREGULARITY)
    return sqrt(badly_read * min(1.0, max(0.0, unlike_type)))
