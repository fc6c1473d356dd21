"""What drawing a page anew costs, and what keeping its picture would: CPU seconds and bytes.

``python -m benchmarks.pictures [PATH…]`` draws the files, or those of samples/, page by page as for reading.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.pages import SAMPLES
from benchmarks.triage import cpu_s
from models.document import Document, MediaType
from models.errors import DocumentRejected
from pipeline.intake import inspect_source
from pipeline.ports import PageRaster, PdfEngine
from pipeline.rasterise import rasterise_pages
from pipeline.settings import Settings
from workers.bootstrap import build_pdf_engine


@dataclass(slots=True)
class Pictures:
    """Sums over pages of one kind. ``decode_s`` is what a kept PNG costs whoever wants its pixels."""

    pages: int = 0
    draw_s: float = 0.0
    decode_s: float = 0.0
    encode_s: float = 0.0
    document_bytes: int = 0
    png_bytes: int = 0

    def add(self, image: Image.Image, draw_s: float) -> None:
        self.pages += 1
        self.draw_s += draw_s
        before_s = cpu_s()
        file = io.BytesIO()
        image.save(file, format="PNG")
        self.encode_s += cpu_s() - before_s
        self.png_bytes += file.tell()
        before_s = cpu_s()
        with Image.open(file) as kept:
            kept.load()
        self.decode_s += cpu_s() - before_s


def measure(paths: Iterable[Path], settings: Settings) -> dict[str, Pictures]:
    pdf = build_pdf_engine()
    kinds: dict[str, Pictures] = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else (path,):
            if not file.is_file():
                continue
            try:
                document = inspect_source(file, pdf=pdf, limits=settings.intake, password=None)
            except DocumentRejected:
                continue
            _draw(file, document, pdf, settings, kinds)
    return kinds


def _draw(
    file: Path, document: Document, pdf: PdfEngine, settings: Settings, kinds: dict[str, Pictures]
) -> None:
    kind = kinds.setdefault("PDF" if document.media_type is MediaType.PDF else "image", Pictures())
    kind.document_bytes += document.byte_count
    for number in range(1, document.page_count + 1):
        before_s = cpu_s()
        drawn = rasterise_pages(
            file, document.media_type, (number,), pdf=pdf, settings=settings.rasterise, password=None
        )
        for _, raster in drawn:
            if isinstance(raster, PageRaster):
                raster.image.load()
                kind.add(raster.image, cpu_s() - before_s)


def print_table(kinds: dict[str, Pictures], console: Console) -> None:
    table = Table(title="A page's picture, means")
    for name in (
        "",
        "pages",
        "draw, CPU s",
        "decode a kept PNG",
        "encode it",
        "document, kB",
        "PNG, kB",
        "times",
    ):
        table.add_column(name, justify="right" if name else "left")
    for kind, sums in sorted(kinds.items()):
        pages = max(sums.pages, 1)
        seconds = (sums.draw_s, sums.decode_s, sums.encode_s)
        sizes = (sums.document_bytes, sums.png_bytes)
        table.add_row(
            kind,
            f"{sums.pages:,}",
            *(f"{one / pages:.2f}" for one in seconds),
            *(f"{one / pages / 1000:,.0f}" for one in sizes),
            f"{sums.png_bytes / max(sums.document_bytes, 1):.1f}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[SAMPLES])
    print_table(measure(parser.parse_args().paths, Settings()), Console(width=110))


if __name__ == "__main__":
    main()
