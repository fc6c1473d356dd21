from __future__ import annotations

import random

import pytest
from PIL import ImageDraw

from pipeline.signals.confidence import ConfidenceSummary
from pipeline.signals.coverage import Coverage, measure_coverage
from pipeline.signals.handwriting import handwriting_likeness
from pipeline.signals.rules import find_rules
from pipeline.signals.view import view_page
from tests.unit.signals.pages import blank_page, rule, write_lines


def coverage_of(page, words) -> Coverage:  # type: ignore[no-untyped-def]
    view = view_page(page, tuple(words))
    return measure_coverage(view, find_rules(view))


def test_a_page_whose_words_were_all_read_is_covered() -> None:
    page = blank_page()
    lines = write_lines(page, 20)

    coverage = coverage_of(page, [word for line in lines for word in line])

    assert coverage.uncovered_share == 0
    assert coverage.areas == ()


def test_lines_that_the_reader_dropped_are_found_with_their_place() -> None:
    page = blank_page()
    lines = write_lines(page, 20)

    coverage = coverage_of(page, [word for line in lines[:15] for word in line])

    assert coverage.uncovered_share == pytest.approx(0.25, abs=0.06)
    assert coverage.uncovered_line_share == pytest.approx(coverage.uncovered_share, abs=0.05)
    assert min(area.top_px for area in coverage.areas) >= 90 + 15 * 24 - 15


def test_a_page_of_text_without_any_word_is_wholly_uncovered() -> None:
    page = blank_page()
    write_lines(page, 20)

    assert coverage_of(page, []).uncovered_share == 1


def test_scattered_marks_are_ink_without_a_word_but_no_lines() -> None:
    page, scatter = blank_page(), random.Random(5)
    words = [word for line in write_lines(page, 12) for word in line]
    draw = ImageDraw.Draw(page)
    for column in range(90, 700, 45):
        for row in range(500, 1000, 45):
            x, y = column + scatter.randrange(12), row + scatter.randrange(20)
            draw.line((x, y, x + 6, y + 10), fill="black", width=3)

    coverage = coverage_of(page, words)

    assert coverage.uncovered_share is not None
    assert coverage.uncovered_line_share is not None
    assert coverage.uncovered_share > 0.2
    assert coverage.uncovered_line_share < 0.03


def test_rules_specks_and_the_scanners_edge_are_no_writing() -> None:
    page = blank_page()
    words = [word for line in write_lines(page, 12) for word in line]
    rule(page, (60, 700), (760, 700))
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, 5, 1168), fill="black")
    for n in range(60):
        draw.point((100 + 10 * n, 800 + n), fill="black")

    assert coverage_of(page, words).uncovered_share == 0


def test_an_empty_page_has_no_shares() -> None:
    coverage = coverage_of(blank_page(), [])

    assert (coverage.uncovered_share, coverage.uncovered_line_share, coverage.irregularity) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("uncovered", "unsure", "irregularity", "expected"),
    [
        (0.0, 0.0, 0.5, 0.0),
        (1.0, None, 0.4, 1.0),
        (0.0, 1.0, 0.2, 0.0),
        (0.1, 0.81, 0.4, 0.9),
        (0.64, 0.1, 0.3, 0.566),
    ],
)
def test_handwriting_needs_both_bad_reading_and_irregular_strokes(
    uncovered: float, unsure: float | None, irregularity: float, expected: float
) -> None:
    coverage = Coverage(
        uncovered_share=uncovered, uncovered_line_share=0.0, irregularity=irregularity, areas=()
    )
    confidence = None if unsure is None else ConfidenceSummary(p05=0, p10=0, median=0, unsure_share=unsure)

    assert handwriting_likeness(coverage, confidence) == pytest.approx(expected, abs=0.001)
