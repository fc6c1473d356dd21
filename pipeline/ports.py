"""What the stages need from the outside, as protocols. ``pipeline.engines`` implements them, ``workers.bootstrap``
builds them, and tests run one contract suite against every implementation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PIL import Image

from models.geometry import Box
from models.page import Region
from models.text import Line
from models.transcription import VlmReply, VlmRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRaster:
    """One page in pixels, as delivered (EXIF orientation and /Rotate applied), mode "L" or "RGB" on white.

    ``dpi`` is the resolution to tell an OCR engine. ``px_per_pt`` is pixels per PDF point (dpi / 72 for a PDF whose
    user unit is 1) and None for images. ``is_damaged``: the image that the page consists of could not be decoded in
    full, so that what is missing looks like paper.
    """

    page_number: int
    image: Image.Image
    dpi: float
    px_per_pt: float | None = None
    is_damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfFacts:
    """What a PDF says of itself without rendering anything."""

    page_count: int
    attachments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyph:
    """One character of a PDF's text layer. The box is tight around the drawn shape, in points of the displayed page
    (crop box, /Rotate applied), origin top left. ``angle_deg`` is the baseline's clockwise turn on the displayed
    page (0 for upright text).

    ``is_generated``: a space or line break ("\\n") that the engine put in; its box says nothing. ``is_painted`` is
    False for text that the page itself does not show: rendered invisible, or under an image painted later.
    ``font_number`` tells glyphs of one font from those of another within the page."""

    text: str
    box: Box
    font_size_pt: float
    angle_deg: float
    is_generated: bool = False
    is_painted: bool = True
    font_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLayer:
    """A PDF page's own text, in the layer's logical order, and the size of the displayed page in points.

    ``images`` are the boxes of raster images on the page (points, displayed frame): a scan has one that covers it."""

    page_number: int
    width_pt: float
    height_pt: float
    glyphs: tuple[Glyph, ...]
    images: tuple[Box, ...]
    unmapped_glyph_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageShape:
    """The displayed page of a PDF (crop box, /Rotate applied) in its own units, before anything is rendered.

    ``scan_dpi`` is the resolution of the raster images where they cover most of the page, and
    ``text_size_pt`` the median letter size; both are looked up only for pages of unusual size and are None
    elsewhere.
    """

    width_pt: float
    height_pt: float
    scan_dpi: float | None = None
    text_size_pt: float | None = None


class PdfEngine(Protocol):
    """Opens PDFs without rendering them. All methods raise ``DocumentCorrupt``, ``DocumentEncrypted`` or
    ``WrongPassword``; a page that cannot be parsed raises ``PageFailed``."""

    def inspect(self, path: Path, password: str | None) -> PdfFacts: ...

    def page_shapes(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> tuple[PageShape | None, ...]:
        """One shape a page, in the order asked for; None for a page that cannot be loaded or has no area."""
        ...

    def render(self, path: Path, page_number: int, *, dpi: float, password: str | None) -> Image.Image:
        """The page as "RGB" on white, where the first renderer fails. Raises ``PageNotRendered``."""
        ...

    def scan_damage(
        self, path: Path, page_number: int, *, password: str | None, is_suspect: bool
    ) -> bool | None:
        """Whether parts of the images that cover most of the page are missing; None where no images cover it.
        Costs milliseconds, or as much as drawing where ``is_suspect`` asks for a close look."""
        ...

    def text_layers(
        self, path: Path, page_numbers: Sequence[int], password: str | None
    ) -> Iterator[TextLayer]:
        """One layer a page, in the order asked for; form field appearances are flattened first, so typed values
        are part of the text."""
        ...


class OcrEngine(Protocol):
    """Reads an upright page image on the CPU.

    ``read`` returns lines in the engine's own reading order with boxes in pixels of ``image``; words carry a
    confidence of 0 to 1; text is NFC and holds no control characters; an image without text gives no lines.
    It raises ``EngineError`` for a page that failed and ``EngineUnavailable`` for a missing language or binary.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Changes whenever the same pixels could read differently: engine, weights and options."""
        ...

    def read(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]: ...


class OrientationDetector(Protocol):
    def quarter_turn(self, image: Image.Image) -> tuple[int, float]:
        """The clockwise turn in degrees (0, 90, 180, 270) that makes the page upright, and its confidence 0 to 1."""
        ...


class SkewDetector(Protocol):
    def skew_deg(self, image: Image.Image) -> float:
        """The clockwise turn in degrees (within ±15) that straightens an upright page."""
        ...


class LayoutDetector(Protocol):
    def regions(self, image: Image.Image) -> tuple[Region, ...]:
        """Tables and figures with confidences, boxes in pixels of ``image`` (upright)."""
        ...


class LanguageIdentifier(Protocol):
    def identify(self, text: str) -> tuple[str, float]:
        """The likeliest language of a text in Latin script (ISO 639-1) and its probability, 0 to 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSight:
    """What script a page seems to be in, by Tesseract's name, and the clockwise turn in degrees (0, 90, 180, 270)
    that would make it upright. Both confidences start at 0 and have no end."""

    script: str
    confidence: float
    turn_deg: int
    turn_confidence: float


class ScriptReader(Protocol):
    """Neither method raises for a page of which nothing can be said; ``EngineUnavailable`` for a missing binary."""

    def sight(self, image: Image.Image, *, dpi: float) -> ScriptSight | None:
        """Script and direction by the shapes of letters, whatever languages are installed."""
        ...

    def glance(self, image: Image.Image, *, dpi: float, languages: Sequence[str]) -> tuple[Line, ...]:
        """One quick reading of a part of a page, good enough to compare languages."""
        ...


class VlmEngine(Protocol):
    """Sends pages to a vision-language model behind an OpenAI-compatible endpoint.

    ``transcribe`` makes exactly one call, never a retry, and raises one of the ``VlmError`` tree where no answer
    came of it. The prompt is its own: a request brings images and sampling only."""

    @property
    def model_id(self) -> str:
        """The name the server knows the model by."""
        ...

    async def transcribe(self, request: VlmRequest) -> VlmReply: ...

    async def close(self) -> None: ...
