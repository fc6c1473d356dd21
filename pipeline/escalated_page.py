"""A page that was read on the CPU, taken up again for the VLM from its JSON and the document's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from PIL import Image

from models.document import Document
from models.errors import PageFailed
from models.geometry import Box
from models.page import ReadBy, RegionKind
from models.text import Line, Word
from pipeline.answers.judge import PageEvidence
from pipeline.fit import StripFit, Tier, page_fit
from pipeline.legibility import choose_tier
from pipeline.margins import trimmed
from pipeline.planning.serving_plan import ServingPlan
from pipeline.ports import PdfEngine
from pipeline.rasterise import rasterise_pages
from pipeline.settings import RasteriseSettings
from pipeline.signals.names import SignalName
from pipeline.upright import QUARTER_TURNS, turned, turned_size
from pipeline.visual_tokens import VisualTokenBudget

Json = Mapping[str, Any]

LEAST_ANSWER_TOKENS: Final = 1_536
ANSWER_TOKENS_PER_CHARACTER: Final = 0.75
"""Of what the CPU read. English has four characters a token; HTML tables and missed text take the rest."""

VISUAL_ELEMENTS = frozenset({RegionKind.TABLE, RegionKind.STAMP, RegionKind.HANDWRITING, RegionKind.FIGURE})
"""Where OCR misses words, so that others than its own are no invention."""


def page_evidence(page: Json) -> PageEvidence:
    """What the CPU saw, for judging an answer. The ink, which is measured on the page as it is sent, and the tokens of
    a call come later.

    PaddleOCR is sure of nearly all that it reads, so its words are believed as far as Tesseract read the same; words
    where a hand wrote are believed of nobody.
    """
    is_paddle = page["read_by"] == ReadBy.PADDLEOCR
    agreement = signal_of(page, SignalName.ENGINE_AGREEMENT) if is_paddle else None
    written = [Box(*region["box"]) for region in page["regions"] if region["kind"] == RegionKind.HANDWRITING]
    return PageEvidence(
        lines=tuple(_line(line, written, 1.0 if agreement is None else agreement) for line in page["lines"]),
        ink_share=None,
        language=None,
        max_tokens=0,
        has_visual_elements=any(region["kind"] in VISUAL_ELEMENTS for region in page["regions"]),
    )


def _line(line: Json, written: Sequence[Box], belief: float) -> Line:
    words = tuple(_word(word, written, belief) for word in line["words"])
    return Line(text=line["text"], box=Box(*line["box"]), confidence=line["confidence"], words=words)


def _word(word: Json, written: Sequence[Box], belief: float) -> Word:
    box, confidence = Box(*word["box"]), word["confidence"]
    if any(box.intersection(area) > 0 for area in written):
        confidence = 0.0
    elif confidence is not None:
        confidence = confidence * belief
    return Word(text=word["text"], box=box, confidence=confidence)


def signal_of(page: Json, name: str) -> float | None:
    """What was measured on the page under this name; None where it was not."""
    values: Mapping[str, float | None] = {one["name"]: one["measured"] for one in page["signals"]}
    return values.get(name)


def tier_of(page: Json, plan: ServingPlan) -> Tier:
    """The one that the page was counted in when it was read."""
    return tier_for(signal_of(page, SignalName.TEXT_HEIGHT_PX), *_sent_size(page), plan)


def tier_for(text_height_px: float | None, width_px: int, height_px: int, plan: ServingPlan) -> Tier:
    """The smallest of the plan in which the small print of a page stays legible; sizes are those of its content,
    upright."""
    budget = VisualTokenBudget(family=plan.family, min_pixels=plan.min_pixels, max_pixels=plan.max_pixels)
    return choose_tier(text_height_px, width_px, height_px, plan.tiers, budget)


def strips_of(page: Json, plan: ServingPlan, tier: Tier | None = None) -> tuple[StripFit, ...]:
    """The images that the page is sent as, without its pixels: in the tier that it was counted in, unless another is
    given."""
    tier = tier or tier_of(page, plan)
    return page_fit(*_sent_size(page), plan.budget_of(tier), tier)


def visual_tokens_of(page: Json, plan: ServingPlan, tier: Tier) -> int:
    """Of all its images."""
    return sum(strip.visual_tokens for strip in strips_of(page, plan, tier))


def _sent_size(page: Json) -> tuple[int, int]:
    """Width and height of ``sent_part`` of the page as it was read. An earlier version knew of no content."""
    box = page.get("content_box")
    if box is not None:
        left, top, right, bottom = box
        return right - left, bottom - top
    return turned_size(
        page["width_px"], page["height_px"], rotation_deg=page["rotation_deg"], skew_deg=page["skew_deg"]
    )


def answer_room_tokens(page: Json, plan: ServingPlan) -> int:
    """Room for the answer to a first call: a loop is paid up to here, so it is no larger than the page needs."""
    expected = int(ANSWER_TOKENS_PER_CHARACTER * len(page["text"]))
    return min(max(LEAST_ANSWER_TOKENS, expected), plan.max_output_tokens)


def draw_upright(
    path: Path,
    document: Document,
    page: Json,
    *,
    pdf: PdfEngine,
    settings: RasteriseSettings,
    password: str | None,
) -> Image.Image:
    """The page turned as it was for reading, to the pixel as large as it was then. Raises ``PageFailed``."""
    number = page["page_number"]
    drawn = rasterise_pages(
        path, document.media_type, (number,), pdf=pdf, settings=settings, password=password
    )
    _, raster = next(iter(drawn))
    if isinstance(raster, PageFailed):
        raise raster
    delivered_size = (page["width_px"], page["height_px"])
    if raster.image.size != delivered_size:
        raster = replace(raster, image=raster.image.resize(delivered_size, Image.Resampling.LANCZOS))
    return turned(raster, rotation_deg=page["rotation_deg"], skew_deg=page["skew_deg"]).raster.image


def sent_part(upright: Image.Image, page: Json, *, further_turn_deg: int = 0) -> Image.Image:
    """What of the page drawn upright is sent: its content, turned by a further clockwise quarter turn. The content was
    measured when the page was read, and is not measured again."""
    box = page.get("content_box")
    part = upright if box is None else trimmed(upright, Box(*box))
    return part.transpose(QUARTER_TURNS[further_turn_deg]) if further_turn_deg else part
