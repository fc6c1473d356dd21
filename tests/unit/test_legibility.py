"""A page's small print and the tier that keeps it legible."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.geometry import Box
from models.text import Line, Word
from pipeline.fit import Tier, page_fit
from pipeline.legibility import LEAST_TEXT_HEIGHT_PX, choose_tier, text_height_px
from pipeline.visual_tokens import VisualTokenBudget, model_family

BUDGETS = {
    name: VisualTokenBudget(
        family=model_family(name),
        min_pixels=model_family(name).processor_min_pixels,
        max_pixels=2_240 * model_family(name).pixels_per_token,
    )
    for name in ("qwen2.5-vl", "qwen3-vl")
}


def tiers_of(family: str) -> tuple[Tier, ...]:
    area_px = model_family(family).pixels_per_token
    return tuple(
        Tier(name=name, visual_tokens=tokens, max_pixels=tokens * area_px)
        for name, tokens in (("small", 640), ("medium", 1_024), ("large", 1_536), ("full", 2_240))
    )


def word(text: str, height_px: float, *, confidence: float | None = 0.95) -> Word:
    return Word(text=text, box=Box(0, 0, 9 * len(text), height_px), confidence=confidence)


def line(*words: Word) -> Line:
    return Line(text=" ".join(one.text for one in words), box=words[0].box, confidence=None, words=words)


def scale_of(width_px: int, height_px: int, tier: Tier, family: str) -> float:
    return min(strip.scale for strip in page_fit(width_px, height_px, BUDGETS[family], tier))


def test_a_quarter_of_small_print_decides() -> None:
    body, notes = word("paragraphs", 30), word("footnotes", 15)
    assert text_height_px([line(*[body] * 9), line(notes)]) == 30
    assert text_height_px([line(*[body] * 7), line(*[notes] * 3)]) == 15


def test_long_words_count_more_than_short_ones() -> None:
    assert text_height_px([line(word("a", 9), word("of", 11), word("incomprehensibilities", 20))]) == 20


@pytest.mark.parametrize(
    "speck", [word("—", 2), word("...", 3), word("|", 90), word("~f", 4, confidence=0.2)]
)
def test_specks_and_doubtful_words_say_nothing_of_the_height(speck: Word) -> None:
    text = word("Nevertheless, understanding", 24)
    assert text_height_px([line(*[speck] * 12), line(text)]) == 24


@pytest.mark.parametrize(
    "text",
    [
        "報告書の第一章から始まる説明文",
        "문서의첫번째단락을읽으십시오나라말씀",
        "第二季度财务报表的附注说明如下所示共有",
    ],
)
def test_dense_scripts_count_for_less_than_their_height(text: str) -> None:
    assert text_height_px([line(word(text, 20), word(text, 20))]) == 15


def test_a_text_layer_has_no_confidence_and_is_trusted() -> None:
    assert text_height_px([line(word("Nevertheless, understanding", 24, confidence=None))]) == 24


@pytest.mark.parametrize(
    "words",
    [
        [],
        [word("Page", 20)],
        [word("garbled-scribbles", 20, confidence=0.3)] * 9,
        [word("readable", 20)] * 4 + [word("scribbles", 40, confidence=0.4)] * 5,
    ],
)
def test_a_page_of_which_too_little_was_read_has_no_height(words: list[Word]) -> None:
    assert text_height_px([line(*words)] if words else []) is None


@pytest.mark.parametrize("family", BUDGETS)
def test_large_print_takes_a_smaller_tier_than_small_print(family: str) -> None:
    names = [
        choose_tier(height, 1_700, 2_200, tiers_of(family), BUDGETS[family]).name
        for height in (40, 22, 14, 6)
    ]
    assert names[0] == "small"
    assert names[-1] == "full"
    order = [tier.name for tier in tiers_of(family)]
    assert [order.index(name) for name in names] == sorted(order.index(name) for name in names)


@settings(deadline=None)
@given(
    st.floats(1, 200),
    st.integers(20, 5_000),
    st.integers(20, 5_000),
    st.sampled_from(sorted(BUDGETS)),
    st.permutations(range(4)),
)
def test_the_cheapest_tier_that_is_legible_is_taken(
    height: float, width_px: int, height_px: int, family: str, order: list[int]
) -> None:
    rising = tiers_of(family)
    chosen = choose_tier(height, width_px, height_px, [rising[place] for place in order], BUDGETS[family])
    best = scale_of(width_px, height_px, rising[-1], family)

    def is_enough(tier: Tier) -> bool:
        scale = scale_of(width_px, height_px, tier, family)
        return scale * height >= LEAST_TEXT_HEIGHT_PX - 1e-6 or scale == best

    assert is_enough(chosen)
    assert not any(is_enough(tier) for tier in rising[: rising.index(chosen)])


@settings(deadline=None)
@given(st.integers(20, 5_000), st.integers(20, 5_000), st.sampled_from(sorted(BUDGETS)))
def test_a_page_without_known_text_is_shown_as_large_as_any_tier_shows_it(
    width_px: int, height_px: int, family: str
) -> None:
    rising = tiers_of(family)
    chosen = choose_tier(None, width_px, height_px, rising, BUDGETS[family])
    best = scale_of(width_px, height_px, rising[-1], family)
    assert scale_of(width_px, height_px, chosen, family) == best
    smaller = rising[: rising.index(chosen)]
    assert all(scale_of(width_px, height_px, tier, family) < best for tier in smaller)


def test_a_small_page_takes_a_small_tier_whatever_is_on_it() -> None:
    for height in (None, 3.0, 50.0):
        assert choose_tier(height, 500, 700, tiers_of("qwen2.5-vl"), BUDGETS["qwen2.5-vl"]).name == "small"


def test_a_stricter_limit_takes_a_higher_tier() -> None:
    tiers = tiers_of("qwen2.5-vl")
    names = {
        choose_tier(20, 1_700, 2_200, tiers, BUDGETS["qwen2.5-vl"], least_height_px=limit).name
        for limit in (6, 9, 11, 14)
    }
    assert len(names) == 4
