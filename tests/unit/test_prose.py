"""Words cut at line ends, and Markdown that shows what the page shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from models.geometry import Box
from models.text import Line
from pipeline.prose import escaped_markdown, paragraph_text, whole_words, words_in

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("lines", "vocabulary", "expected"),
    [
        (["the sup-", "ply will end"], NONE, ["the supply", "will end"]),
        (["the sup-", "ply"], NONE, ["the supply"]),
        (["the sup-", "ply, then"], NONE, ["the supply,", "then"]),
        (["SUP-", "PLY"], NONE, ["SUPPLY"]),
        (["the well-", "known man"], frozenset({"well-known"}), ["the well-known", "man"]),
        (["a high-", "level talk"], frozenset({"high", "level"}), ["a high-level", "talk"]),
        (["a high-", "level talk"], frozenset({"high", "level", "highlevel"}), ["a highlevel", "talk"]),
        (["die Vor-", "und Nachteile"], NONE, ["die Vor-", "und Nachteile"]),
        (["from 2010-", "2012"], NONE, ["from 2010-", "2012"]),
        (["the Trace-", "Monkey"], NONE, ["the Trace-", "Monkey"]),
        (["a dash -", "and more"], NONE, ["a dash -", "and more"]),
    ],
)
def test_cut_words(lines: list[str], vocabulary: frozenset[str], expected: list[str]) -> None:
    assert whole_words(lines, vocabulary) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["one", "two"], "one two"),
        (["from 2010-", "2012"], "from 2010-2012"),
        (["the Trace-", "Monkey"], "the Trace-Monkey"),
        (["Vor-", "und Nachteile"], "Vor- und Nachteile"),
        (["安徽安利合成", "革股份"], "安徽安利合成革股份"),
        (["한국어 문장은", "띄어 쓴다"], "한국어 문장은 띄어 쓴다"),
    ],
)
def test_a_paragraph_on_one_line(lines: list[str], expected: str) -> None:
    assert paragraph_text(lines, NONE) == expected


def test_parts_of_cut_words_are_no_evidence() -> None:
    texts = ["some trans-", "forming of well-known", "things"]
    lines = [Line(text=text, box=Box(0, 0, 1, 1), confidence=None, words=()) for text in texts]
    assert words_in(lines) == {"some", "of", "well-known", "things"}


@given(st.lists(st.text(alphabet="ab-C1 ", min_size=1, max_size=8), min_size=1, max_size=6))
def test_no_letter_is_lost_or_added(lines: list[str]) -> None:
    def letters(text: str) -> str:
        return "".join(character for character in text if character.isalnum())

    assert letters("".join(whole_words(lines, NONE))) == letters("".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        "# no heading", "> no quote", "- no item", "+ no item", "1. no list", "7) no list",
        "*stars* and _scores_",
        "snake_case_name",
        "`code`", "[link](x)", "<b>bold</b>", "<!-- page 2: vlm -->", "&copy; 2020 & more",
        "~~gone~~", "===", "---", "a \\* b", "![x](y)", "2 < 3 > 1", "~~~", "<script>alert(1)</script>",
    ],
)  # fmt: skip
def test_markdown_shows_just_these_characters(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("strikethrough")
    tokens = parser.parse(escaped_markdown(text))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children) == text
