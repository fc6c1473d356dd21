"""One page's result: route, text, Markdown, and boxes in the page as delivered."""

from __future__ import annotations

import pytest
from PIL import Image

from models.geometry import Box
from models.page import (
    PageReading,
    PageResult,
    PageScore,
    ReadBy,
    Region,
    RegionKind,
    Route,
    Signal,
    Table,
    TriageDecision,
)
from models.text import Block, BlockKind, Line, Word
from models.transcription import Degradation, DegradedCode
from pipeline.assemble import assemble_page, mean_confidence, page_markdown, page_text
from pipeline.ports import PageRaster
from pipeline.upright import turned

PAPER = PageRaster(page_number=4, image=Image.new("L", (300, 400), 255), dpi=100)


def line(text: str, *, top: float = 0, confidence: float | None = 0.5) -> Line:
    placed = tuple(
        Word(text=word, box=Box(30 * n, top, 30 * n + 25, top + 20), confidence=confidence)
        for n, word in enumerate(text.split())
    )
    box = Box(0, top, placed[-1].box.right, top + 20)
    return Line(text=text, box=box, confidence=confidence, words=placed)


def block(
    *texts: str, kind: BlockKind = BlockKind.PARAGRAPH, top: float = 0, level: int | None = None
) -> Block:
    lines = tuple(line(text, top=top + 20 * n) for n, text in enumerate(texts))
    box = Box(0, top, 300, top + 20 * len(texts))
    return Block(kind=kind, lines=lines, box=box, heading_level=level)


NO_VLM = Degradation(code=DegradedCode.NO_VLM, message="none is configured")


def assembled(
    reading: PageReading, *, escalate: bool = False, score: PageScore | None = None, rotation_deg: int = 0
) -> PageResult:
    return assemble_page(
        4,
        turned(PAPER, rotation_deg=rotation_deg, skew_deg=0.0),
        reading,
        score or PageScore(signals=(Signal(name="b", measured=2.0),), regions=()),
        TriageDecision(escalate=escalate, reasons=(), policy_version="1"),
        content_box=Box(5, 6, 70, 80),
        visual_tokens_if_vlm=100,
        elapsed_s=0.5,
        without_vlm=NO_VLM,
    )


@pytest.mark.parametrize(
    ("read_by", "escalate", "route"),
    [
        (ReadBy.NOTHING, False, Route.BLANK),
        (ReadBy.NOTHING, True, Route.BLANK),
        (ReadBy.TESSERACT, False, Route.OCR),
        (ReadBy.PADDLEOCR, False, Route.OCR),
        (ReadBy.TESSERACT, True, Route.OCR_DEGRADED),
        (ReadBy.TEXT_LAYER, False, Route.TEXT_LAYER),
        (ReadBy.TEXT_LAYER, True, Route.OCR_DEGRADED),
    ],
)
def test_routes(read_by: ReadBy, escalate: bool, route: Route) -> None:
    assert assembled(PageReading(read_by=read_by, blocks=()), escalate=escalate).route is route


def test_boxes_leave_in_the_page_as_delivered() -> None:
    reading = PageReading(
        read_by=ReadBy.TESSERACT,
        blocks=(block("Tea"),),
        signals=(Signal(name="a", measured=1.0),),
    )
    score = PageScore(
        signals=(Signal(name="a", measured=1.0), Signal(name="b", measured=2.0)),
        regions=(Region(kind=RegionKind.STAMP, box=Box(0, 0, 400, 300)),),
        tables=(Table(box=Box(0, 100, 10, 110), html="<table></table>"),),
    )
    result = assembled(reading, score=score, rotation_deg=90)
    assert (result.width_px, result.height_px, result.dpi) == (300, 400, 100)
    word = result.blocks[0].lines[0].words[0]
    assert _close(word.box, Box(0, 375, 20, 400))
    assert _close(result.blocks[0].lines[0].box, Box(0, 375, 20, 400))
    assert _close(result.regions[0].box, Box(0, 0, 300, 400))
    assert _close(result.tables[0].box, Box(100, 390, 110, 400))
    assert [signal.name for signal in result.signals] == ["a", "b"]


def _close(one: Box, two: Box) -> bool:
    pairs = ((one.left, two.left), (one.top, two.top), (one.right, two.right), (one.bottom, two.bottom))
    return all(abs(a - b) < 1e-6 for a, b in pairs)


def test_confidence_is_by_characters_and_none_for_a_text_layer() -> None:
    sure = Word(text="sure", box=Box(0, 0, 1, 1), confidence=1.0)
    unsure = Word(text="x", box=Box(0, 0, 1, 1), confidence=0.0)
    assert mean_confidence([sure, unsure]) == pytest.approx(0.8)
    assert mean_confidence([Word(text="x", box=Box(0, 0, 1, 1), confidence=None)]) is None
    assert mean_confidence([]) is None


def test_text_has_a_line_a_line_and_an_empty_one_between_blocks() -> None:
    blocks = [
        block("Title", kind=BlockKind.HEADING, level=1),
        block("the sup-", "ply ends", "in May", top=40),
    ]
    assert page_text(blocks) == "Title\n\nthe supply\nends\nin May"


def test_markdown_of_headings_paragraphs_items_and_cells() -> None:
    cells = Line(
        text="Nails 400",
        box=Box(0, 200, 290, 220),
        confidence=None,
        words=(
            Word(text="Nails", box=Box(0, 200, 60, 220), confidence=None),
            Word(text="400", box=Box(250, 200, 290, 220), confidence=None),
        ),
    )
    blocks = [
        block("Title *one*", kind=BlockKind.HEADING, level=2),
        block("two lines", "of text", top=40),
        block("• an item", "goes on", kind=BlockKind.LIST_ITEM, top=100),
        block("3. third", kind=BlockKind.LIST_ITEM, top=140),
        Block(kind=BlockKind.PARAGRAPH, lines=(cells, cells), box=cells.box),
    ]
    assert page_markdown(blocks).split("\n\n") == [
        "## Title \\*one\\*",
        "two lines of text",
        "- an item goes on",
        "3. third",
        "Nails 400  \nNails 400",
    ]


def test_a_known_table_stands_where_its_lines_stood() -> None:
    table = Table(box=Box(0, 35, 300, 85), html="<table><tr><td>1</td></tr></table>")
    blocks = [block("before", "cell one", "cell two", "after", top=20)]
    assert page_markdown(blocks, [table]).split("\n\n") == ["before", table.html, "after"]
    nowhere = Table(box=Box(0, 300, 10, 310), html="<table></table>")
    assert page_markdown(blocks, [nowhere]).endswith("<table></table>")


def test_a_word_cut_by_the_columns_end_is_made_whole() -> None:
    blocks = [block("the sup-"), block("ply ends here", top=40), block("Next", top=80)]
    assert page_text(blocks) == "the supply\nends here\n\nNext"
    assert page_markdown(blocks) == "the supply ends here\n\nNext"
