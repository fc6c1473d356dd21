"""The document's own bytes, for the formats that show its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from models.document import MediaType
from models.errors import PageFailed
from pipeline.ports import PdfEngine
from pipeline.rasterise import rasterise_pages
from pipeline.settings import RasteriseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """``path`` has the bytes that intake took. ``build_pdf`` gives the engine that opens PDFs, asked for only when a
    page has to be drawn."""

    path: Path
    media_type: MediaType
    password: str | None = field(repr=False)
    build_pdf: Callable[[], PdfEngine]
    rasterise: RasteriseSettings

    def drawn_pages(self, page_numbers: Sequence[int]) -> Iterator[Image.Image | PageFailed]:
        """Each page asked for in pixels ("L" or "RGB", upright as delivered), or why it has none; a few in memory at a
        time. Raises what ``rasterise_pages`` raises."""
        for _, outcome in rasterise_pages(
            self.path,
            self.media_type,
            page_numbers,
            pdf=self.build_pdf(),
            settings=self.rasterise,
            password=self.password,
        ):
            yield outcome if isinstance(outcome, PageFailed) else outcome.image
