from __future__ import annotations

from collections.abc import Sequence

import pytest
from PIL import Image, ImageDraw

from models.choices import RoutePolicy
from models.geometry import enclosing_box
from models.page import PageReading, PageScore, ReadBy, Region, RegionKind, Signal
from models.text import Block, BlockKind, Line, Word
from pipeline.policy import load_policy
from pipeline.ports import PageRaster
from pipeline.score import score_page
from pipeline.signals.names import SignalName
from pipeline.triage import triage_page
from pipeline.upright import UprightPage
from tests.unit.signals.pages import blank_page, write, write_lines


class UnaskedLayout:
    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        raise AssertionError("no table is in doubt here")


def reading(lines: Sequence[Sequence[Word]], read_by: ReadBy = ReadBy.TESSERACT) -> PageReading:
    made = tuple(
        Line(
            text=" ".join(word.text for word in line),
            box=enclosing_box(word.box for word in line),
            confidence=None,
            words=tuple(line),
        )
        for line in lines
    )
    blocks = tuple(Block(kind=BlockKind.PARAGRAPH, lines=(line,), box=line.box) for line in made)
    return PageReading(read_by=read_by, blocks=blocks, signals=(Signal(name="ink_share", measured=0.04),))


def score(page: Image.Image, read: PageReading) -> PageScore:
    upright = UprightPage(
        raster=PageRaster(page_number=1, image=page, dpi=100),
        rotation_deg=0,
        skew_deg=0.0,
        delivered_width_px=page.width,
        delivered_height_px=page.height,
    )
    return score_page(upright, read, layout=UnaskedLayout())


def measured(scored: PageScore) -> dict[str, float | None]:
    return {signal.name: signal.measured for signal in scored.signals}


def escalates(scored: PageScore) -> list[str]:
    policy = load_policy()
    decision = triage_page(
        scored, policy=policy, least_probability=policy.thresholds.balanced, route=RoutePolicy.AUTO
    )
    return [reason.signal for reason in decision.reasons]


def test_clean_print_has_every_signal_and_no_reason() -> None:
    page = blank_page()
    scored = score(page, reading(write_lines(page, 25)))

    assert set(measured(scored)) == {"ink_share", *SignalName} - {
        SignalName.BLANK,
        SignalName.FORCED_VLM,
        SignalName.FORCED_OCR,
        SignalName.AUDIT,
        SignalName.NEEDS_VLM_PROBABILITY,
        SignalName.SCRIPT_UNREAD,
        SignalName.ENGINE_AGREEMENT,
        SignalName.PAGE_IMAGE_DAMAGED,
    }
    assert measured(scored)["unsure_character_share"] == 0
    assert escalates(scored) == []
    assert scored.regions == ()


def test_a_blank_page_is_not_measured() -> None:
    scored = score(blank_page(), PageReading(read_by=ReadBy.NOTHING, blocks=()))

    assert measured(scored) == {"blank": 1.0}


def test_a_reader_that_found_nothing_on_a_written_page_is_not_blank() -> None:
    page = blank_page()
    write_lines(page, 25)

    assert "uncovered_ink_share" in escalates(score(page, reading([])))


def test_a_text_layer_has_no_confidence_and_that_is_no_reason() -> None:
    page = blank_page()
    lines = [
        write(page, "The layer gives no confidence at all", 90, 90 + 30 * n, sure=None) for n in range(9)
    ]

    scored = score(page, reading(lines, ReadBy.TEXT_LAYER))

    assert measured(scored)["unsure_character_share"] is None
    assert escalates(scored) == []


def test_unsure_words_are_a_reason() -> None:
    page = blank_page()
    lines = [write(page, "barely legible words of a fax", 90, 90 + 30 * n, sure=0.4) for n in range(9)]

    assert "unsettled_character_share" in escalates(score(page, reading(lines)))


def test_a_stamp_is_a_region_in_page_pixels() -> None:
    page = blank_page("RGB", (1654, 2338))
    lines = [
        write(page, "Permit to hold a street fair in the lane", 200, 200 + 60 * n, size=28) for n in range(20)
    ]
    ImageDraw.Draw(page).ellipse((900, 900, 1200, 1200), outline="#b02030", width=6)

    scored = score(page, reading(lines))
    [stamp] = [region for region in scored.regions if region.kind is RegionKind.STAMP]

    assert escalates(scored)[0] == "stamp_strength"
    assert measured(scored)["handwriting_probability"] == 0
    assert (stamp.box.left, stamp.box.bottom) == pytest.approx((900, 1200), abs=25)


@pytest.mark.parametrize("size", [(1, 1), (1, 4000), (4000, 1), (7, 7), (30, 900)])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pages_of_any_shape_are_scored(size: tuple[int, int], mode: str) -> None:
    page = Image.effect_noise(size, 90).convert(mode)

    assert measured(score(page, reading([])))["stamp_strength"] == 0
