"""What is taken from a page's JSON when it is taken up again for the VLM."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image

from pipeline.escalated_page import page_evidence, strips_of, tier_of
from pipeline.fit import fit_page
from pipeline.planning.configured import load_plan
from pipeline.ports import PageRaster
from pipeline.settings import VlmSettings
from pipeline.upright import turned

PLAN = load_plan(VlmSettings())


def page(**changes: Any) -> dict[str, Any]:
    word = {"text": "Paragraph", "box": [100.0, 100.0, 300.0, 130.0], "confidence": 0.96}
    line = {"text": "Paragraph", "box": [100.0, 100.0, 300.0, 130.0], "confidence": 0.96, "words": [word]}
    values: dict[str, Any] = {
        "page_number": 1,
        "read_by": "tesseract",
        "width_px": 1654,
        "height_px": 2339,
        "rotation_deg": 0,
        "skew_deg": 0.0,
        "lines": [line],
        "regions": [],
        "signals": [{"name": "text_height_px", "measured": None}],
    }
    return values | changes


def confidence(of: dict[str, Any]) -> float | None:
    (line,) = page_evidence(of).lines
    (word,) = line.words
    return word.confidence


def test_words_are_evidence_as_they_were_read() -> None:
    evidence = page_evidence(page())
    assert confidence(page()) == 0.96
    assert evidence.ink_share is None
    assert not evidence.has_visual_elements


def test_paddle_s_words_are_believed_as_far_as_the_first_engine_read_the_same() -> None:
    agreement = {"name": "engine_agreement", "measured": 0.5}
    assert confidence(page(read_by="paddleocr", signals=[agreement])) == pytest.approx(0.48)
    assert confidence(page(read_by="paddleocr")) == 0.96
    assert confidence(page(read_by="tesseract", signals=[agreement])) == 0.96


def test_words_where_a_hand_wrote_are_believed_of_nobody() -> None:
    written = {"kind": "handwriting", "box": [250.0, 90.0, 400.0, 140.0], "confidence": 0.9}
    elsewhere = {**written, "box": [250.0, 600.0, 400.0, 640.0]}
    assert confidence(page(regions=[written])) == 0.0
    assert confidence(page(regions=[elsewhere])) == 0.96
    assert page_evidence(page(regions=[elsewhere])).has_visual_elements


def test_large_print_takes_a_smaller_tier_than_small_print_or_none() -> None:
    def tokens(height_px: float | None, **changes: Any) -> int:
        return tier_of(
            page(signals=[{"name": "text_height_px", "measured": height_px}], **changes), PLAN
        ).visual_tokens

    assert tokens(60.0) < tokens(25.0) <= tokens(12.0) == tokens(None) == PLAN.tiers[-1].visual_tokens


def test_a_page_on_its_side_is_counted_as_it_is_read() -> None:
    sideways = page(width_px=2339, height_px=1654, rotation_deg=90)
    assert tier_of(sideways, PLAN) == tier_of(page(), PLAN)


@pytest.mark.parametrize(
    ("rotation_deg", "skew_deg"), [(0, 0.0), (90, 0.0), (0, -1.37), (180, 2.5), (270, 11.99)]
)
@pytest.mark.parametrize("size_px", [(1654, 2339), (480, 620), (30, 6_100)])
def test_what_a_page_is_sent_as_is_known_without_drawing_it(
    size_px: tuple[int, int], rotation_deg: int, skew_deg: float
) -> None:
    width_px, height_px = size_px
    known = page(width_px=width_px, height_px=height_px, rotation_deg=rotation_deg, skew_deg=skew_deg)
    raster = PageRaster(page_number=1, image=Image.new("L", size_px, 255), dpi=200)
    image = turned(raster, rotation_deg=rotation_deg, skew_deg=skew_deg).raster.image
    for tier in PLAN.tiers:
        sent = fit_page(image, PLAN.budget_of(tier), tier)
        expected = [(one.width_px, one.height_px, one.visual_tokens) for one in sent]
        strips = strips_of(known, PLAN, tier)
        got = [(one.canvas_width_px, one.canvas_height_px, one.visual_tokens) for one in strips]
        assert got == expected
