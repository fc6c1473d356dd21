"""The documents of the storm: each page says which it is, and takes the way that its kind must take."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen.canvas import Canvas

from tests.fakes.pages import write_tiff
from tests.fakes.vlm_script import ChatRequest

WORDS: Final = (
    *("harbour", "ledger", "copper", "winter", "garden", "engine", "bridge", "silver", "market", "orchard"),
    *("lantern", "quarry", "ferry", "chapel", "meadow", "saddle", "tunnel", "barley", "anchor", "kettle"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One document of the storm. ``route`` is what its pages end with while the VLM is there."""

    name: str
    pages: int
    route: str
    document_id: str


def line_of(name: str, page_number: int) -> str:
    return f"Volume {Path(name).stem} sheet {page_number}"


def lines_of(name: str, page_number: int) -> tuple[str, ...]:
    turn = (page_number * 7) % len(WORDS)
    words = (*WORDS[turn:], *WORDS[:turn])
    return (line_of(name, page_number), *(" ".join(words[at : at + 5]) for at in range(0, len(words), 5)))


def write_papers(folder: Path, *, text: int, printed: int, pages_each: int = 10) -> tuple[Paper, ...]:
    """So many pages with a text layer, and so many printed ones to be read by OCR."""
    folder.mkdir(parents=True)
    return (
        *_written(folder, "text", text, pages_each, ".pdf", "text_layer"),
        *_written(folder, "print", printed, pages_each, ".tif", "ocr"),
    )


def write_printed(folder: Path, pages: int, *, pages_each: int = 5) -> tuple[Paper, ...]:
    """Printed pages, for the VLM."""
    folder.mkdir(parents=True)
    return tuple(_written(folder, "seen", pages, pages_each, ".tif", "vlm"))


def answerer(papers: tuple[Paper, ...]):  # type: ignore[no-untyped-def]
    """What an honest model says of each page."""
    names = {paper.document_id[:16]: paper.name for paper in papers}

    def answer(request: ChatRequest) -> str:
        document, _, page_number, _ = request.request_id.split("/")
        text = "\n".join(lines_of(names[document], int(page_number)))
        return f"---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n{text}"

    return answer


def _written(
    folder: Path, kind: str, pages: int, pages_each: int, suffix: str, route: str
) -> Iterator[Paper]:
    for number, start in enumerate(range(0, pages, pages_each), start=1):
        count = min(pages_each, pages - start)
        path = folder / f"{kind}{number}{suffix}"
        if suffix == ".pdf":
            _write_pdf(path, count)
        else:
            write_tiff(path, [_printed(path.name, page) for page in range(1, count + 1)])
        document_id = hashlib.sha256(path.read_bytes()).hexdigest()
        yield Paper(name=path.name, pages=count, route=route, document_id=document_id)


def _write_pdf(path: Path, pages: int) -> None:
    canvas = Canvas(str(path), pagesize=A5, invariant=True)
    for page_number in range(1, pages + 1):
        canvas.setFont("Helvetica", 12)
        for row, line in enumerate(lines_of(path.name, page_number)):
            canvas.drawString(40, 520 - 20 * row, line)
        canvas.showPage()
    canvas.save()


def _printed(name: str, page_number: int) -> Image.Image:
    image = Image.new("L", (900, 420), 255)
    font = ImageFont.load_default(36)
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines_of(name, page_number)):
        draw.text((40, 40 + 70 * row), line, fill=0, font=font)
    return image
