"""The tokens predicted from an image's size are the tokens that vLLM bills, to the token, through the real client."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from PIL import Image

from models.errors import AspectRatioTooLarge, VlmRequestRefused
from models.transcription import FittedImage
from pipeline.fit import fit_page
from pipeline.planning.plan_wishes import IMAGE_MARK_TOKENS
from pipeline.visual_tokens import count, is_unchanged, model_family
from tests.vllm.calls import prompt_tokens, request_with, sized_image, transcribed
from tests.vllm.server import PROFILES, VllmServer, plan_for

BilledTokens = Callable[..., int]

UNCHANGED = {
    "qwen2.5-vl": ((28, 112), (56, 56), (308, 392), (896, 896), (1120, 1568), (1568, 1120), (28, 5600)),
    "qwen3-vl": ((256, 256), (64, 1024), (320, 448), (896, 896), (1280, 1792), (1792, 1280), (32, 6400)),
}
"""Whole cells within the budget of ``plan_for``: the server's own resize leaves these as they are. Among them the
smallest and the largest that the budget allows, and the longest strips."""

CHANGED = (
    (1, 1),
    (14, 14),
    (42, 42),
    (70, 70),
    (98, 126),
    (300, 200),
    (595, 842),
    (800, 600),
    (994, 1010),
    (1001, 1001),
    (1240, 1754),
    (2480, 3508),
    (5000, 200),
    (30, 5700),
    (6000, 31),
    (20, 4000),
)
"""Enlarged, shrunk or rounded by the server: tiny images, whole pages, halves of cells (which Python rounds to even)
and strips up to the longest that the model takes."""

PAGES = ((1654, 2339), (2339, 1654), (2550, 3300), (827, 1169), (40, 30), (200, 9000), (50, 12_000))
"""Pages as they are rasterised; the last is longer than 200 to 1 and goes out in strips."""


@pytest.fixture(scope="session")
def billed_tokens(server: VllmServer) -> BilledTokens:
    """What images cost, without the marks around each and without the text, whose wording depends on how many
    they are."""
    text_tokens = cache(lambda image_count: prompt_tokens(server, page_count=image_count))

    def billed(*images: FittedImage) -> int:
        marks = IMAGE_MARK_TOKENS * len(images)
        return prompt_tokens(server, *images) - text_tokens(len(images)) - marks

    return billed


def written(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


@pytest.mark.parametrize("name", PROFILES)
def test_the_table_has_what_it_says(name: str) -> None:
    plan = plan_for(name)
    budget = plan.budget_of(plan.tiers[-1])
    assert plan.family == model_family(name)
    assert all(is_unchanged(*size, budget) for size in UNCHANGED[name])
    assert not any(is_unchanged(*size, budget) for size in CHANGED)


@pytest.mark.parametrize("size", CHANGED, ids=written)
def test_an_image_that_the_server_resizes_costs_what_is_predicted(
    server: VllmServer, billed_tokens: BilledTokens, size: tuple[int, int]
) -> None:
    assert billed_tokens(sized_image(*size, server)) == count(*size, server.budget)


@pytest.mark.parametrize("row", range(len(UNCHANGED["qwen3-vl"])))
def test_an_image_of_whole_cells_costs_its_cells(
    server: VllmServer, billed_tokens: BilledTokens, family: str, row: int
) -> None:
    width_px, height_px = UNCHANGED[family][row]
    cells = width_px * height_px // server.plan.family.pixels_per_token
    assert billed_tokens(sized_image(width_px, height_px, server)) == cells


@pytest.mark.parametrize("size", PAGES, ids=written)
def test_a_page_costs_in_every_tier_what_its_fit_says(
    server: VllmServer, billed_tokens: BilledTokens, size: tuple[int, int]
) -> None:
    page = Image.new("L", size, 255)
    for tier in server.plan.tiers:
        fitted = fit_page(page, server.plan.budget_of(tier), tier)
        assert all(is_unchanged(image.width_px, image.height_px, server.budget) for image in fitted)
        assert billed_tokens(*fitted) == sum(image.visual_tokens for image in fitted)


def test_two_pages_in_one_prompt_cost_both(server: VllmServer, billed_tokens: BilledTokens) -> None:
    pages = (sized_image(595, 842, server), sized_image(1120, 1568, server))
    assert billed_tokens(*pages) == sum(page.visual_tokens for page in pages)


@pytest.mark.parametrize("size", [(20, 4001), (4001, 20), (10, 2010)], ids=written)
def test_an_image_longer_than_200_to_1_is_refused_here_and_there(
    server: VllmServer, size: tuple[int, int]
) -> None:
    with pytest.raises(AspectRatioTooLarge):
        count(*size, server.budget)
    with pytest.raises(VlmRequestRefused, match="HTTP 400"):
        transcribed(server, request_with(sized_image(*size, server)))
