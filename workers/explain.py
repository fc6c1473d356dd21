"""Why a page went the way it went, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict, cast

from models.errors import PageNotFound
from models.page import ReadBy, RegionKind, Route
from pipeline.signals.names import SignalName
from workers.signal_words import signal_in_words

ROUTES_IN_WORDS = {
    Route.TEXT_LAYER: "the PDF's own text layer was sound and was used as it is",
    Route.OCR: "read by OCR on the CPU, which was good enough",
    Route.VLM: "read by the vision-language model",
    Route.BLANK: "no ink worth reading, nothing was run on it",
    Route.OCR_DEGRADED: "needs the vision-language model and did not get it",
}


KIND_OF_SIGNAL: Final[Mapping[str, RegionKind]] = {
    SignalName.HANDWRITING_PROBABILITY: RegionKind.HANDWRITING,
    SignalName.HANDWRITING_LIKENESS: RegionKind.HANDWRITING,
    SignalName.STAMP_STRENGTH: RegionKind.STAMP,
    SignalName.TABLE_RULED_CELLS: RegionKind.TABLE,
    SignalName.TABLE_ALIGNED_ROWS: RegionKind.TABLE,
    SignalName.TABLE_LAYOUT_CONFIDENCE: RegionKind.TABLE,
    SignalName.UNCOVERED_INK_SHARE: RegionKind.UNCOVERED_INK,
    SignalName.UNCOVERED_LINE_SHARE: RegionKind.UNCOVERED_INK,
}
"""Where a signal's evidence stands on the page."""

BY_ORDER = (SignalName.FORCED_VLM, SignalName.FORCED_OCR, SignalName.AUDIT)
"""Reasons that are no measure of the page."""


class ReasonJson(TypedDict):
    signal: str
    measured: float
    threshold: float


class TriageJson(TypedDict):
    escalate: bool
    reasons: list[ReasonJson]
    policy_version: str


class RegionJson(TypedDict):
    kind: str
    box: list[float]


class SignalJson(TypedDict):
    name: str
    measured: float | None


class ErrorJson(TypedDict):
    code: str
    message: str


class EvidenceJson(TypedDict):
    name: str
    measured: float
    limit: float


class AttemptJson(TypedDict):
    attempt: int
    model_id: str
    tier: str
    width_px: int
    height_px: int
    predicted_visual_tokens: int
    prompt_tokens: int
    completion_tokens: int
    usage_is_estimated: bool
    verdict: str
    evidence: list[EvidenceJson]
    message: str | None
    elapsed_s: float | None


class RequiredPageJson(TypedDict):
    page_number: int
    route: str
    width_px: int
    height_px: int
    dpi: float
    rotation_deg: int
    confidence: float | None
    triage: TriageJson
    visual_tokens_if_vlm: int
    elapsed_s: float


class PageJson(RequiredPageJson, total=False):
    """The parts of a page in the output JSON that explain it."""

    read_by: str
    skew_deg: float
    signals: list[SignalJson]
    regions: list[RegionJson]
    attempts: list[AttemptJson]
    degraded: ErrorJson | None
    error: ErrorJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPage:
    """A page to explain and the document it belongs to."""

    source: str
    document_id: str
    page: PageJson


def explanation(explained: ExplainedPage) -> Iterator[str]:
    """One line a fact; the reasons last."""
    page = explained.page
    yield f"{explained.source}, page {page['page_number']} (document {explained.document_id[:16]})"
    yield f"route: {page['route']}: {_route_in_words(page)}"
    reader = "words and boxes by" if page["route"] == Route.VLM else "read by"
    yield f"{reader}: {page.get('read_by', 'unknown')}, in {page['elapsed_s']:.1f} s"
    yield f"confidence: {_confidence_in_words(page['confidence'])}"
    yield f"page: {page['width_px']} x {page['height_px']} px at {page['dpi']:.0f} dpi{_turn_in_words(page)}"
    yield f"visual tokens if sent to the model: {page['visual_tokens_if_vlm']:,}"
    yield from _attempts_in_words(page)
    yield from _reasons_in_words(page)


def reason_in_words(reason: ReasonJson) -> str:
    """Like ``share of characters …: 0.31 is above the limit of 0.15 (unsure_character_share)``."""
    words = signal_in_words(reason["signal"])
    if reason["signal"] in BY_ORDER:
        return words
    measured, threshold = reason["measured"], reason["threshold"]
    side = "is below" if measured < threshold else "is above" if measured > threshold else "reaches"
    return f"{words}: {_number(measured)} {side} the limit of {_number(threshold)} ({reason['signal']})"


def contribution_in_words(reason: ReasonJson) -> str:
    """A signal that raised the probability has no limit of its own, but a value at which it would not have."""
    words, side = signal_in_words(reason["signal"]), "below"
    if reason["measured"] >= reason["threshold"]:
        side = "above"
    measured, neutral = _number(reason["measured"]), _number(reason["threshold"])
    return f"raised by {words}: {measured}, {side} the neutral {neutral} ({reason['signal']})"


def measured_signals(page: PageJson) -> Iterator[str]:
    """Every signal of the page, crossed or not."""
    for signal in page.get("signals", ()):
        measured = signal["measured"]
        value = "does not apply" if measured is None else _number(measured)
        yield f"{signal_in_words(signal['name'])}: {value} ({signal['name']})"


def page_of_output(path: Path, page_number: int) -> ExplainedPage:
    """A page of a JSON file that an ingest wrote. Raises PageNotFound."""
    try:
        output = json.loads(path.read_bytes())
        pages: Sequence[PageJson] = output["pages"]
        found = next((page for page in pages if page["page_number"] == page_number), None)
        source, document_id = str(output["source"]), str(output["document_id"])
        is_complete = found is None or set(found) >= RequiredPageJson.__required_keys__
    except (ValueError, LookupError, TypeError) as error:
        raise PageNotFound(f"{path}: no output of doctriage; give a document's JSON file") from error
    if found is None:
        raise PageNotFound(f"{path}: has no page {page_number}; its pages are 1 to {len(pages)}")
    if not is_complete:
        raise PageNotFound(f"{path}: page {page_number} is no output of doctriage; ingest the document again")
    failure = found.get("error")
    if failure is not None:
        raise PageNotFound(f"{source}: page {page_number} could not be read: {failure['message']}")
    return ExplainedPage(source=source, document_id=document_id, page=found)


def as_page_json(page: Mapping[str, object]) -> PageJson:
    """The store gives a page back as it was written into the output."""
    return cast("PageJson", page)


def _reasons_in_words(page: PageJson) -> Iterator[str]:
    triage = page["triage"]
    policy = f"policy {triage['policy_version']}"
    if not triage["reasons"]:
        yield f"no reason to send it to the model: neither a rule nor the probability ({policy})"
        return
    if triage["escalate"]:
        yield f"why it needs the model ({policy}):"
    else:
        yield f"reasons for the model, though the page was not sent ({policy}):"
    is_part = False
    for reason in triage["reasons"]:
        words = f"    - {contribution_in_words(reason)}" if is_part else f"  - {reason_in_words(reason)}"
        yield f"{words}{_places_in_words(reason, page)}"
        is_part = is_part or reason["signal"] == SignalName.NEEDS_VLM_PROBABILITY


def _attempts_in_words(page: PageJson) -> Iterator[str]:
    """A line a call, with what it cost and what was wrong with it."""
    attempts = page.get("attempts", [])
    if attempts:
        yield "calls to the VLM:"
    for attempt in attempts:
        billed = "estimated" if attempt["usage_is_estimated"] else "billed"
        seconds = "" if attempt["elapsed_s"] is None else f" in {attempt['elapsed_s']:.1f} s"
        yield (
            f"  {attempt['attempt']}. {attempt['model_id']}{seconds}, tier {attempt['tier']}, "
            f"{attempt['width_px']} x {attempt['height_px']} px: {attempt['predicted_visual_tokens']:,} visual "
            f"tokens predicted, {attempt['prompt_tokens']:,} + {attempt['completion_tokens']:,} tokens {billed}: "
            f"{_verdict_in_words(attempt)}"
        )


def _verdict_in_words(attempt: AttemptJson) -> str:
    numbers = ", ".join(
        f"{one['name']} {_number(one['measured'])}, limit {_number(one['limit'])}"
        for one in attempt["evidence"]
    )
    details = "; ".join(part for part in (numbers, attempt["message"]) if part)
    return f"{attempt['verdict']} ({details})" if details else attempt["verdict"]


def _places_in_words(reason: ReasonJson, page: PageJson) -> str:
    """Like ``: 3 regions, 4 % of the page``; nothing for a signal of the page as a whole."""
    kind = KIND_OF_SIGNAL.get(reason["signal"])
    boxes = [region["box"] for region in page.get("regions", ()) if region["kind"] == kind]
    if kind is None or not boxes:
        return ""
    covered = sum((right - left) * (bottom - top) for left, top, right, bottom in boxes)
    share = min(covered / (page["width_px"] * page["height_px"]), 1.0)
    return f": {len(boxes)} {'region' if len(boxes) == 1 else 'regions'}, {100 * share:.0f} % of the page"


def _route_in_words(page: PageJson) -> str:
    if page["route"] not in set(Route):
        return "unknown route"
    route = Route(page["route"])
    if route is not Route.OCR_DEGRADED:
        return ROUTES_IN_WORDS[route]
    degraded = page.get("degraded")
    if degraded is not None:
        return f"{degraded['code']}: {degraded['message']}"
    text = "text layer's" if page.get("read_by") == ReadBy.TEXT_LAYER else "OCR"
    return f"{ROUTES_IN_WORDS[route]}; the {text} text was kept"


def _confidence_in_words(confidence: float | None) -> str:
    return (
        "none (nothing was recognised; the text is the document's own)"
        if confidence is None
        else f"{confidence:.3f}"
    )


def _turn_in_words(page: PageJson) -> str:
    turned = f", turned {page['rotation_deg']} degrees clockwise to read" if page["rotation_deg"] else ""
    skew_deg = page.get("skew_deg", 0.0)
    return turned + (f", skewed by {skew_deg:.1f} degrees" if abs(skew_deg) >= 0.05 else "")


def _number(value: float) -> str:
    return f"{value:.4g}"
