"""Lines and blocks in the order a person reads them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.geometry import Box
from models.text import Block, BlockKind, Line, Word
from pipeline.reading_order import lines_from_words, ordered_blocks
from pipeline.rows import in_logical_order, line_of

PAGE = (1000, 1400)
LETTER_PX = 10
"""The width of a letter; the type is about 20 px."""

words = st.builds(
    lambda text, left, top, width, height: Word(
        text=text, box=Box(left, top, left + width, top + height), confidence=None
    ),
    st.text(alphabet="aegplhT19שלم漢.-", min_size=1, max_size=6),
    st.integers(0, 900),
    st.integers(0, 1300),
    st.integers(1, 200),
    st.integers(1, 60),
)


def typeset(text: str, *, left: float, top: float, size: float = 1.0) -> list[Word]:
    """The words of one line, set in tight boxes."""
    placed = []
    x = left
    for word in text.split():
        width = LETTER_PX * size * len(word)
        rise = 15 if any(c in "bdfhklt" or c.isupper() or c.isdigit() for c in word) else 10.5
        drop = 4.4 if any(c in "gpqyj" for c in word) else 0
        box = Box(x, top + (15 - rise) * size, x + width, top + (15 + drop) * size)
        placed.append(Word(text=word, box=box, confidence=0.9))
        x += width + 6 * size
    return placed


def set_lines(lines: Sequence[str], *, left: float, top: float, leading: float = 26) -> list[Word]:
    return [w for n, line in enumerate(lines) for w in typeset(line, left=left, top=top + n * leading)]


LEFT = [
    "The glassworks on the canal",
    "closed its last furnace when",
    "the price of coal doubled",
    "in a winter.",
]
RIGHT = [
    "A museum now fills the hall",
    "where bottles were sorted",
    "by colour. Visitors may blow",
    "a small vase.",
]
PROSE = [
    "the harbour was dredged in the spring and the quay was mended",
    "before the first barges came down from the upper lock with coal",
    "and timber for the yards that lie along the northern basin now",
]


def texts(found: Sequence[Line]) -> list[str]:
    return [line.text for line in found]


def block_texts(found: Sequence[Block]) -> list[list[str]]:
    return [[line.text for line in block.lines] for block in found]


@given(st.lists(words, max_size=40), st.randoms(use_true_random=False))
def test_no_word_is_lost_and_order_of_words_does_not_matter(
    given_words: list[Word], rng: random.Random
) -> None:
    found = lines_from_words(given_words)
    assert Counter(word for line in found for word in line.words) == Counter(given_words)
    shuffled = list(given_words)
    rng.shuffle(shuffled)
    assert lines_from_words(shuffled) == found


@given(st.lists(st.lists(words, min_size=1, max_size=4), max_size=15), st.booleans())
def test_every_word_is_in_one_block(rows: list[list[Word]], has_numbers: bool) -> None:
    lines = [line_of(row, index // 3 if has_numbers else None) for index, row in enumerate(rows)]
    blocks = ordered_blocks(lines, *PAGE)
    placed = Counter(word for block in blocks for line in block.lines for word in line.words)
    assert placed == Counter(word for row in rows for word in row)


def test_two_columns_under_a_heading_that_spans_them() -> None:
    page = typeset("Glass on the canal", left=300, top=40, size=1.6)
    page += set_lines(LEFT, left=100, top=120) + set_lines(RIGHT, left=460, top=120)
    page += typeset("This note stands under both columns and runs across the whole page", left=100, top=300)
    assert texts(lines_from_words(page)) == [
        "Glass on the canal",
        *LEFT,
        *RIGHT,
        "This note stands under both columns and runs across the whole page",
    ]


def test_three_columns_and_a_page_number_in_a_gutter() -> None:
    columns = [[f"{name} line {n} of the column" for n in range(6)] for name in ("first", "second", "third")]
    page = [w for k, column in enumerate(columns) for w in set_lines(column, left=60 + 310 * k, top=100)]
    page += typeset("7", left=355, top=420)
    assert texts(lines_from_words(page)) == [*columns[0], *columns[1], *columns[2], "7"]


def test_columns_whose_rows_do_not_line_up_are_columns_however_short() -> None:
    sidebar = ["Opening", "Monday", "to Friday", "nine to five"]
    page = set_lines(PROSE * 2, left=320, top=100) + set_lines(sidebar, left=60, top=112, leading=31)
    assert texts(lines_from_words(page)) == [*sidebar, *PROSE, *PROSE]


def test_rows_of_a_table_are_read_across() -> None:
    cells = [
        ("Item", "Pieces", "Price"),
        ("Nails", "400", "3.20"),
        ("Hinges", "12", "9.60"),
        ("Glue", "2", "4.10"),
    ]
    page = [
        word
        for n, row in enumerate(cells)
        for k, cell in enumerate(row)
        for word in typeset(cell, left=100 + 250 * k, top=100 + 30 * n)
    ]
    assert texts(lines_from_words(page)) == [" ".join(row) for row in cells]


def test_labels_and_values_of_a_form_stay_together() -> None:
    labels = ["Trade name:", "Goods offered:", "Length in metres:", "Water needed:"]
    values = ["Bellwether Candles", "Beeswax and soap", "4.5", "yes"]
    page = set_lines(labels, left=100, top=100, leading=60) + set_lines(values, left=400, top=95, leading=60)
    assert texts(lines_from_words(page)) == [f"{a} {b}" for a, b in zip(labels, values, strict=True)]


def test_right_to_left_words_come_in_logical_order() -> None:
    spelled = ["דוח", "שנתי", "2024", "של", "The", "Library", "כאן"]
    order_on_paper = ["כאן", "The", "Library", "של", "2024", "שנתי", "דוח"]
    placed = {
        text: Word(text=text, box=Box(100 * n, 10, 100 * n + 80, 30), confidence=None)
        for n, text in enumerate(order_on_paper)
    }
    assert [word.text for word in in_logical_order(list(placed.values()))] == spelled


def test_a_hebrew_name_within_an_english_line_keeps_its_own_order() -> None:
    on_paper = ["the", "word", "ב", "א", "means", "9"]
    placed = [
        Word(text=t, box=Box(50 * n, 0, 50 * n + 40, 20), confidence=None) for n, t in enumerate(on_paper)
    ]
    assert [word.text for word in in_logical_order(placed)] == ["the", "word", "א", "ב", "means", "9"]


def test_paragraphs_break_at_indents_and_wide_gaps() -> None:
    page = set_lines(PROSE, left=100, top=100)
    page += typeset("this line is set in and begins a paragraph of its own which", left=130, top=100 + 26 * 3)
    page += typeset(
        "runs on to the margin again as the lines before have done it", left=100, top=100 + 26 * 4
    )
    page += set_lines(PROSE, left=100, top=100 + 26 * 4 + 52)
    blocks = ordered_blocks(lines_from_words(page), *PAGE)
    assert [len(block.lines) for block in blocks] == [3, 2, 3]
    assert {block.kind for block in blocks} == {BlockKind.PARAGRAPH}


def test_headings_only_where_type_is_larger_and_text_short() -> None:
    page = typeset("Harbour works", left=100, top=40, size=1.8) + set_lines(PROSE, left=100, top=120)
    page += typeset("A short line", left=100, top=260)
    page += typeset(
        "It says a full sentence in large type, and that is no heading.", left=100, top=320, size=1.4
    )
    blocks = ordered_blocks(lines_from_words(page), *PAGE)
    assert [(block.kind, block.heading_level) for block in blocks] == [
        (BlockKind.HEADING, 1),
        (BlockKind.PARAGRAPH, None),
        (BlockKind.PARAGRAPH, None),
        (BlockKind.PARAGRAPH, None),
    ]


@pytest.mark.parametrize("marks", [("•", "•", "•"), ("1.", "2.", "3."), ("a)", "b)", "c)"), ("–", "–", "–")])
def test_list_items_with_hanging_lines(marks: Sequence[str]) -> None:
    page: list[Word] = []
    for n, mark in enumerate(marks):
        page += typeset(f"{mark} the item begins here and it", left=100, top=100 + 52 * n)
        page += typeset("goes on in a second line", left=130, top=126 + 52 * n)
    blocks = ordered_blocks(lines_from_words(page), *PAGE)
    assert [(block.kind, len(block.lines)) for block in blocks] == [(BlockKind.LIST_ITEM, 2)] * 3


def test_an_engines_grouping_is_kept() -> None:
    lines = [
        line_of(typeset("second in place but first in order", left=100, top=300), 1),
        line_of(typeset("and its second line", left=100, top=326), 1),
        line_of(typeset("first in place", left=100, top=100), 2),
    ]
    assert block_texts(ordered_blocks(lines, *PAGE)) == [
        ["second in place but first in order", "and its second line"],
        ["first in place"],
    ]


def test_the_end_of_a_line_that_an_engine_put_elsewhere_is_joined_to_it_again() -> None:
    rows = [
        typeset("the furnace was lit in spring and", left=100, top=100),
        typeset("cooled in autumn, which the owner", left=100, top=126),
        typeset("had not foreseen when he hired it.", left=100, top=152),
    ]
    kept, broken_off = rows[1][:4], rows[1][4:]
    lines = [line_of(rows[0], 0), line_of(kept, 0), line_of(rows[2], 1), line_of(broken_off, 2)]

    found = [line for block in ordered_blocks(lines, *PAGE) for line in block.lines]

    assert texts(found) == [" ".join(word.text for word in row) for row in rows]


def test_short_lines_of_two_columns_are_not_joined_over_the_gutter() -> None:
    left = [line_of(typeset(row, left=100, top=100 + 26 * n), n) for n, row in enumerate(LEFT)]
    edge = max(line.box.right for line in left)
    right = [line_of(typeset(row, left=edge + 18, top=100 + 26 * n), 10 + n) for n, row in enumerate(RIGHT)]

    found = [line for block in ordered_blocks([*left, *right], *PAGE) for line in block.lines]

    assert sorted(texts(found)) == sorted([*LEFT, *RIGHT])


def test_an_engines_fused_columns_are_taken_apart() -> None:
    fused = [
        line_of(typeset(a, left=100, top=100 + 26 * n) + typeset(b, left=460, top=100 + 26 * n), 1)
        for n, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))
    ]
    blocks = ordered_blocks(fused, *PAGE)
    assert [text for block in block_texts(blocks) for text in block] == [*LEFT, *RIGHT]


def test_turned_and_slanted_lines_come_last() -> None:
    slanted = Word(text="DRAFT", box=Box(150, 90, 700, 640), confidence=None)
    upward = Word(text="arXiv:1234", box=Box(10, 200, 30, 500), confidence=None)
    body = [line_of(typeset(text, left=100, top=100 + 26 * n)) for n, text in enumerate(PROSE)]
    blocks = ordered_blocks([line_of([slanted]), line_of([upward]), *body], *PAGE)
    assert block_texts(blocks) == [PROSE, ["DRAFT"], ["arXiv:1234"]]


def test_ideographs_are_joined_without_spaces() -> None:
    page = [
        Word(text=t, box=Box(22.0 * n, 0, 22.0 * n + 20, 20), confidence=None)
        for n, t in enumerate("安徽安利")
    ]
    assert texts(lines_from_words(page)) == ["安徽安利"]


def test_nothing_gives_nothing() -> None:
    assert lines_from_words([]) == ()
    assert ordered_blocks([], *PAGE) == ()


def test_the_aligned_wide_spaces_of_a_typewriter_are_no_gutter() -> None:
    """Every sign is as wide as every other, and a space of 0.85 em often stands above another."""
    rows = (
        "wash the small lentils in a deep old pan with",
        "then add three onions, a spoon of butter, and",
        "stir and cook it until the milk begins to get",
        "quite thick or until a guest asks for the pot",
    )
    words = [word for number, row in enumerate(rows) for word in _typewritten(row, top=100 + 40 * number)]
    assert texts(lines_from_words(words)) == list(rows)


def _typewritten(row: str, *, top: float) -> list[Word]:
    pitch_px, side_px = 13.0, 2.0
    placed = []
    for word, (set_word,) in ((word, typeset(word, left=0, top=top)) for word in row.split()):
        start = len(placed) and len(" ".join(row.split()[: len(placed)])) + 1
        left, right = 100 + start * pitch_px + side_px, 100 + (start + len(word)) * pitch_px - side_px
        placed.append(replace(set_word, box=replace(set_word.box, left=left, right=right)))
    return placed


def test_three_paragraphs_of_one_line_in_one_row_lose_no_word() -> None:
    """The first is the home of the second before its own turn comes."""
    spans = ((0, 100, 0, 20), (105, 200, 0, 20), (205, 300, 0, 20), (0, 400, 25, 45))
    lines = []
    for number, (left, right, top, bottom) in enumerate(spans):
        word = Word(text=f"w{number}", box=Box(left, top, right, bottom), confidence=0.9)
        lines.append(
            Line(text=word.text, box=word.box, confidence=0.9, words=(word,), paragraph_number=number)
        )
    blocks = ordered_blocks(lines, *PAGE)
    assert sorted(word.text for block in blocks for line in block.lines for word in line.words) == [
        "w0",
        "w1",
        "w2",
        "w3",
    ]
