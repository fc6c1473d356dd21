"""Words of PaddleOCR's pieces, also where the network has lost the space between them."""

from __future__ import annotations

import re

import pytest

from pipeline.engines.paddleocr import _words


def words(line: str) -> list[str]:
    """As the network cuts a line: runs of letters, runs of digits, single signs and white space."""
    pieces = re.findall(r"[^\W\d_]+|\d+|\s|.", line)
    boxes = [[10 * n, 0, 10 * n + 8, 12] for n in range(len(pieces))]
    return [word.text for word in _words(pieces, boxes, 0.9)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("by age,gender,and race", ["by", "age,", "gender,", "and", "race"]),
        ("Table 2.3:Population totals", ["Table", "2.3:", "Population", "totals"]),
        ("the end.Next week;then more", ["the", "end.", "Next", "week;", "then", "more"]),
        ("1,234.50 at 10:30", ["1,234.50", "at", "10:30"]),
        ("https://example.org/a", ["https://example.org/a"]),
        ("U.S.A. and e.g. No.5", ["U.S.A.", "and", "e.g.", "No.5"]),
        ("NHANES III，1988", ["NHANES", "III,1988"]),
        ("第二节，公司", ["第二节，公司"]),
    ],
)
def test_lost_spaces_are_found_and_other_signs_left_alone(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_a_word_has_the_box_of_its_pieces() -> None:
    first, second = _words(["age", ",", "gender"], [[0, 0, 30, 12], [31, 2, 33, 14], [36, 0, 90, 13]], 0.9)
    assert (first.box.left, first.box.right, first.box.bottom) == (0, 33, 14)
    assert (second.box.left, second.box.right) == (36, 90)
