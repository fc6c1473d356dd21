"""A page as the VLM gets it: a PNG of whole cells within a tier, which the server's own resize leaves alone, so
that the tokens predicted are the tokens billed.

The page keeps its shape: it is scaled evenly and the canvas is filled up with white, by less than a cell a side
unless the server's least number of pixels asks for more. Squeezing the page to whole cells, as the server would,
resamples every page and bends the narrow ones (a strip of 42 px becomes 56 px wide); filling up leaves a page
that fits the tier as it is, pixel for pixel.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Final

from PIL import Image, ImageChops

from models.errors import PlanImpossible
from models.transcription import FittedImage
from pipeline.visual_tokens import MAX_ASPECT_RATIO, VisualTokenBudget, page_strips

OVERLAP_SHORT_SIDES: Final = 2
"""Strips of a page longer than 200 to 1 reach beyond each cut by so many short sides, so that no letter and no
line is only seen in halves: whatever is at most four short sides long is whole on one of the two."""

COLOUR_SPREAD: Final = 30
"""A pixel is coloured when its channels lie further apart. JPEG leaves 20 to 30 around black print."""

LEAST_COLOURED_PX: Final = 100
"""A page with fewer coloured pixels is sent grey, for a third of the bytes. One coloured letter has more."""

PNG_OPTIONS: Final = {"compress_level": 1, "compress_type": zlib.Z_RLE}
"""Grey pages of 2,240 tokens: 26 ms and 339 KiB, against 76 ms and 344 KiB at Pillow's own level 6. In colour
62 ms and 943 KiB against 210 ms and 824 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One of the few sizes that pages are sent in. ``max_pixels`` is ``visual_tokens`` in the family's cells."""

    name: str
    visual_tokens: int
    max_pixels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StripFit:
    """A page, or a strip of one, and where it goes: its box in page pixels is scaled to the content's size, which
    lies in the top left corner of a white canvas of whole cells."""

    left_px: int
    top_px: int
    width_px: int
    height_px: int
    scale: float
    canvas_width_px: int
    canvas_height_px: int
    visual_tokens: int

    @property
    def box(self) -> tuple[int, int, int, int]:
        return self.left_px, self.top_px, self.left_px + self.width_px, self.top_px + self.height_px

    @property
    def content_size_px(self) -> tuple[int, int]:
        """Width and height, to the nearest pixel and at least one."""
        width_px, height_px = round(self.width_px * self.scale), round(self.height_px * self.scale)
        return min(max(width_px, 1), self.canvas_width_px), min(max(height_px, 1), self.canvas_height_px)


def fit_page(image: Image.Image, budget: VisualTokenBudget, tier: Tier) -> tuple[FittedImage, ...]:
    """``image`` (mode "L" or "RGB") as it is sent: one image, or the strips of a page longer than 200 to 1, which
    overlap. Raises what ``page_fit`` raises."""
    strips = page_fit(image.width, image.height, budget, tier)
    return tuple(
        FittedImage(
            encoded=_png(_drawn(image, strip)),
            width_px=strip.canvas_width_px,
            height_px=strip.canvas_height_px,
            visual_tokens=strip.visual_tokens,
            tier=tier.name,
        )
        for strip in strips
    )


def page_fit(width_px: int, height_px: int, budget: VisualTokenBudget, tier: Tier) -> tuple[StripFit, ...]:
    """What ``fit_page`` will make of a page of this size, without its pixels.

    No strip takes more than the tier's tokens, or fewer pixels than the budget's ``min_pixels``. A page is never
    enlarged, except as far as that minimum would have the server enlarge it. Raises PlanImpossible, whatever the
    page, for a tier in which the server leaves no image alone.
    """
    least, most = _cell_bounds(budget, tier)
    strips = (
        _strip_fit(box, budget.family.cell_px, least, most) for box in _strip_boxes(width_px, height_px)
    )
    return tuple(strips)


def _cell_bounds(budget: VisualTokenBudget, tier: Tier) -> tuple[int, int]:
    """Least and most cells of an image in this tier that lies within the server's bounds."""
    cell_area_px = budget.family.pixels_per_token
    least = -(-budget.min_pixels // cell_area_px)
    most = min(tier.visual_tokens, tier.max_pixels // cell_area_px, budget.max_pixels // cell_area_px)
    if not any(_row_bounds(columns, least, most) for columns in range(1, most + 1)):
        raise PlanImpossible(
            f"tier {tier.name} leaves {most} tokens an image and the server's min_pixels of {budget.min_pixels} "
            f"asks for {least}: no image of whole cells lies between; lower min_pixels or raise the tier"
        )
    return least, most


def _row_bounds(columns: int, least: int, most: int) -> range:
    """The rows that a canvas of ``columns`` may have: ``least`` to ``most`` cells, sides within 200 to 1."""
    fewest = max(-(-least // columns), -(-columns // MAX_ASPECT_RATIO))
    return range(fewest, min(most // columns, columns * MAX_ASPECT_RATIO) + 1)


def _strip_boxes(width_px: int, height_px: int) -> Iterator[tuple[int, int, int, int]]:
    """Left, top, width and height of the fewest strips, each reaching a little into its neighbours."""
    length_px, short_px = max(width_px, height_px), min(width_px, height_px)
    overlap_px = OVERLAP_SHORT_SIDES * short_px
    cut_px = 0
    for piece in page_strips(width_px, height_px):
        start_px = max(0, cut_px - overlap_px)
        cut_px += max(piece)
        reach_px = min(length_px, cut_px + overlap_px) - start_px
        is_wide = width_px >= height_px
        yield (start_px, 0, reach_px, short_px) if is_wide else (0, start_px, short_px, reach_px)


def _strip_fit(box: tuple[int, int, int, int], cell_px: int, least: int, most: int) -> StripFit:
    left_px, top_px, width_px, height_px = box
    scale, columns, rows = _best_canvas(width_px, height_px, cell_px, least, most)
    return StripFit(
        left_px=left_px,
        top_px=top_px,
        width_px=width_px,
        height_px=height_px,
        scale=scale,
        canvas_width_px=columns * cell_px,
        canvas_height_px=rows * cell_px,
        visual_tokens=columns * rows,
    )


@lru_cache(maxsize=256)
def _best_canvas(
    width_px: int, height_px: int, cell_px: int, least: int, most: int
) -> tuple[float, int, int]:
    """Scale, columns and rows of the canvas that shows the strip largest, but no larger than wanted, and of these
    the cheapest. Some milliseconds; the pages of a document, and the strips of a page, are mostly of one size."""
    wanted = _wanted_scale(width_px, height_px, cell_px, least)

    def merit(canvas: tuple[int, int]) -> tuple[float, int]:
        columns, rows = canvas
        return min(wanted, columns * cell_px / width_px, rows * cell_px / height_px), -columns * rows

    columns, rows = max(_canvases(width_px, height_px, cell_px, wanted, least, most), key=merit)
    return merit((columns, rows))[0], columns, rows


def _wanted_scale(width_px: int, height_px: int, cell_px: int, least: int) -> float:
    """1, or what fills the least number of cells."""
    if -(-width_px // cell_px) * -(-height_px // cell_px) >= least:
        return 1.0
    return math.sqrt(least * cell_px**2 / (width_px * height_px))


def _canvases(
    width_px: int, height_px: int, cell_px: int, wanted: float, least: int, most: int
) -> Iterator[tuple[int, int]]:
    """For each number of columns, the fewest rows that do not make the strip smaller, as far as there are."""
    enough_rows = math.ceil(height_px * wanted / cell_px)
    for columns in range(1, most + 1):
        allowed = _row_bounds(columns, least, most)
        if allowed:
            rows = min(-(-columns * height_px // width_px), enough_rows)
            yield columns, min(max(rows, allowed[0]), allowed[-1])


def _drawn(image: Image.Image, strip: StripFit) -> Image.Image:
    """Pages with hardly a coloured pixel come out grey."""
    content = image.resize(strip.content_size_px, Image.Resampling.LANCZOS, box=strip.box)
    if content.mode != "L" and not _has_colour(content):
        content = content.convert("L")
    canvas_size = (strip.canvas_width_px, strip.canvas_height_px)
    if content.size == canvas_size:
        return content
    canvas = Image.new(content.mode, canvas_size, "white")
    canvas.paste(content, (0, 0))
    return canvas


def _has_colour(image: Image.Image) -> bool:
    red, green, blue = image.split()
    lightest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    darkest = ImageChops.darker(ImageChops.darker(red, green), blue)
    spread = ImageChops.subtract(lightest, darkest)
    return sum(spread.histogram()[COLOUR_SPREAD + 1 :]) >= LEAST_COLOURED_PX


def _png(image: Image.Image) -> bytes:
    encoded = BytesIO()
    image.save(encoded, format="PNG", **PNG_OPTIONS)
    return encoded.getvalue()
