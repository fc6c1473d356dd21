"""How many visual tokens an image costs a Qwen-VL model. Pure arithmetic on pixels.

One *cell* of ``patch_px × merge_size`` pixels a side is one token. The server first resizes the image to
whole cells, so the count is that of the *resized* image. The rule is ``smart_resize`` of the models' own
image processor (``Qwen2VLImageProcessor`` in transformers, which Qwen3-VL uses too), operation for operation,
because its floating-point and half-to-even rounding decide the count at the edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.errors import AspectRatioTooLarge

MAX_ASPECT_RATIO = 200
"""The models' image processor refuses sides that differ by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """The geometry of a family of models, from ``preprocessor_config.json`` of its published checkpoints.

    The processor's own pixel bounds are those of an image for which nobody set others.
    """

    name: str
    patch_px: int
    merge_size: int
    processor_min_pixels: int
    processor_max_pixels: int

    @property
    def cell_px(self) -> int:
        """The side of the square that becomes one token."""
        return self.patch_px * self.merge_size

    @property
    def pixels_per_token(self) -> int:
        return self.cell_px**2


MODEL_FAMILIES = {
    family.name: family
    for family in (
        ModelFamily(
            name="qwen2-vl",
            patch_px=14,
            merge_size=2,
            processor_min_pixels=3_136,
            processor_max_pixels=12_845_056,
        ),
        ModelFamily(
            name="qwen2.5-vl",
            patch_px=14,
            merge_size=2,
            processor_min_pixels=3_136,
            processor_max_pixels=12_845_056,
        ),
        ModelFamily(
            name="qwen3-vl",
            patch_px=16,
            merge_size=2,
            processor_min_pixels=65_536,
            processor_max_pixels=16_777_216,
        ),
    )
}


def model_family(name: str) -> ModelFamily:
    """Raises ValueError, naming the families known, for any other name."""
    try:
        return MODEL_FAMILIES[name]
    except KeyError as error:
        known = ", ".join(MODEL_FAMILIES)
        raise ValueError(f"unknown model family {name!r}; use one of {known}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class VisualTokenBudget:
    """The pixels one image may take after the resize, for models of one family.

    ``max_pixels`` is what the processor aims at, not a bound it keeps: see ``resized``.
    """

    family: ModelFamily
    min_pixels: int
    max_pixels: int

    def __post_init__(self) -> None:
        if not 1 <= self.min_pixels <= self.max_pixels:
            raise ValueError(
                f"min_pixels ({self.min_pixels}) must lie between 1 and max_pixels ({self.max_pixels})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizedImage:
    """The size the model sees, in whole cells, and what it costs."""

    width_px: int
    height_px: int
    token_count: int

    @property
    def area_px(self) -> int:
        return self.width_px * self.height_px


def resized(width_px: int, height_px: int, budget: VisualTokenBudget) -> ResizedImage:
    """The image as the model's processor resizes it.

    The area lies within the budget except where whole cells do not allow it. A side never falls under one
    cell, so a long strip can exceed a ``max_pixels`` of under 200 tokens. Enlarging rounds both sides up, so
    the result can exceed a ``max_pixels`` close to ``min_pixels``; shrinking rounds both down, so it can fall
    under such a ``min_pixels``. Raises AspectRatioTooLarge over 200 to 1.
    """
    _require_accepted_ratio(width_px, height_px)
    cell_px = budget.family.cell_px
    columns, rows = round(width_px / cell_px), round(height_px / cell_px)
    area_px = columns * rows * budget.family.pixels_per_token
    if area_px > budget.max_pixels:
        shrink = math.sqrt((height_px * width_px) / budget.max_pixels)
        columns = max(1, math.floor(width_px / shrink / cell_px))
        rows = max(1, math.floor(height_px / shrink / cell_px))
    elif area_px < budget.min_pixels:
        enlarge = math.sqrt(budget.min_pixels / (height_px * width_px))
        columns = math.ceil(width_px * enlarge / cell_px)
        rows = math.ceil(height_px * enlarge / cell_px)
    return ResizedImage(width_px=columns * cell_px, height_px=rows * cell_px, token_count=columns * rows)


def count(width_px: int, height_px: int, budget: VisualTokenBudget) -> int:
    """Visual tokens of an image, without the two that open and close it in the prompt."""
    return resized(width_px, height_px, budget).token_count


def is_unchanged(width_px: int, height_px: int, budget: VisualTokenBudget) -> bool:
    """Whether the processor would leave an image of this size as it is, so the count made here is billed.

    A resized image usually passes; not so when its area fell outside the budget, or when rounding to whole
    cells pushed its sides over 200 to 1 (30 × 5,700 becomes 1 × 204 cells of 28), which is refused.
    """
    try:
        again = resized(width_px, height_px, budget)
    except AspectRatioTooLarge:
        return False
    return (again.width_px, again.height_px) == (width_px, height_px)


def page_strips(width_px: int, height_px: int) -> tuple[tuple[int, int], ...]:
    """The fewest pieces (width, height) a page must be cut into, across its long side, for the model.

    One piece, the page itself, unless its sides differ by more than 200 to 1. Lengths differ by a pixel.
    """
    _require_positive(width_px, height_px)
    long_px, short_px = max(width_px, height_px), min(width_px, height_px)
    strips = -(-long_px // (MAX_ASPECT_RATIO * short_px))
    shorter_px, one_longer = divmod(long_px, strips)
    lengths_px = [shorter_px + 1] * one_longer + [shorter_px] * (strips - one_longer)
    if width_px >= height_px:
        return tuple((length_px, height_px) for length_px in lengths_px)
    return tuple((width_px, length_px) for length_px in lengths_px)


def page_tokens(width_px: int, height_px: int, budget: VisualTokenBudget) -> int:
    """What sending a page costs. Each strip of a page that must be cut has a budget of its own."""
    return sum(count(width, height, budget) for width, height in page_strips(width_px, height_px))


def _require_positive(width_px: int, height_px: int) -> None:
    if width_px < 1 or height_px < 1:
        raise ValueError(f"an image has at least one pixel a side, not {width_px}x{height_px}")


def _require_accepted_ratio(width_px: int, height_px: int) -> None:
    _require_positive(width_px, height_px)
    if max(width_px, height_px) > MAX_ASPECT_RATIO * min(width_px, height_px):
        raise AspectRatioTooLarge(
            f"{width_px}x{height_px}: one side is more than {MAX_ASPECT_RATIO} times the other, "
            "which Qwen-VL models refuse; cut the image into shorter pieces"
        )
