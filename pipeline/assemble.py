"""One page's parts put together: its text, its Markdown, and every box in the page as delivered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from models.geometry import Box
from models.page import (
    PageReading,
    PageResult,
    PageScore,
    ReadBy,
    Route,
    Table,
    TriageDecision,
)
from models.text import Block, BlockKind, Line, Word
from models.transcription import Degradation
from pipeline.paragraphs import BULLET
from pipeline.prose import ends_cut, escaped_markdown, paragraph_text, whole_words, words_in
from pipeline.rows import is_row_of_cells
from pipeline.upright import UprightPage

_BULLET_MARK: Final = re.compile(r"^\S+\s+")
_NUMBER_MARK: Final = re.compile(r"^(\d{1,2})([.)])\s+(.*)$", re.DOTALL)


def assemble_page(
    page_number: int,
    upright: UprightPage,
    reading: PageReading,
    score: PageScore,
    decision: TriageDecision,
    *,
    content_box: Box,
    visual_tokens_if_vlm: int,
    elapsed_s: float,
    without_vlm: Degradation,
) -> PageResult:
    """Everything known of a page that no VLM has read, which it has not for the reason ``without_vlm`` if it
    should; boxes come in the upright page and leave as delivered, but for ``content_box``."""
    place = upright.to_delivered
    route = _route(reading, decision)
    return PageResult(
        page_number=page_number,
        route=route,
        read_by=reading.read_by,
        width_px=upright.delivered_width_px,
        height_px=upright.delivered_height_px,
        dpi=upright.raster.dpi,
        rotation_deg=upright.rotation_deg,
        skew_deg=upright.skew_deg,
        content_box=content_box,
        text=page_text(reading.blocks),
        markdown=page_markdown(reading.blocks, score.tables),
        confidence=mean_confidence(word for line in reading.lines for word in line.words),
        triage=decision,
        signals=score.signals,
        blocks=tuple(_placed_block(block, place) for block in reading.blocks),
        tables=tuple(replace(table, box=place(table.box)) for table in score.tables),
        regions=tuple(replace(region, box=place(region.box)) for region in score.regions),
        visual_tokens_if_vlm=visual_tokens_if_vlm,
        elapsed_s=elapsed_s,
        degraded=without_vlm if route is Route.OCR_DEGRADED else None,
    )


def _route(reading: PageReading, decision: TriageDecision) -> Route:
    """A blank page stays blank whatever was asked for: there is nothing to see on it."""
    if reading.read_by is ReadBy.NOTHING:
        return Route.BLANK
    if decision.escalate:
        return Route.OCR_DEGRADED
    return Route.TEXT_LAYER if reading.read_by is ReadBy.TEXT_LAYER else Route.OCR


def mean_confidence(words: Iterable[Word]) -> float | None:
    """The mean by characters; None where no word has a confidence."""
    total, characters = 0.0, 0
    for word in words:
        if word.confidence is not None:
            total += word.confidence * len(word.text)
            characters += len(word.text)
    return total / characters if characters else None


def _placed_block(block: Block, place: Callable[[Box], Box]) -> Block:
    lines = tuple(_placed_line(line, place) for line in block.lines)
    return replace(block, lines=lines, box=place(block.box))


def _placed_line(line: Line, place: Callable[[Box], Box]) -> Line:
    words = tuple(replace(word, box=place(word.box)) for word in line.words)
    return replace(line, words=words, box=place(line.box))


def page_text(blocks: Sequence[Block]) -> str:
    """Plain text: a line a line of print, words cut at line ends whole, an empty line between blocks."""
    vocabulary = words_in(line for block in blocks for line in block.lines)
    return "\n\n".join(
        "\n".join(whole_words([line.text for line in block.lines], vocabulary)) for block in _rejoined(blocks)
    )


def page_markdown(blocks: Sequence[Block], tables: Sequence[Table] = ()) -> str:
    """Markdown with headings, paragraphs on one line each and list items; a table whose cells are known
    stands, as HTML, where its first line stood, in place of all of its lines."""
    vocabulary = words_in(line for block in blocks for line in block.lines)
    parts = (
        _block_markdown(part, vocabulary) if isinstance(part, Block) else part.html
        for part in _with_tables(_rejoined(blocks), tables)
    )
    return "\n\n".join(part for part in parts if part)


def _rejoined(blocks: Sequence[Block]) -> list[Block]:
    """Paragraphs that a column's end has cut within a word are one again."""
    result = list(blocks[:1])
    for block in blocks[1:]:
        before = result[-1]
        is_cut = ends_cut(before.lines[-1].text) and block.lines[0].text[:1].islower()
        if is_cut and block.kind is BlockKind.PARAGRAPH and before.kind is not BlockKind.HEADING:
            result[-1] = replace(before, lines=before.lines + block.lines)
        else:
            result.append(block)
    return result


def _with_tables(blocks: Sequence[Block], tables: Sequence[Table]) -> Iterator[Block | Table]:
    waiting = list(tables)
    for block in blocks:
        kept: list[Line] = []
        for line in block.lines:
            table = next((table for table in tables if _is_inside(line.box, table.box)), None)
            if table is None:
                kept.append(line)
            elif table in waiting:
                waiting.remove(table)
                if kept:
                    yield replace(block, lines=tuple(kept))
                    kept = []
                yield table
        if kept:
            yield replace(block, lines=tuple(kept))
    yield from waiting


def _is_inside(line: Box, table: Box) -> bool:
    return line.intersection(table) > 0.5 * line.area


def _block_markdown(block: Block, vocabulary: frozenset[str]) -> str:
    if any(map(is_row_of_cells, block.lines)):
        return "  \n".join(escaped_markdown(line.text) for line in block.lines)
    text = paragraph_text([line.text for line in block.lines], vocabulary)
    match block.kind:
        case BlockKind.HEADING:
            return "#" * (block.heading_level or 1) + " " + escaped_markdown(text)
        case BlockKind.LIST_ITEM:
            return _list_item(text)
        case BlockKind.PARAGRAPH:
            return escaped_markdown(text)


def _list_item(text: str) -> str:
    """A bullet becomes Markdown's own; other marks, and numbers that Markdown would change, stay as
    printed."""
    if BULLET.match(text):
        return "- " + escaped_markdown(_BULLET_MARK.sub("", text))
    number = _NUMBER_MARK.match(text)
    if number:
        return f"{number[1]}{number[2]} {escaped_markdown(number[3])}"
    return escaped_markdown(text)
