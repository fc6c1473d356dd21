"""A page as headings, paragraphs, list items and tables in reading order, with boxes where they are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from models.geometry import Box, enclosing_box
from models.text import BlockKind, Line
from pipeline.answers.plain_text import MOST_NESTING, plain_text
from pipeline.exports.document import Json
from pipeline.exports.page_parts import blocks_with_lines, is_by_vlm
from pipeline.exports.table_grid import TableGrid, table_grid, tables_of
from pipeline.paragraphs import BULLET
from pipeline.prose import paragraph_text, words_in

_READER: Final = MarkdownIt("commonmark", {"html": True, "maxNesting": MOST_NESTING}).disable(
    ["code", "reference", "link", "image", "autolink"]
)
_MARK: Final = re.compile(r"^(\d{1,9}[.)]|\S)\s+(?=\S)")


class FlowKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPart:
    """``text`` is plain. ``marker`` is a list item's own: a number as printed, or None for a bullet. A table has
    ``table`` and no text. ``box`` is in pixels of the page as delivered, None on a page that a VLM has read."""

    kind: FlowKind
    text: str = ""
    heading_level: int | None = None
    marker: str | None = None
    table: TableGrid | None = None
    box: Box | None = None


def page_flow(page: Json) -> Iterator[FlowPart]:
    """In reading order; a table stands where its first line does, in place of all of its lines."""
    return _flow_of_markdown(page) if is_by_vlm(page) else _flow_of_blocks(page)


def _flow_of_blocks(page: Json) -> Iterator[FlowPart]:
    lines = [_line(line) for line in page["lines"]]
    vocabulary = words_in(lines)
    waiting = [(_box(table.box), table) for table in tables_of(page) if table.box is not None]
    boxes = [box for box, _ in waiting]
    for block, members in blocks_with_lines(page):
        kept: list[Line] = []
        for line in map(_line, members):
            inside = next((box for box in boxes if line.box.intersection(box) > 0.5 * line.box.area), None)
            if inside is None:
                kept.append(line)
                continue
            for box, table in [one for one in waiting if one[0] is inside]:
                waiting.remove((box, table))
                yield from _part_of_block(block, kept, vocabulary)
                kept = []
                yield FlowPart(kind=FlowKind.TABLE, table=table, box=box)
        yield from _part_of_block(block, kept, vocabulary)
    for box, table in waiting:
        yield FlowPart(kind=FlowKind.TABLE, table=table, box=box)


def _part_of_block(block: Json, lines: Sequence[Line], vocabulary: frozenset[str]) -> Iterator[FlowPart]:
    if not lines:
        return
    text, box = (
        paragraph_text([line.text for line in lines], vocabulary),
        enclosing_box(line.box for line in lines),
    )
    match BlockKind(block["kind"]):
        case BlockKind.HEADING:
            level = block["heading_level"] or 1
            yield FlowPart(kind=FlowKind.HEADING, text=text, heading_level=level, box=box)
        case BlockKind.LIST_ITEM:
            mark = _MARK.match(text)
            is_bullet = BULLET.match(text) is not None
            if mark and (is_bullet or mark[1][0].isdigit()):
                marker = None if is_bullet else mark[1]
                yield FlowPart(kind=FlowKind.LIST_ITEM, text=text[mark.end() :], marker=marker, box=box)
            else:
                yield FlowPart(kind=FlowKind.LIST_ITEM, text=text, box=box)
        case BlockKind.PARAGRAPH:
            yield FlowPart(kind=FlowKind.PARAGRAPH, text=text, box=box)


def _line(line: Json) -> Line:
    return Line(text=line["text"], box=_box(line["box"]), confidence=line["confidence"], words=())


def _box(edges: Sequence[float]) -> Box:
    left, top, right, bottom = edges
    return Box(left, top, right, bottom)


def _flow_of_markdown(page: Json) -> Iterator[FlowPart]:
    table_count = 0
    for part in _markdown_parts(_READER.parse(page["markdown"])):
        if part.kind is FlowKind.TABLE:
            table_count += 1
            table = table_grid(part.text, page_number=page["page_number"], number=table_count)
            yield FlowPart(kind=FlowKind.TABLE, table=table)
        elif part.text:
            yield part


def _markdown_parts(tokens: Sequence[Token]) -> Iterator[FlowPart]:
    """A table's ``text`` is its HTML here."""
    heading_level: int | None = None
    item: Token | None = None
    for token in tokens:
        match token.type:
            case "heading_open":
                heading_level = int(token.tag[1:])
            case "heading_close":
                heading_level = None
            case "list_item_open":
                item = token
            case "inline":
                yield _inline_part(token, heading_level, item)
                item = None
            case "html_block" if token.content.startswith("<table"):
                yield FlowPart(kind=FlowKind.TABLE, text=token.content)
            case "html_block":
                yield FlowPart(kind=FlowKind.PARAGRAPH, text=_joined(plain_text(token.content)))
            case "fence" | "code_block":
                yield FlowPart(kind=FlowKind.PARAGRAPH, text=token.content.rstrip())


def _inline_part(token: Token, heading_level: int | None, item: Token | None) -> FlowPart:
    text = _joined(plain_text(token.content))
    if heading_level is not None:
        return FlowPart(kind=FlowKind.HEADING, text=text, heading_level=heading_level)
    if item is not None:
        marker = f"{item.info}{item.markup}" if item.info else None
        return FlowPart(kind=FlowKind.LIST_ITEM, text=text, marker=marker)
    return FlowPart(kind=FlowKind.PARAGRAPH, text=text)


def _joined(text: str) -> str:
    return " ".join(text.split())
