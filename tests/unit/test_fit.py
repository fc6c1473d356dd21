"""The fit: for every size, whole cells that the server leaves alone, within the tier, the page's shape kept."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from models.errors import PlanImpossible
from models.transcription import FittedImage
from pipeline.fit import StripFit, Tier, fit_page, page_fit
from pipeline.visual_tokens import VisualTokenBudget, count, is_unchanged, model_family, page_strips

LARGEST_TOKENS = 2_240


def budget_of(family: str, *, min_pixels: int = 200_704) -> VisualTokenBudget:
    geometry = model_family(family)
    return VisualTokenBudget(
        family=geometry, min_pixels=min_pixels, max_pixels=LARGEST_TOKENS * geometry.pixels_per_token
    )


def tier_of(visual_tokens: int, budget: VisualTokenBudget) -> Tier:
    return Tier(
        name=str(visual_tokens),
        visual_tokens=visual_tokens,
        max_pixels=visual_tokens * budget.family.pixels_per_token,
    )


def cells(strip: StripFit, cell_px: int) -> tuple[int, int]:
    return strip.canvas_width_px // cell_px, strip.canvas_height_px // cell_px


def opened(image: FittedImage) -> Image.Image:
    page = Image.open(BytesIO(image.encoded))
    page.load()
    return page


BUDGETS = st.builds(
    budget_of,
    st.sampled_from(("qwen2.5-vl", "qwen3-vl")),
    min_pixels=st.sampled_from((3_136, 65_536, 200_704)),
)
TOKENS = st.sampled_from((320, 560, 1_120, LARGEST_TOKENS))
SIDES = st.integers(1, 6_000)


@settings(deadline=None)
@given(SIDES, SIDES, BUDGETS, TOKENS)
@example(1, 1, budget_of("qwen2.5-vl"), 560)
@example(6_000, 1, budget_of("qwen2.5-vl"), 560)
@example(1, 6_000, budget_of("qwen3-vl"), LARGEST_TOKENS)
@example(30, 5_700, budget_of("qwen2.5-vl"), LARGEST_TOKENS)
@example(28, 5_600, budget_of("qwen2.5-vl"), 320)
@example(1_700, 2_200, budget_of("qwen2.5-vl"), LARGEST_TOKENS)
@example(1_120, 1_568, budget_of("qwen2.5-vl"), LARGEST_TOKENS)
def test_every_size_is_billed_as_predicted_and_within_its_tier(
    width_px: int, height_px: int, budget: VisualTokenBudget, tokens: int
) -> None:
    cell_px = budget.family.cell_px
    for strip in page_fit(width_px, height_px, budget, tier_of(tokens, budget)):
        width, height = strip.canvas_width_px, strip.canvas_height_px
        assert width % cell_px == height % cell_px == 0
        assert is_unchanged(width, height, budget)
        assert strip.visual_tokens == width * height // cell_px**2 == count(width, height, budget)
        assert strip.visual_tokens <= tokens


@settings(deadline=None)
@given(SIDES, SIDES, BUDGETS, TOKENS)
def test_the_page_keeps_its_shape_to_the_pixel(
    width_px: int, height_px: int, budget: VisualTokenBudget, tokens: int
) -> None:
    for strip in page_fit(width_px, height_px, budget, tier_of(tokens, budget)):
        width, height = strip.content_size_px
        assert 1 <= width <= strip.canvas_width_px
        assert 1 <= height <= strip.canvas_height_px
        assert width == 1 or abs(width - strip.width_px * strip.scale) <= 0.501
        assert height == 1 or abs(height - strip.height_px * strip.scale) <= 0.501


@settings(deadline=None)
@given(SIDES, SIDES, BUDGETS, TOKENS)
def test_nothing_is_enlarged_beyond_the_least_number_of_cells(
    width_px: int, height_px: int, budget: VisualTokenBudget, tokens: int
) -> None:
    cell_px = budget.family.cell_px
    least = -(-budget.min_pixels // cell_px**2)
    for strip in page_fit(width_px, height_px, budget, tier_of(tokens, budget)):
        if -(-strip.width_px // cell_px) * -(-strip.height_px // cell_px) >= least:
            assert strip.scale <= 1
        else:
            enlarged_px = strip.scale**2 * strip.width_px * strip.height_px
            assert enlarged_px <= least * cell_px**2 * 1.000_001


@settings(deadline=None)
@given(st.integers(100, 6_000), st.integers(100, 6_000), st.sampled_from(("qwen2.5-vl", "qwen3-vl")), TOKENS)
def test_less_than_a_cell_a_side_is_filled_up(
    width_px: int, height_px: int, family: str, tokens: int
) -> None:
    budget = budget_of(family, min_pixels=1)
    (strip,) = page_fit(width_px, height_px, budget, tier_of(tokens, budget))
    width, height = strip.content_size_px
    assert strip.canvas_width_px - width < budget.family.cell_px + 1
    assert strip.canvas_height_px - height < budget.family.cell_px + 1


@settings(deadline=None)
@given(
    st.integers(1, 900),
    st.integers(1, 900),
    st.sampled_from((3_136, 12_544)),
    st.integers(30, 64),
)
def test_no_other_canvas_shows_the_page_larger_or_as_large_for_less(
    width_px: int, height_px: int, min_pixels: int, tokens: int
) -> None:
    budget = budget_of("qwen2.5-vl", min_pixels=min_pixels)
    if max(width_px, height_px) > 200 * min(width_px, height_px):
        return
    (strip,) = page_fit(width_px, height_px, budget, tier_of(tokens, budget))
    allowed = [
        (columns, rows)
        for columns in range(1, tokens + 1)
        for rows in range(1, tokens // columns + 1)
        if is_unchanged(28 * columns, 28 * rows, budget)
    ]
    assert cells(strip, 28) in allowed
    for columns, rows in allowed:
        scale = min(28 * columns / width_px, 28 * rows / height_px)
        if columns * rows < strip.visual_tokens:
            assert scale < strip.scale
        assert min(scale, max(1.0, strip.scale)) <= strip.scale + 1e-9


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(8_001, 30_000), st.booleans())
@example(1, 201, False)
@example(30, 6_001, True)
def test_strips_cover_a_page_of_over_200_to_1_and_overlap_by_four_short_sides(
    short_px: int, long_px: int, is_wide: bool
) -> None:
    size = (long_px, short_px) if is_wide else (short_px, long_px)
    budget = budget_of("qwen2.5-vl")
    strips = page_fit(*size, budget, tier_of(560, budget))
    assert len(strips) == len(page_strips(*size))
    along = [
        (s.left_px, s.left_px + s.width_px) if is_wide else (s.top_px, s.top_px + s.height_px) for s in strips
    ]
    assert along[0][0] == 0
    assert along[-1][1] == long_px
    assert all(one[1] - other[0] == 4 * short_px for one, other in pairwise(along))
    across = {s.height_px if is_wide else s.width_px for s in strips}
    assert across == {short_px}


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl"])
def test_a_tier_below_the_servers_minimum_is_refused_whatever_the_page(family: str) -> None:
    budget = budget_of(family, min_pixels=300 * model_family(family).pixels_per_token)
    for size in ((1, 1), (1_700, 2_200), (6_000, 30)):
        with pytest.raises(PlanImpossible, match=r"299 tokens.*asks for 300"):
            page_fit(*size, budget, tier_of(299, budget))


def test_a_tier_that_holds_no_canvas_of_200_to_1_is_refused() -> None:
    budget = budget_of("qwen2.5-vl", min_pixels=997 * 784)
    with pytest.raises(PlanImpossible):
        page_fit(1_000, 1_000, budget, tier_of(997, budget))
    assert page_fit(1_000, 1_000, budget, tier_of(999, budget))


def noisy_page(width_px: int, height_px: int) -> Image.Image:
    return Image.effect_noise((width_px, height_px), 90)


@pytest.mark.parametrize("size", [(754, 1_000), (896, 896), (1_119, 1_567), (6_000, 31)])
def test_a_page_that_fits_is_sent_pixel_for_pixel_on_white(size: tuple[int, int]) -> None:
    budget = budget_of("qwen2.5-vl")
    page = noisy_page(*size)
    (fitted,) = fit_page(page, budget, tier_of(LARGEST_TOKENS, budget))
    sent = opened(fitted)
    assert sent.size == (fitted.width_px, fitted.height_px)
    assert sent.crop((0, 0, *size)).tobytes() == page.tobytes()
    sent.paste(255, (0, 0, *size))
    assert sent.getextrema() == (255, 255)


def test_what_is_sent_is_what_was_predicted() -> None:
    budget = budget_of("qwen3-vl")
    tier = tier_of(560, budget)
    for size in ((1, 1), (1_700, 2_200), (40, 9_000), (3, 900), (900, 3)):
        predicted = page_fit(*size, budget, tier)
        sent = fit_page(noisy_page(*size), budget, tier)
        assert [(one.width_px, one.height_px, one.visual_tokens) for one in sent] == [
            (one.canvas_width_px, one.canvas_height_px, one.visual_tokens) for one in predicted
        ]
        assert [opened(one).size for one in sent] == [(one.width_px, one.height_px) for one in sent]
        assert {one.tier for one in sent} == {"560"}


def test_a_page_in_grey_is_sent_grey_and_one_with_a_stamp_in_colour() -> None:
    budget = budget_of("qwen2.5-vl")
    tier = tier_of(560, budget)
    page = noisy_page(1_240, 1_754).convert("RGB")
    (grey,) = fit_page(page, budget, tier)
    ImageDraw.Draw(page).ellipse((900, 1_500, 1_000, 1_600), outline=(190, 60, 60), width=8)
    (coloured,) = fit_page(page, budget, tier)
    assert opened(grey).mode == "L"
    assert opened(coloured).mode == "RGB"


def test_the_fringes_of_a_grey_jpeg_are_no_colour() -> None:
    budget = budget_of("qwen2.5-vl")
    page = Image.new("RGB", (1_000, 1_000), "white")
    ImageDraw.Draw(page).rectangle((100, 100, 900, 900), fill=(100, 110, 125))
    (fitted,) = fit_page(page, budget, tier_of(LARGEST_TOKENS, budget))
    assert opened(fitted).mode == "L"
