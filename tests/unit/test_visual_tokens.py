"""Visual tokens against counts that a vLLM server billed, and the properties of the resize."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.errors import AspectRatioTooLarge
from pipeline.visual_tokens import (
    MODEL_FAMILIES,
    VisualTokenBudget,
    count,
    is_unchanged,
    model_family,
    page_strips,
    page_tokens,
    resized,
)


def budget_of(name: str, min_pixels: int, max_pixels: int) -> VisualTokenBudget:
    return VisualTokenBudget(family=model_family(name), min_pixels=min_pixels, max_pixels=max_pixels)


QWEN25 = budget_of("qwen2.5-vl", 200_704, 1_003_520)
QWEN3 = budget_of("qwen3-vl", 262_144, 1_310_720)
QWEN25_SMALL = budget_of("qwen2.5-vl", 3_136, 100_352)

BILLED_BY_QWEN25 = [
    # width, height, resized height, resized width, tokens: "5000×200" is billed as 196 high, 5,012 wide
    (560, 560, 560, 560, 400),
    (595, 842, 840, 588, 630),
    (800, 600, 588, 812, 609),
    (1240, 1754, 1176, 840, 1260),
    (1654, 2339, 1176, 840, 1260),
    (2480, 3508, 1176, 840, 1260),
    (994, 1010, 1008, 980, 1260),
    (1001, 1001, 980, 980, 1225),
    (1000, 1008, 980, 980, 1225),
    (300, 200, 392, 560, 280),
    (14, 14, 448, 448, 256),
    (42, 42, 448, 448, 256),
    (56, 56, 448, 448, 256),
    (70, 70, 448, 448, 256),
    (5000, 200, 196, 5012, 1253),
    (30, 5700, 6188, 56, 442),
    (6000, 31, 56, 6244, 446),
    (20, 4000, 6356, 56, 454),
]

BILLED_BY_QWEN3 = [
    (560, 560, 576, 576, 324),
    (595, 842, 832, 608, 494),
    (800, 600, 608, 800, 475),
    (1240, 1754, 1344, 960, 1260),
    (1654, 2339, 1344, 960, 1260),
    (2480, 3508, 1344, 960, 1260),
    (994, 1010, 1024, 992, 992),
    (1001, 1001, 992, 992, 961),
    (1000, 1008, 1024, 992, 992),
    (300, 200, 448, 640, 280),
    (14, 14, 512, 512, 256),
    (42, 42, 512, 512, 256),
    (56, 56, 512, 512, 256),
    (70, 70, 512, 512, 256),
    (5000, 200, 192, 4992, 936),
    (30, 5700, 7072, 64, 442),
    (6000, 31, 64, 7136, 446),
    (20, 4000, 7264, 64, 454),
]


@pytest.mark.parametrize(
    ("budget", "row"),
    [(QWEN25, row) for row in BILLED_BY_QWEN25] + [(QWEN3, row) for row in BILLED_BY_QWEN3],
    ids=lambda value: "x".join(map(str, value[:2])) if isinstance(value, tuple) else value.family.name,
)
def test_counts_what_the_server_billed(
    budget: VisualTokenBudget, row: tuple[int, int, int, int, int]
) -> None:
    width_px, height_px, resized_height_px, resized_width_px, tokens = row
    image = resized(width_px, height_px, budget)
    assert (image.height_px, image.width_px, image.token_count) == (
        resized_height_px,
        resized_width_px,
        tokens,
    )


def test_qwen2_vl_counts_like_qwen2_5_vl() -> None:
    budget = budget_of("qwen2-vl", 200_704, 1_003_520)
    assert [count(row[0], row[1], budget) for row in BILLED_BY_QWEN25] == [row[4] for row in BILLED_BY_QWEN25]


@pytest.mark.parametrize(
    ("width_px", "height_px", "tokens"),
    [
        (70, 70, 4),  # 2.5 cells a side round to 2, not 3
        (98, 126, 16),  # 3.5 and 4.5 cells both round to 4
        (1240, 1754, 117),
        (30, 5700, 155),  # more than the 128 tokens of the maximum: a side is never under one cell
        (20, 4000, 160),
        (6000, 31, 157),
    ],
)
def test_counts_what_the_server_billed_under_a_small_budget(
    width_px: int, height_px: int, tokens: int
) -> None:
    assert count(width_px, height_px, QWEN25_SMALL) == tokens


@pytest.mark.parametrize("size", [(20, 4001), (10, 2010), (4001, 20), (1, 201)])
@pytest.mark.parametrize("budget", [QWEN25, QWEN3], ids=["qwen2.5-vl", "qwen3-vl"])
def test_sides_of_more_than_200_to_1_are_refused(size: tuple[int, int], budget: VisualTokenBudget) -> None:
    with pytest.raises(AspectRatioTooLarge, match=f"{size[0]}x{size[1]}.*200"):
        resized(*size, budget)


@pytest.mark.parametrize(
    ("width_px", "height_px", "max_pixels", "tokens"),
    [
        (896, 896, 12_845_056, 1_024),
        (1120, 1568, 12_845_056, 2_240),
        (3000, 3000, 254_016, 324),
        (3000, 3000, 12_544, 16),
    ],
)
def test_published_anchors(width_px: int, height_px: int, max_pixels: int, tokens: int) -> None:
    assert count(width_px, height_px, budget_of("qwen2.5-vl", 3_136, max_pixels)) == tokens


def test_a_letter_page_is_resized_before_it_is_counted() -> None:
    image = resized(2550, 3300, budget_of("qwen2.5-vl", 3_136, 1_280 * 784))
    assert (image.width_px, image.height_px, image.token_count) == (868, 1120, 1240)


@pytest.mark.parametrize(
    ("name", "cell_px", "pixels_per_token"),
    [("qwen2-vl", 28, 784), ("qwen2.5-vl", 28, 784), ("qwen3-vl", 32, 1024)],
)
def test_cells_of_each_family(name: str, cell_px: int, pixels_per_token: int) -> None:
    family = model_family(name)
    assert (family.cell_px, family.pixels_per_token) == (cell_px, pixels_per_token)


def test_an_unknown_family_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'qwen9'.*qwen2\.5-vl"):
        model_family("qwen9")


@pytest.mark.parametrize(("min_pixels", "max_pixels"), [(0, 784), (-1, 784), (785, 784)])
def test_a_budget_that_cannot_be_met_is_refused(min_pixels: int, max_pixels: int) -> None:
    with pytest.raises(ValueError, match="min_pixels"):
        budget_of("qwen2.5-vl", min_pixels, max_pixels)


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (-3, 10)])
def test_an_image_without_pixels_has_no_count(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least one pixel"):
        resized(*size, QWEN25)
    with pytest.raises(ValueError, match="at least one pixel"):
        page_tokens(*size, QWEN25)


sides = st.integers(min_value=1, max_value=20_000)


@st.composite
def accepted_sizes(draw: st.DrawFn) -> tuple[int, int]:
    short_px = draw(sides)
    long_px = draw(st.integers(min_value=short_px, max_value=200 * short_px))
    return draw(st.permutations([short_px, long_px]).map(lambda pair: (pair[0], pair[1])))


@st.composite
def budgets(draw: st.DrawFn) -> VisualTokenBudget:
    family = draw(st.sampled_from(list(MODEL_FAMILIES.values())))
    min_pixels = draw(st.integers(min_value=1, max_value=3_000_000))
    max_pixels = draw(st.integers(min_value=min_pixels, max_value=16_777_216))
    return VisualTokenBudget(family=family, min_pixels=min_pixels, max_pixels=max_pixels)


@given(accepted_sizes(), budgets())
def test_sides_are_whole_cells_and_a_cell_is_a_token(
    size: tuple[int, int], budget: VisualTokenBudget
) -> None:
    image = resized(*size, budget)
    cell_px = budget.family.cell_px
    assert image.width_px % cell_px == image.height_px % cell_px == 0
    assert min(image.width_px, image.height_px) >= cell_px
    assert image.token_count * budget.family.pixels_per_token == image.area_px


@given(accepted_sizes(), budgets())
def test_turning_the_page_does_not_change_its_price(size: tuple[int, int], budget: VisualTokenBudget) -> None:
    upright, turned = resized(*size, budget), resized(size[1], size[0], budget)
    assert (upright.width_px, upright.height_px) == (turned.height_px, turned.width_px)


@given(accepted_sizes(), budgets())
@example((30, 5700), QWEN25_SMALL)
@example((30, 5700), budget_of("qwen2.5-vl", 3_136, 12_845_056))
@example((1, 200), budget_of("qwen2.5-vl", 200_704, 200_704))
def test_a_second_resize_changes_nothing_unless_the_first_left_the_budget(
    size: tuple[int, int], budget: VisualTokenBudget
) -> None:
    image = resized(*size, budget)
    within_budget = budget.min_pixels <= image.area_px <= budget.max_pixels
    sides_px = (image.width_px, image.height_px)
    accepted_again = max(sides_px) <= 200 * min(sides_px)
    if within_budget and accepted_again:
        assert is_unchanged(*sides_px, budget)
    if not accepted_again:
        assert not is_unchanged(*sides_px, budget)


def test_rounding_can_push_a_strip_over_the_ratio_that_the_model_accepts() -> None:
    budget = budget_of("qwen2.5-vl", 3_136, 12_845_056)
    strip = resized(30, 5700, budget)
    assert (strip.width_px, strip.height_px) == (28, 204 * 28)
    assert not is_unchanged(strip.width_px, strip.height_px, budget)


def test_a_result_over_the_maximum_would_be_resized_again() -> None:
    over = resized(30, 5700, budget_of("qwen2.5-vl", 200_704, 200_704))
    assert over.token_count == 442 > 200_704 // 784
    assert not is_unchanged(over.width_px, over.height_px, budget_of("qwen2.5-vl", 200_704, 200_704))


@given(accepted_sizes(), budgets())
def test_the_maximum_holds_where_it_allows_a_full_strip(
    size: tuple[int, int], budget: VisualTokenBudget
) -> None:
    """Shrinking keeps within a maximum of 200 tokens or more; enlarging overshoots by under a cell a side."""
    image = resized(*size, budget)
    cell_px = budget.family.cell_px
    enlarge = max(1.0, math.sqrt(budget.min_pixels / (size[0] * size[1])))
    overshoot_px = (size[0] * enlarge + cell_px) * (size[1] * enlarge + cell_px)
    if budget.max_pixels >= 200 * budget.family.pixels_per_token:
        assert image.area_px <= max(budget.max_pixels, overshoot_px)
    if image.area_px > budget.max_pixels:
        assert image.token_count <= 200 or image.area_px <= overshoot_px


@given(accepted_sizes(), st.lists(st.integers(200 * 784, 12_845_056), min_size=2, max_size=2))
def test_a_larger_maximum_never_costs_fewer_tokens(size: tuple[int, int], maxima: list[int]) -> None:
    smaller, larger = (count(*size, budget_of("qwen2.5-vl", 3_136, maximum)) for maximum in sorted(maxima))
    assert smaller <= larger


@given(accepted_sizes(), st.lists(st.integers(1, 1_003_520), min_size=2, max_size=2))
def test_a_larger_minimum_never_costs_fewer_tokens(size: tuple[int, int], minima: list[int]) -> None:
    smaller, larger = (
        count(*size, budget_of("qwen2.5-vl", minimum, 12_845_056)) for minimum in sorted(minima)
    )
    assert smaller <= larger


@given(sides, sides)
def test_strips_make_up_the_page_and_each_is_accepted(width_px: int, height_px: int) -> None:
    strips = page_strips(width_px, height_px)
    assert sum(width * height for width, height in strips) == width_px * height_px
    assert all(max(strip) <= 200 * min(strip) for strip in strips)
    if max(width_px, height_px) <= 200 * min(width_px, height_px):
        assert strips == ((width_px, height_px),)


def test_a_page_too_long_for_one_image_is_priced_by_strips() -> None:
    assert page_strips(20, 4001) == ((20, 2001), (20, 2000))
    assert page_tokens(20, 4001, QWEN25) == count(20, 2001, QWEN25) + count(20, 2000, QWEN25)
    assert page_tokens(1240, 1754, QWEN25) == 1260
