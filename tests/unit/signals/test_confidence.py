from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.geometry import Box
from models.text import Word
from pipeline.signals.confidence import summarise_confidence


def word(text: str, confidence: float | None) -> Word:
    return Word(text=text, box=Box(0, 0, 10, 10), confidence=confidence)


def test_text_without_confidences_has_no_summary() -> None:
    assert summarise_confidence([word("layer", None)]) is None
    assert summarise_confidence([]) is None


def test_characters_count_not_words() -> None:
    summary = summarise_confidence([word(".", 0.1), word(".", 0.2), word("characteristically", 0.96)])

    assert summary is not None
    assert summary.unsure_share == pytest.approx(2 / 20)
    assert summary.median == 0.96
    assert summary.p05 == 0.1


def test_exactly_the_limit_is_sure() -> None:
    summary = summarise_confidence([word("even", 0.8), word("less", 0.799)])

    assert summary is not None
    assert summary.unsure_share == 0.5


@given(st.lists(st.tuples(st.text(min_size=1, max_size=12), st.floats(0, 1)), min_size=1))
def test_quantiles_are_ordered_and_seen(pairs: list[tuple[str, float]]) -> None:
    summary = summarise_confidence([word(text, confidence) for text, confidence in pairs])

    assert summary is not None
    assert summary.p05 <= summary.p10 <= summary.median
    assert {summary.p05, summary.p10, summary.median} <= {confidence for _, confidence in pairs}
    assert 0 <= summary.unsure_share <= 1
