"""Tesseract's TSV rows as lines of words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from models.geometry import Box
from models.text import Line, Word
from pipeline.engines.ocr_text import clean_text
from pipeline.rows import line_of

WORD_LEVEL = "5"
COLUMNS = 12
"""level, page, block, paragraph, line, word, left, top, width, height, confidence (0 to 100), text"""

LineKey = tuple[int, int, int]


def lines_from_tsv(tsv: str) -> tuple[Line, ...]:
    """Lines in Tesseract's order. ``paragraph_number`` counts its paragraphs through the page, from 1."""
    numbers: dict[tuple[int, int], int] = {}
    lines = []
    for (block, paragraph, _), rows in groupby(_words(tsv), key=lambda row: row[0]):
        number = numbers.setdefault((block, paragraph), len(numbers) + 1)
        lines.append(line_of([word for _, word in rows], paragraph_number=number))
    return tuple(lines)


def _words(tsv: str) -> Iterator[tuple[LineKey, Word]]:
    for row in tsv.split("\n")[1:]:
        cells = row.split("\t", COLUMNS - 1)
        if len(cells) < COLUMNS or cells[0] != WORD_LEVEL:
            continue
        text, confidence = clean_text(cells[11]), float(cells[10])
        if not text or confidence < 0:
            continue
        left, top, width, height = (int(cell) for cell in cells[6:10])
        yield (
            (int(cells[2]), int(cells[3]), int(cells[4])),
            Word(
                text=text,
                box=Box(left, top, left + width, top + height),
                confidence=min(confidence / 100, 1.0),
            ),
        )
