"""Labelled pages, read: the ordinary run over their files, and what it measured on each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from models.choices import RoutePolicy
from models.page import PageScore, Signal
from pipeline.blobs import sha256_of
from pipeline.policy import Measured, Policy, ProfileThresholds
from pipeline.settings import Settings, TriageSettings
from pipeline.signals.names import SignalName
from workers import local
from workers.bootstrap import build_engines
from workers.events import DocumentFinished, Event, IngestReport, IngestRequest
from workers.labelled import LabelledPage
from workers.messages import EngineBuilder

STATE_FOLDER: Final = "evaluation"
COST_CENTRE: Final = "evaluation"
"""Of labelled pages, in ``DOCTRIAGE_HOME``."""

NO_POLICY: Final = Policy(
    schema_version=1,
    policy_version="none",
    thresholds=ProfileThresholds(thorough=1, balanced=1, thrifty=1),
    bias=0,
    signals=(),
    rules=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPage:
    """A labelled page and what was read on it; nothing of that where the page failed (``is_read`` is False)."""

    label: LabelledPage
    is_read: bool
    text: str = ""
    tables: tuple[str, ...] = ()
    signals: Measured = field(default_factory=dict)
    visual_tokens: int = 0
    """Those of a page that goes to the model."""

    @property
    def is_blank(self) -> bool:
        return self.signals.get(SignalName.BLANK) is not None

    @property
    def score(self) -> PageScore:
        signals = (Signal(name=name, measured=value) for name, value in self.signals.items())
        return PageScore(signals=tuple(signals), regions=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReading:
    pages: tuple[MeasuredPage, ...]
    report: IngestReport


def read_labelled_pages(
    labels: Sequence[LabelledPage],
    out_dir: Path,
    *,
    settings: Settings,
    on_event: Callable[[Event], None],
    engine_builder: EngineBuilder = build_engines,
) -> CorpusReading:
    """Read what was not read before, into ``out_dir``, and pick up every page's signals and text.

    No policy has a say in that, so that one reading serves them all; its state is kept apart, so that nobody takes
    it for a decision. ``pages`` is empty where the run was interrupted. Raises what ``workers.local.ingest``
    raises.
    """
    outputs: dict[str, Path] = {}

    def on_each(event: Event) -> None:
        if isinstance(event, DocumentFinished) and event.outputs:
            outputs[event.document_id] = event.outputs[0]
        on_event(event)

    request = IngestRequest(
        paths=tuple(dict.fromkeys(label.path for label in labels)),
        out_dir=out_dir,
        cost_centre=COST_CENTRE,
        formats=("json",),
    )
    apart = {
        "home": settings.home / STATE_FOLDER,
        "database_url": None,
        "triage": TriageSettings(),
        "route": RoutePolicy.AUTO,
    }
    report = local.ingest(
        request,
        settings=settings.model_copy(update=apart),
        on_event=on_each,
        engine_builder=engine_builder,
        policy=NO_POLICY,
    )
    if report.is_interrupted:
        return CorpusReading(pages=(), report=report)
    return CorpusReading(pages=tuple(_measured(label, outputs) for label in labels), report=report)


def _measured(label: LabelledPage, outputs: Mapping[str, Path]) -> MeasuredPage:
    output = outputs.get(sha256_of(label.path))
    page = None if output is None else _page(output, label.row.page_number)
    if page is None or page["error"] is not None:
        return MeasuredPage(label=label, is_read=False)
    return MeasuredPage(
        label=label,
        is_read=True,
        text=page["text"],
        tables=tuple(table["html"] for table in page["tables"]),
        signals={signal["name"]: signal["measured"] for signal in page["signals"]},
        visual_tokens=page["visual_tokens_if_vlm"],
    )


def _page(output: Path, page_number: int) -> Mapping[str, Any] | None:
    pages: Sequence[Mapping[str, Any]] = json.loads(output.read_bytes())["pages"]
    return next((page for page in pages if page["page_number"] == page_number), None)
