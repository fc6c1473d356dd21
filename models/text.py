"""What was read on a page: words, lines and blocks, with boxes and confidences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from models.geometry import Box

_UNWRITABLE: Final = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word in logical order. ``confidence`` is 0 to 1, or None where the reader gives none (a text layer)."""

    text: str
    box: Box
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of text; ``paragraph_number`` is the reader's own grouping where it has one."""

    text: str
    box: Box
    confidence: float | None
    words: tuple[Word, ...]
    paragraph_number: int | None = None


class BlockKind(StrEnum):
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST_ITEM = "list_item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines that belong together, in reading order. ``heading_level`` is 1 to 6 for headings, else None."""

    kind: BlockKind
    lines: tuple[Line, ...]
    box: Box
    heading_level: int | None = None


def writable(text: str) -> str:
    """With U+FFFD in place of what UTF-8 or PostgreSQL cannot hold: lone surrogates (undecodable bytes of a file
    name, broken fonts) and NUL."""
    return _UNWRITABLE.sub("\ufffd", text)
