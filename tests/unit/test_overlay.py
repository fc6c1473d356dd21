from __future__ import annotations

from typing import Any

import pytest
from PIL import Image

from pipeline.overlay import AREA_COLOURS, NO_CONFIDENCE, confidence_colour, draw_overlay


def page_json(width: int, height: int, **parts: Any) -> dict[str, Any]:
    return {
        "width_px": width,
        "height_px": height,
        "lines": [],
        "tables": [],
        "regions": [],
        "triage": {"escalate": False, "reasons": [], "policy_version": "test"},
        **parts,
    }


def line(box: list[float], confidence: float | None) -> dict[str, Any]:
    word = {"text": "word", "box": box, "confidence": confidence}
    return {"text": "word", "box": box, "confidence": confidence, "words": [word]}


def nearest(colour: tuple[int, ...], others: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    return min(others, key=lambda other: sum((a - b) ** 2 for a, b in zip(colour, other, strict=True)))


@pytest.mark.parametrize("confidence", [None, 0.2, 0.65, 0.95])
def test_a_words_outline_tells_its_confidence(confidence: float | None) -> None:
    page = page_json(1000, 1000, lines=[line([200, 300, 500, 360], confidence)])

    picture = draw_overlay(Image.new("L", (1000, 1000), 255), page)

    colours = [confidence_colour(value) for value in (None, 0.2, 0.65, 0.95)]
    assert len(set(colours)) == 4
    pixel = picture.getpixel((350, 300))
    assert isinstance(pixel, tuple)
    assert nearest(pixel, colours) == confidence_colour(confidence)
    assert picture.getpixel((100, 100)) == (255, 255, 255)


def test_a_page_drawn_at_another_resolution_has_its_boxes_in_place() -> None:
    page = page_json(2000, 3000, regions=[{"kind": "stamp", "box": [500, 600, 900, 1200]}])

    picture = draw_overlay(Image.new("RGB", (1000, 1500), "white"), page)

    assert picture.getpixel((250, 450)) == AREA_COLOURS["stamp"]
    assert picture.getpixel((450, 450)) != (255, 255, 255)
    assert picture.getpixel((470, 450)) == (255, 255, 255)


@pytest.mark.parametrize("size", [(1, 1), (120, 80), (400, 6140), (6000, 9000)])
def test_pictures_have_a_readable_size_and_a_legend_below(size: tuple[int, int]) -> None:
    page = page_json(*size, lines=[line([0, 0, *size], 0.3)], tables=[{"box": [0, 0, *size], "html": ""}])

    picture = draw_overlay(Image.new("RGB", size, "white"), page)

    factor = min(max(max(size), 1000), 2600) / max(size)
    assert picture.height > round(size[1] * factor) + 3 * 13
    assert picture.width >= 150
    assert max(picture.size) <= 2600 + 700


def test_every_reason_gets_a_row_of_the_legend() -> None:
    reason = {"signal": "stamp_strength", "measured": 0.97, "threshold": 0.8}
    none = page_json(800, 800)
    three = page_json(800, 800, triage={"escalate": True, "reasons": [reason] * 3, "policy_version": "test"})
    blank = Image.new("L", (800, 800), 255)

    rows = draw_overlay(blank, three).height - draw_overlay(blank, none).height

    assert rows > 3 * 13


def test_the_page_itself_is_left_alone() -> None:
    image = Image.new("L", (600, 600), 255)

    draw_overlay(image, page_json(600, 600, lines=[line([10, 10, 90, 40], None)]))

    assert image.mode == "L"
    assert image.getextrema() == (255, 255)


def test_the_text_layers_colour_is_none_of_ocrs() -> None:
    assert NO_CONFIDENCE[1] not in {confidence_colour(value / 100) for value in range(101)}
