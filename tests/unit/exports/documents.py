"""Pages as the database keeps them, for what is written of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

from models.document import Document, MediaType
from models.geometry import Box, enclosing_box
from models.page import PageResult, ReadBy, Route, Table, TriageDecision, TriageReason
from models.text import Block, BlockKind, Line, Word
from models.transcription import Degradation, DegradedCode
from pipeline import outputs
from pipeline.exports.document import Json
from pipeline.exports.formats import FORMATS

WIDTH_PX, HEIGHT_PX = 850, 1100
ADVANCE_PX, LINE_PX = 16, 30


def header(page_count: int = 1, source: str = "a/inv.pdf", media_type: MediaType = MediaType.PDF) -> Json:
    document = Document(
        document_id="ab" * 32, media_type=media_type, byte_count=9, page_count=page_count, attachments=()
    )
    return outputs.document_header(document, source)


def line(text: str, left: float, top: float) -> Line:
    """Words of equal letters, a letter's width apart."""
    words, x = [], left
    for word in text.split():
        right = x + ADVANCE_PX * len(word)
        words.append(Word(text=word, box=Box(x, top, right, top + LINE_PX), confidence=0.91))
        x = right + ADVANCE_PX
    return Line(text=text, box=enclosing_box(w.box for w in words), confidence=0.91, words=tuple(words))


def block(*texts: str, top: float, kind: BlockKind = BlockKind.PARAGRAPH, level: int | None = None) -> Block:
    lines = tuple(line(text, 100, top + 40 * row) for row, text in enumerate(texts))
    return Block(kind=kind, lines=lines, box=enclosing_box(one.box for one in lines), heading_level=level)


def page(
    blocks: Sequence[Block] = (), *, number: int = 1, tables: Sequence[Table] = (), **changes: Any
) -> Json:
    from pipeline.assemble import page_markdown, page_text

    values: dict[str, Any] = {
        "page_number": number,
        "route": Route.OCR,
        "read_by": ReadBy.TESSERACT,
        "width_px": WIDTH_PX,
        "height_px": HEIGHT_PX,
        "dpi": 100.0,
        "rotation_deg": 0,
        "skew_deg": 0.0,
        "content_box": Box(0, 0, WIDTH_PX, HEIGHT_PX),
        "text": page_text(blocks),
        "markdown": page_markdown(blocks, tables),
        "confidence": 0.91,
        "triage": TriageDecision(escalate=False, reasons=(), policy_version="1"),
        "signals": (),
        "blocks": tuple(blocks),
        "tables": tuple(tables),
        "regions": (),
        "visual_tokens_if_vlm": 324,
        "elapsed_s": 1.0,
    }
    return outputs.page_json(PageResult(**(values | changes)))


def blank_page(number: int) -> Json:
    return page(number=number, route=Route.BLANK, read_by=ReadBy.NOTHING, confidence=None)


def failed_page(number: int) -> Json:
    return outputs.failed_page_json(number, code="page_not_rendered", message="damaged & <torn>")


def degraded_page(number: int, blocks: Sequence[Block]) -> Json:
    return page(
        blocks,
        number=number,
        route=Route.OCR_DEGRADED,
        triage=TriageDecision(
            escalate=True,
            reasons=(TriageReason(signal="table_ruled_cells", measured=18.0, threshold=12.0),),
            policy_version="1",
        ),
        degraded=Degradation(code=DegradedCode.NO_VLM, message="no VLM is configured"),
    )


def vlm_page(number: int, blocks: Sequence[Block], markdown: str, tables: Sequence[str] = ()) -> Json:
    return {
        **page(blocks, number=number),
        "route": "vlm",
        "text": "the model's",
        "markdown": markdown,
        "tables": [{"box": None, "html": html} for html in tables],
        "vlm": {"model_id": "qwen", "language": "de", "is_blank": False, "removed": []},
    }


def every_kind() -> tuple[Json, ...]:
    """A page of every route, one that failed, and one turned and skewed."""
    heading = block("Invoice & <Sons>", top=100, kind=BlockKind.HEADING, level=2)
    item = block("• first thing", top=160, kind=BlockKind.LIST_ITEM)
    plain = block("Pay at once, or", "never more.", top=240)
    return (
        page([heading, item, plain], number=1),
        page([plain], number=2, route=Route.TEXT_LAYER, read_by=ReadBy.TEXT_LAYER, confidence=None),
        blank_page(3),
        failed_page(4),
        degraded_page(5, [plain]),
        vlm_page(
            6,
            [plain],
            "# Rechnung\n\n1. erstens\n\n<table><tr><td>7</td></tr></table>",
            ["<table><tr><td>7</td></tr></table>"],
        ),
        page([plain], number=7, rotation_deg=90, skew_deg=-1.5),
    )


def written(name: str, pages: Iterable[Json], document: Json | None = None) -> bytes:
    """What the format's writer makes of the pages."""
    kept = tuple(pages)
    stream = io.BytesIO()
    FORMATS[name].writer()(stream, document or header(len(kept)), iter(kept), None)
    return stream.getvalue()
