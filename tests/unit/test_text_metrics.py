from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text_metrics import (
    EditCounts,
    comparable,
    compare_cells,
    compare_text,
    csv_cells,
    html_cells,
    overlap,
    piped_cells,
    without_markup,
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("“Straße” — 10 %…", '"strasse" - 10 %...'),
        ("Donau-\n  dampf", "donaudampf"),
        ("Total ....... 12", "total 12"),
        ("a\u00adb\u200b  c\n\n d ", "ab c d"),
        ("ﬁnal ſame", "final same"),
    ],
)
def test_what_a_reader_would_call_the_same_is_the_same(text: str, same: str) -> None:
    assert comparable(text) == comparable(same)


def test_markup_is_no_text() -> None:
    text = "## Head\n\n| a | **b** |\n| --- | --- |\n<td>c</td><td>d&amp;e</td>\n![x](y.png)\n> quoted"
    assert comparable(without_markup(text)) == "head a b c d&e quoted"


def test_edit_rates_are_over_characters_and_words_of_the_truth() -> None:
    found = compare_text("the cat sat", "the bat sat down", languages=["en"], has_order=True)

    assert found.characters == EditCounts(edits=6, length=11)
    assert found.words == EditCounts(edits=2, length=3)
    assert found.bag.precision == 2 / 4
    assert found.bag.recall == 2 / 3
    assert found.bag.f1 == pytest.approx(4 / 7)


def test_a_page_cannot_be_worse_than_unread() -> None:
    found = compare_text("ab", "x" * 50, languages=["en"], has_order=True)
    assert found.characters == EditCounts(edits=2, length=2)
    assert found.characters.rate == 1.0


def test_without_one_right_order_only_the_bag_counts() -> None:
    found = compare_text("one two", "two one", languages=["en"], has_order=False)
    assert found.characters is None
    assert found.words is None
    assert found.bag.f1 == 1.0


def test_languages_without_spaces_are_compared_by_pairs_of_characters() -> None:
    found = compare_text("日本語文", "日本 語x", languages=["ja"], has_order=True)
    assert found.characters == EditCounts(edits=1, length=4)
    assert found.bag.recall == 2 / 3
    assert compare_text("한국 어", "한국어", languages=["ko"], has_order=True).characters == EditCounts(
        edits=0, length=3
    )


def test_nothing_read_where_nothing_is_written_is_right() -> None:
    assert overlap([], []).f1 == 1.0
    assert overlap([], ["x"]).f1 == 0.0
    assert overlap(["x"], []).f1 == 0.0
    assert compare_text("", "", languages=[], has_order=True).characters is None


def test_cells_are_found_in_html_csv_and_pipes() -> None:
    html = "<table><tr><th>A</th><td colspan=2>b <b>c</b></td></tr><tr><td></td></tr></table>"
    assert html_cells(html) == ["a", "b c", ""]
    assert csv_cells('A,"b, c"\n,d\n') == ["a", "b, c", "", "d"]
    assert piped_cells("text\n| A | b |\n|---|---|\n| c | d |") == ["a", "b", "c", "d"]
    assert compare_cells(["a", "b", ""], ["b", "c"]).f1 == 0.5


@given(st.text(max_size=60))
def test_a_text_is_as_good_as_itself(text: str) -> None:
    plain = without_markup(text)
    found = compare_text(plain, plain, languages=["en"], has_order=True)
    if comparable(plain) == comparable(without_markup(plain)):
        assert found.bag.f1 == 1.0
        assert found.characters is None or found.characters.edits == 0
