"""One page's way through the house, as values: score, decision, result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from models.geometry import Box
from models.text import Block, Line
from models.transcription import Degradation


class Route(StrEnum):
    """How a page's text came about; ``ocr_degraded`` needed the VLM and did not get it."""

    TEXT_LAYER = "text_layer"
    OCR = "ocr"
    VLM = "vlm"
    BLANK = "blank"
    OCR_DEGRADED = "ocr_degraded"


class RegionKind(StrEnum):
    TABLE = "table"
    STAMP = "stamp"
    HANDWRITING = "handwriting"
    FIGURE = "figure"
    UNCOVERED_INK = "uncovered_ink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Something seen on the page that is not a line of text. ``confidence`` is 0 to 1."""

    kind: RegionKind
    box: Box
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose cells are known. ``html`` is a plain ``<table>`` with rowspan and colspan."""

    box: Box
    html: str


class ReadBy(StrEnum):
    """Which reader gave the words."""

    NOTHING = "nothing"
    TEXT_LAYER = "text_layer"
    TESSERACT = "tesseract"
    PADDLEOCR = "paddleocr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One measured number with a name; None where it does not apply (OCR confidence of a text layer)."""

    name: str
    measured: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReading:
    """What a reader made of one page, in reading order. Boxes are in the upright page.

    ``signals`` are those measured while reading (text-layer soundness, ink share).
    """

    read_by: ReadBy
    blocks: tuple[Block, ...]
    signals: tuple[Signal, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for block in self.blocks for line in block.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScore:
    """The signals of one page, and the regions that are their evidence (boxes in the upright page)."""

    signals: tuple[Signal, ...]
    regions: tuple[Region, ...]
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageReason:
    """A signal that crossed its threshold."""

    signal: str
    measured: float
    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageDecision:
    """``escalate``: the page needs the VLM. ``reasons`` lists what speaks for that, also when overridden.
    ``probability`` of that need by the policy, 0 to 1; None for a page that was not judged, such as a blank
    one."""

    escalate: bool
    reasons: tuple[TriageReason, ...]
    policy_version: str
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResult:
    """Everything known of one finished page, boxes in the page as delivered; ``docs/output.md``
    documents its JSON form. ``content_box`` is what of it a VLM is sent, in whole pixels of the upright page.

    ``rotation_deg`` is the clockwise quarter turn (0, 90, 180, 270) that makes the page upright, ``skew_deg`` the
    small clockwise turn after it that straightens the lines. ``degraded`` says why a page with the route
    ``ocr_degraded`` has it.
    """

    page_number: int
    route: Route
    read_by: ReadBy
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    skew_deg: float
    content_box: Box
    text: str
    markdown: str
    confidence: float | None
    triage: TriageDecision
    signals: tuple[Signal, ...]
    blocks: tuple[Block, ...]
    tables: tuple[Table, ...]
    regions: tuple[Region, ...]
    visual_tokens_if_vlm: int
    elapsed_s: float
    degraded: Degradation | None = None
