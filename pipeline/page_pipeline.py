"""A batch of one document's pages, through all the stages in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from models.document import Document, MediaType
from models.errors import PageFailed
from models.geometry import Box
from models.page import PageReading, PageResult, PageScore, ReadBy, TriageDecision
from models.transcription import Degradation, DegradedCode
from pipeline.assemble import assemble_page
from pipeline.escalated_page import tier_for
from pipeline.fit import page_fit
from pipeline.margins import content_box
from pipeline.outputs import SIGNAL_DECIMALS
from pipeline.planning.serving_plan import ServingPlan
from pipeline.policy import Policy
from pipeline.ports import LayoutDetector, PageRaster, PdfEngine, TextLayer
from pipeline.rasterise import rasterise_pages
from pipeline.read import Readers, read_page
from pipeline.score import score_page
from pipeline.second_opinion import is_wanted, joined_score, second_opinion, with_opinion
from pipeline.settings import Settings
from pipeline.signals.names import SignalName
from pipeline.triage import Audit, audit_draw, probability_signal, triage_page
from pipeline.upright import UprightPage

NO_VLM = Degradation(
    code=DegradedCode.NO_VLM,
    message="no VLM is configured; set DOCTRIAGE_VLM__URL (or --vlm-url) and read it again",
)
AWAITING_VLM = Degradation(
    code=DegradedCode.AWAITING_VLM, message="waits for the VLM; run again if the run was stopped"
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Everything that the stages need built. ``versions`` names each engine that can change a result."""

    pdf: PdfEngine
    readers: Readers
    layout: LayoutDetector
    versions: Mapping[str, str]


def read_pages(
    path: Path,
    document: Document,
    page_numbers: Sequence[int],
    engines: Engines,
    settings: Settings,
    policy: Policy,
    plan: ServingPlan,
    password: str | None,
) -> Iterator[tuple[int, PageResult | PageFailed]]:
    """Every page asked for, in order, as soon as it is there: its result, or the failure that is its own.

    A page's time includes its share of the rendering: the first of a batch waits for all of them.
    """
    started_s = time.monotonic()
    for page_number, raster in rasterise_pages(
        path,
        document.media_type,
        page_numbers,
        pdf=engines.pdf,
        settings=settings.rasterise,
        password=password,
    ):
        if isinstance(raster, PageFailed):
            yield page_number, raster
        else:
            layer = _text_layer(path, document, page_number, engines.pdf, password)
            judge = _Judge(settings, policy, plan, document.document_id)
            yield page_number, _result_or_failure(raster, layer, engines, judge, started_s)
        started_s = time.monotonic()


def _text_layer(
    path: Path, document: Document, page_number: int, pdf: PdfEngine, password: str | None
) -> TextLayer | None:
    """None for an image, and for a page whose objects cannot be parsed though poppler could draw it."""
    if document.media_type is not MediaType.PDF:
        return None
    try:
        return next(pdf.text_layers(path, [page_number], password), None)
    except PageFailed as failure:
        log.info("text_layer_unreadable", page_number=page_number, reason=str(failure))
        return None


@dataclass(frozen=True, slots=True)
class _Judge:
    """What decides over a page of one document."""

    settings: Settings
    policy: Policy
    plan: ServingPlan
    document_id: str

    def decide(self, score: PageScore, page_number: int) -> TriageDecision:
        triage = self.settings.triage
        draw = audit_draw(self.document_id, page_number)
        return triage_page(
            score,
            policy=self.policy,
            least_probability=self.policy.thresholds.of(triage.profile),
            route=self.settings.route,
            audit=Audit(draw=draw, share=triage.audit_share),
        )


def _result_or_failure(
    raster: PageRaster, layer: TextLayer | None, engines: Engines, judge: _Judge, started_s: float
) -> PageResult | PageFailed:
    try:
        return _read_one(raster, layer, engines, judge, started_s)
    except PageFailed as failure:
        return failure


def _read_one(
    raster: PageRaster, layer: TextLayer | None, engines: Engines, judge: _Judge, started_s: float
) -> PageResult:
    settings = judge.settings
    reading, upright = read_page(raster, layer, readers=engines.readers, settings=settings.read)
    score = score_page(upright, reading, layout=engines.layout)
    reading, score = _with_second_opinion(upright, reading, score, engines)
    decision = judge.decide(score, raster.page_number)
    score = replace(score, signals=(*score.signals, *probability_signal(decision)))
    content = _content_box(raster, upright, reading)
    return assemble_page(
        raster.page_number,
        upright,
        reading,
        score,
        decision,
        content_box=content,
        visual_tokens_if_vlm=_visual_tokens(content, score, judge.plan),
        elapsed_s=time.monotonic() - started_s,
        without_vlm=AWAITING_VLM if settings.vlm.is_configured else NO_VLM,
    )


def _content_box(delivered: PageRaster, upright: UprightPage, reading: PageReading) -> Box:
    """On the upright page; all of it where there is nothing to read."""
    if reading.read_by is ReadBy.NOTHING:
        return Box(0, 0, *upright.raster.image.size)
    return content_box(delivered.image, upright)


def _visual_tokens(content: Box, score: PageScore, plan: ServingPlan) -> int:
    """What the page would cost the VLM in the tier that it needs. That is chosen from what its JSON keeps, which is
    rounded."""
    heights = (one.measured for one in score.signals if one.name == SignalName.TEXT_HEIGHT_PX)
    height_px = next(heights, None)
    if height_px is not None:
        height_px = round(height_px, SIGNAL_DECIMALS)
    size = int(content.width), int(content.height)
    tier = tier_for(height_px, *size, plan)
    return sum(strip.visual_tokens for strip in page_fit(*size, plan.budget_of(tier), tier))


def _with_second_opinion(
    upright: UprightPage, reading: PageReading, score: PageScore, engines: Engines
) -> tuple[PageReading, PageScore]:
    second = engines.readers.second
    if second is None or not is_wanted(reading, score):
        return reading, score
    opinion = second_opinion(upright, reading, second)
    if opinion is None:
        return reading, score
    if opinion.reading is not reading:
        score = joined_score(score, score_page(upright, opinion.reading, layout=engines.layout))
    return opinion.reading, with_opinion(score, opinion)
