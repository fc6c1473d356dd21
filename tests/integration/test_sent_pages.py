"""What a page is predicted to cost when it is read, and what it costs as it is drawn again and sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from models.document import Document, MediaType
from models.geometry import Box
from models.page import PageResult
from models.text import Line, Word
from pipeline.escalated_page import draw_upright, sent_part, strips_of, tier_of
from pipeline.fit import fit_page
from pipeline.outputs import page_json
from pipeline.page_pipeline import Engines, read_pages
from pipeline.planning.configured import load_plan
from pipeline.policy import load_policy
from pipeline.read import Readers
from pipeline.settings import Settings
from pipeline.upright import QUARTER_TURNS
from tests.fakes.engines import NoPdf, NoRegions
from tests.fakes.papers import as_jpeg, paper, printed
from tests.unit.test_read import Skew, Turn

SETTINGS = Settings()
PLAN = load_plan(SETTINGS.vlm)
POLICY = load_policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrOfHeight:
    """Reads four words of this height, wherever they stand."""

    height_px: float
    name: str = "tesseract"
    version: str = "1"

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        box = Box(10, 10, 60, 10 + self.height_px)
        words = tuple(Word(text=f"paragraph{n}", box=box, confidence=0.95) for n in range(4))
        return (Line(text=" ".join(word.text for word in words), box=box, confidence=0.95, words=words),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A PNG, and how the fake engines say that it lies."""

    path: Path
    document: Document

    @classmethod
    def of(cls, image: Image.Image, folder: Path, *, dpi: int = 200) -> Delivered:
        path = folder / "page.png"
        image.save(path, dpi=(dpi, dpi))
        document = Document(
            document_id="0" * 64, media_type=MediaType.PNG, byte_count=path.stat().st_size, page_count=1
        )
        return cls(path=path, document=document)

    def read(self, *, text_height_px: float, turn_deg: int = 0, skew_deg: float = 0.0) -> dict[str, Any]:
        """The page's JSON, as it is stored."""
        readers = Readers(
            ocr=OcrOfHeight(height_px=text_height_px), orientation=Turn(turn_deg, 1.0), skew=Skew(skew_deg)
        )
        engines = Engines(pdf=NoPdf(), readers=readers, layout=NoRegions(), versions={})
        [(_, result)] = read_pages(self.path, self.document, [1], engines, SETTINGS, POLICY, PLAN, None)
        assert isinstance(result, PageResult)
        stored: dict[str, Any] = json.loads(json.dumps(page_json(result)))
        return stored

    def drawn(self, page: Mapping[str, Any]) -> Image.Image:
        return draw_upright(
            self.path, self.document, page, pdf=NoPdf(), settings=SETTINGS.rasterise, password=None
        )


def inked(image: Image.Image) -> int:
    return int((np.asarray(image.convert("L")) < 128).sum())


@settings(max_examples=40)
@given(
    size_px=st.tuples(st.integers(30, 1_800), st.integers(30, 1_800)),
    text_height_px=st.floats(4, 80),
    turn_deg=st.sampled_from((0, 90, 180, 270)),
    skew_deg=st.one_of(st.just(0.0), st.floats(-12, 12)),
    is_coloured=st.booleans(),
    data=st.data(),
)
def test_a_page_is_sent_at_the_tokens_that_it_was_counted_at(
    tmp_path_factory: pytest.TempPathFactory,
    size_px: tuple[int, int],
    text_height_px: float,
    turn_deg: int,
    skew_deg: float,
    is_coloured: bool,
    data: st.DataObject,
) -> None:
    image = Image.new("L", size_px, 250)
    at_in = data.draw(st.floats(0, size_px[0] / 200)), data.draw(st.floats(0, size_px[1] / 200))
    printed(image, 200, at_in, "Harbour dues for the quarter", size_pt=data.draw(st.integers(6, 30)))
    delivered = Delivered.of(image.convert("RGB") if is_coloured else image, tmp_path_factory.mktemp("page"))
    page = delivered.read(text_height_px=text_height_px, turn_deg=turn_deg, skew_deg=skew_deg)
    tier = tier_of(page, PLAN)
    upright = delivered.drawn(page)
    left, top, right, bottom = page["content_box"]
    assert 0 <= left < right <= upright.width
    assert 0 <= top < bottom <= upright.height
    sent = fit_page(sent_part(upright, page), PLAN.budget_of(tier), tier)
    assert sum(one.visual_tokens for one in sent) == page["visual_tokens_if_vlm"]
    assert sum(one.visual_tokens for one in strips_of(page, PLAN)) == page["visual_tokens_if_vlm"]
    for turn in QUARTER_TURNS:
        turned = fit_page(sent_part(upright, page, further_turn_deg=turn), PLAN.budget_of(tier), tier)
        assert sum(one.visual_tokens for one in turned) <= len(turned) * tier.visual_tokens


@pytest.fixture
def letter(tmp_path: Path) -> Delivered:
    page = paper(200)
    for number in range(12):
        printed(page, 200, (1.5, 3 + 0.3 * number), "Dues are payable on the first of the month")
    return Delivered.of(page, tmp_path)


def test_trimmed_margins_save_tokens_and_no_ink(letter: Delivered) -> None:
    page = letter.read(text_height_px=30)
    whole = {**page, "content_box": [0, 0, page["width_px"], page["height_px"]]}
    tier = PLAN.tiers[-1]
    tokens = sum(one.visual_tokens for one in strips_of(page, PLAN, tier))
    assert tokens < 0.5 * sum(one.visual_tokens for one in strips_of(whole, PLAN, tier))
    upright = letter.drawn(page)
    assert inked(sent_part(upright, page)) == inked(upright) > 0


@pytest.mark.parametrize("further_turn_deg", [0, 90, 180, 270])
def test_the_content_turns_with_the_page(letter: Delivered, further_turn_deg: int) -> None:
    page = letter.read(text_height_px=30, turn_deg=90)
    upright = letter.drawn(page)
    part = sent_part(upright, page, further_turn_deg=further_turn_deg)
    width_px, height_px = sent_part(upright, page).size
    assert part.size == ((width_px, height_px) if further_turn_deg in (0, 180) else (height_px, width_px))
    assert inked(part) == inked(upright)
    turned = sent_part(upright, page).rotate(-further_turn_deg, expand=True)
    assert ImageChops.difference(part, turned).getbbox() is None


def test_a_page_that_was_read_before_contents_were_measured_is_sent_whole(letter: Delivered) -> None:
    page = letter.read(text_height_px=30)
    del page["content_box"]
    upright = letter.drawn(page)
    assert sent_part(upright, page).size == upright.size == (page["width_px"], page["height_px"])
    tier = tier_of(page, PLAN)
    (sent,) = fit_page(upright, PLAN.budget_of(tier), tier)
    assert sent.visual_tokens == sum(one.visual_tokens for one in strips_of(page, PLAN))


def test_a_page_that_is_drawn_in_another_size_is_sent_in_its_own(letter: Delivered) -> None:
    page = letter.read(text_height_px=30)
    with Image.open(letter.path) as image:
        half = image.resize((image.width // 2, image.height // 2))
    half.save(letter.path, dpi=(100, 100))
    upright = letter.drawn(page)
    assert upright.size == (page["width_px"], page["height_px"])
    assert inked(sent_part(upright, page)) == pytest.approx(inked(upright), rel=0.01)


def test_a_blank_page_is_all_content(tmp_path: Path) -> None:
    image = as_jpeg(paper(100), 80)
    page = Delivered.of(image, tmp_path, dpi=100).read(text_height_px=10)
    assert page["route"] == "blank"
    assert page["content_box"] == [0, 0, page["width_px"], page["height_px"]]
