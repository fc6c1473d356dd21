"""Small drawn pages, and the words on them."""

from __future__ import annotations

from PIL import Image, ImageDraw, ImageFont

from models.geometry import Box
from models.text import Word
from pipeline.ports import LayoutDetector
from pipeline.signals.rules import find_rules
from pipeline.signals.tables import TableEvidence, find_tables
from pipeline.signals.view import view_page

A4_AT_100_DPI = (827, 1169)
LOREM = [
    "The",
    "committee",
    "met",
    "on",
    "Tuesday",
    "to",
    "hear",
    "the",
    "report",
    "of",
    "the",
    "treasurer",
    "and",
    "agreed",
    "to",
    "print",
    "it",
]


def blank_page(mode: str = "L", size: tuple[int, int] = A4_AT_100_DPI) -> Image.Image:
    return Image.new(mode, size, "white")


def write(
    page: Image.Image,
    text: str,
    left: float,
    top: float,
    *,
    size: int = 14,
    fill: str = "black",
    sure: float | None = 0.95,
) -> list[Word]:
    """Draws ``text`` and returns its words with the boxes of their ink."""
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=size)
    words = []
    for part in text.split():
        box = draw.textbbox((left, top), part, font=font)
        draw.text((left, top), part, font=font, fill=fill)
        words.append(Word(text=part, box=Box(*box), confidence=sure))
        left += draw.textlength(part + " ", font=font)
    return words


def write_lines(
    page: Image.Image, count: int, *, left: float = 90, top: float = 90, step: float = 24
) -> list[list[Word]]:
    return [write(page, " ".join(LOREM[n % 5 :][:10]), left, top + n * step) for n in range(count)]


def rule(page: Image.Image, *points: tuple[float, float], width: int = 2) -> None:
    ImageDraw.Draw(page).line(points, fill="black", width=width)


def tables_of(
    page: Image.Image, words: list[Word], layout: LayoutDetector, *, may_ask: bool = True
) -> TableEvidence:
    view = view_page(page, tuple(words))
    return find_tables(view, find_rules(view), layout, may_ask_network=may_ask)
