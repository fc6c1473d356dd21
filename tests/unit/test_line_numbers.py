"""Line numbers come apart from the text beside them; numbers of lists, tables and notes stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text import Line, Word
from pipeline.reading_order import lines_from_words, ordered_blocks
from pipeline.rows import line_of
from tests.unit.test_reading_order import PAGE, block_texts, typeset

TESTIMONY = [
    "the ferry left the pier at nine and we saw",
    "nobody on the upper deck until the lamp went",
    "out. The mate called to the engine room and",
    "had no answer from below for a minute or so.",
    "Mr. Holm then went down the ladder himself",
    "and came up again with the cook, who had been",
    "asleep in the galley since we left the quay.",
    "Was the lamp lit again before you reached the",
    "other bank, and who lit it at that hour?",
    "The mate lit it, with a match of mine.",
]
ITEMS = ["Apples", "Pears from the south", "Plums", "Quinces", "Cherries, sour", "Medlars", "Sloes"]
LEADING_PX = 26

Setting = Callable[[Sequence[Word]], list[Line]]


def from_layer(row: Sequence[Word]) -> list[Line]:
    """A text layer's rows, as words of one line without a paragraph."""
    return list(lines_from_words(row))


def number_first(row: Sequence[Word]) -> list[Line]:
    """As an OCR engine reads it that takes the number for the line's first or last word."""
    return [line_of(sorted(row, key=lambda word: word.box.left), paragraph_number=1)]


def number_alone(row: Sequence[Word]) -> list[Line]:
    """As an OCR engine reads it that finds the numbers in a paragraph of their own."""
    numbers = [word for word in row if word.text.isdecimal()]
    rest = [word for word in row if not word.text.isdecimal()]
    return [line_of(words, number) for number, words in ((1, numbers), (2, rest)) if words]


SETTINGS = pytest.mark.parametrize("setting", [from_layer, number_first, number_alone])


def row_of(number: str, text: str, index: int, *, at: float = 60, left: float = 130) -> list[Word]:
    """A number, its right edge at ``at``, level with a line of text."""
    top = 100 + LEADING_PX * index
    return typeset(number, left=at - 10 * len(number), top=top) + typeset(text, left=left, top=top)


def read(rows: Sequence[Sequence[Word]], setting: Setting = from_layer) -> list[list[str]]:
    return block_texts(ordered_blocks([line for row in rows for line in setting(row)], *PAGE))


def flat(blocks: Sequence[Sequence[str]]) -> list[str]:
    return [text for block in blocks for text in block]


@SETTINGS
def test_a_transcripts_numbers_come_first_as_one_block(setting: Setting) -> None:
    rows = [row_of(str(n + 7), text, n) for n, text in enumerate(TESTIMONY)]
    numbers, *text = read(rows, setting)
    assert numbers == [str(n + 7) for n in range(10)]
    assert flat(text) == TESTIMONY


@SETTINGS
def test_every_fifth_number_in_the_right_margin_comes_last(setting: Setting) -> None:
    poem = [line.capitalize() for line in TESTIMONY * 3]
    rows = [row_of(str(n + 1) if n % 5 == 4 else "", text, n, at=700) for n, text in enumerate(poem)]
    *text, numbers = read(rows, setting)
    assert numbers == ["5", "10", "15", "20", "25", "30"]
    assert flat(text) == poem


def test_numbers_of_empty_lines_and_misread_ones_are_in_the_block() -> None:
    texts = [*TESTIMONY[:6], "", "", "", ""]
    marks = ["1", "2", "3", "A", "5", "6", "7", "8", "9", "10"]
    rows = [row_of(mark, text, n) for n, (mark, text) in enumerate(zip(marks, texts, strict=True))]
    numbers, *text = read(rows)
    assert numbers == marks
    assert flat(text) == TESTIMONY[:6]


def test_numbers_beside_two_columns() -> None:
    rows = [
        row_of(str(n + 1), text, n) + typeset(text.upper(), left=650, top=100 + LEADING_PX * n)
        for n, text in enumerate(TESTIMONY)
    ]
    numbers, *text = read(rows)
    assert numbers == [str(n + 1) for n in range(10)]
    assert flat(text) == [*TESTIMONY, *(line.upper() for line in TESTIMONY)]


def test_a_listings_numbers_stand_before_the_listing_and_not_before_the_page() -> None:
    prose = [typeset(text, left=100, top=100 + LEADING_PX * n) for n, text in enumerate(TESTIMONY)]
    code = ["def total(rows):", "found = 0", "for row in rows:", "found += row.price", "return found"]
    listing = [row_of(str(n + 1), text, n + 12) for n, text in enumerate(code)]
    blocks = read([*prose, *listing])
    assert flat(blocks) == [*TESTIMONY, "1", "2", "3", "4", "5", *code]


@pytest.mark.parametrize("setting", [from_layer, number_first])
@pytest.mark.parametrize("mark", ["{}.", "{})", "({})", "{}"])
def test_numbered_lists_stay(setting: Setting, mark: str) -> None:
    rows = [row_of(mark.format(n + 1), text, n) for n, text in enumerate(ITEMS)]
    assert flat(read(rows, setting)) == [f"{mark.format(n + 1)} {text}" for n, text in enumerate(ITEMS)]


@pytest.mark.parametrize(
    "items",
    [
        [*ITEMS, "sugar", "cloves", "Ginger"],
        ["Ada Brandt", "Olaf Holm", "Ruth Lind", "", "", "", "", "", "", ""],
    ],
)
def test_lists_with_some_small_letters_or_empty_places_stay(items: Sequence[str]) -> None:
    rows = [row_of(str(n + 1), text, n) for n, text in enumerate(items)]
    assert flat(read(rows)) == [f"{n + 1} {text}".rstrip() for n, text in enumerate(items)]


def test_amounts_that_rise_from_row_to_row_stay() -> None:
    rows = [row_of(str(5 * n + 5), "drops of oil", n) for n in range(8)]
    assert flat(read(rows)) == [f"{5 * n + 5} drops of oil" for n in range(8)]


def test_a_list_with_hanging_second_lines_stays() -> None:
    rows = []
    for n in range(6):
        rows.append(row_of(str(n + 1), "apples of the second sort, which are kept", 2 * n))
        rows.append(row_of("", "in the loft until the frost", 2 * n + 1))
    assert [text for text in flat(read(rows)) if text.isdecimal()] == []


@pytest.mark.parametrize("step", [1, 5])
def test_a_table_whose_rows_are_numbered_stays(step: int) -> None:
    rows = [
        row_of(str(step * (n + 1)), "oak boards", n) + typeset("sawn dry", left=500, top=100 + LEADING_PX * n)
        for n in range(8)
    ]
    assert flat(read(rows)) == [f"{step * (n + 1)} oak boards sawn dry" for n in range(8)]


def test_a_table_of_years_and_figures_stays() -> None:
    rows = [row_of(str(1990 + n), f"{4 + n},512", n, at=120, left=200) for n in range(8)]
    assert flat(read(rows)) == [f"{1990 + n} {4 + n},512" for n in range(8)]


@pytest.mark.parametrize("left", [68, 76])
def test_numbers_close_to_their_text_as_in_footnotes_stay(left: float) -> None:
    rows = [row_of(str(n + 1), text, n, left=left) for n, text in enumerate(TESTIMONY)]
    assert flat(read(rows)) == [f"{n + 1} {text}" for n, text in enumerate(TESTIMONY)]


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4], [3, 17, 4, 90, 5, 41, 6], [1, 3, 10, 11, 40, 95, 96]])
def test_few_numbers_and_ones_without_a_step_stay(numbers: Sequence[int]) -> None:
    rows = [
        row_of(str(number), text, n) for n, (number, text) in enumerate(zip(numbers, TESTIMONY, strict=False))
    ]
    assert flat(read(rows)) == [f"{a} {b}" for a, b in zip(numbers, TESTIMONY, strict=False)]


@given(
    st.lists(st.integers(0, 40).map(str), min_size=5, max_size=20),
    st.sampled_from([from_layer, number_first]),
)
def test_no_word_is_lost_beside_numbers(numbers: list[str], setting: Setting) -> None:
    rows = [row_of(number, TESTIMONY[n % 10], n) for n, number in enumerate(sorted(numbers, key=int))]
    found = ordered_blocks([line for row in rows for line in setting(row)], *PAGE)
    placed = Counter(word for block in found for line in block.lines for word in line.words)
    assert placed == Counter(word for row in rows for word in row)
