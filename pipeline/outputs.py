"""The written forms of results: JSON and Markdown of a document, rows of ``pages.jsonl`` and
``failures.jsonl``.

``docs/output.md`` documents them and ``pipeline/schema/output-v3.schema.json`` checks them. Writers take
pages one by one, so that memory stays flat whatever the number of pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, TextIO

from models.document import Document
from models.geometry import Box
from models.page import PageResult, Route
from models.text import Block, Line, writable
from models.transcription import Attempt, Degradation, PageAnswer

SCHEMA_VERSION: Final = 3
SKEW_DECIMALS: Final = 2
SIGNAL_DECIMALS: Final = 4

Json = Mapping[str, Any]


@cache
def output_schema() -> Json:
    """The JSON Schema (2020-12) of a document; its ``$defs`` hold ``page_row`` and ``failure_row``."""
    text = resources.files("pipeline").joinpath("schema/output-v3.schema.json").read_text("utf-8")
    schema: Json = json.loads(text)
    return schema


def document_header(document: Document, source: str) -> Json:
    """All of a document's JSON but its pages."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document_id": document.document_id,
        "source": writable(source),
        "media_type": str(document.media_type),
        "byte_count": document.byte_count,
        "page_count": document.page_count,
        "attachments": [writable(name) for name in document.attachments],
    }


def page_json(result: PageResult) -> Json:
    return {
        "page_number": result.page_number,
        "state": "done",
        "route": str(result.route),
        "read_by": str(result.read_by),
        "width_px": result.width_px,
        "height_px": result.height_px,
        "dpi": round(result.dpi, 2),
        "rotation_deg": result.rotation_deg,
        "skew_deg": round(result.skew_deg, SKEW_DECIMALS),
        "content_box": _whole_box_json(result.content_box),
        "text": writable(result.text),
        "markdown": writable(result.markdown),
        "confidence": _rounded(result.confidence),
        "triage": {
            "escalate": result.triage.escalate,
            "reasons": [
                {"signal": r.signal, "measured": _rounded(r.measured), "threshold": r.threshold}
                for r in result.triage.reasons
            ],
            "policy_version": result.triage.policy_version,
        },
        "signals": [{"name": s.name, "measured": _rounded(s.measured)} for s in result.signals],
        "lines": [_line_json(line) for block in result.blocks for line in block.lines],
        "blocks": _blocks_json(result.blocks),
        "tables": [{"box": _box_json(table.box), "html": writable(table.html)} for table in result.tables],
        "regions": [
            {"kind": str(r.kind), "box": _box_json(r.box), "confidence": _rounded(r.confidence)}
            for r in result.regions
        ],
        "visual_tokens_if_vlm": result.visual_tokens_if_vlm,
        "attempts": [],
        "degraded": None if result.degraded is None else degraded_json(result.degraded),
        "vlm": None,
        "elapsed_s": round(result.elapsed_s, 3),
        "error": None,
    }


def failed_page_json(page_number: int, *, code: str, message: str) -> Json:
    """A page that could not be read stands in its document all the same, so that nobody takes it for
    empty."""
    return {
        "page_number": page_number,
        "state": "failed",
        "route": None,
        "read_by": None,
        "width_px": None,
        "height_px": None,
        "dpi": None,
        "rotation_deg": None,
        "skew_deg": None,
        "content_box": None,
        "text": "",
        "markdown": "",
        "confidence": None,
        "triage": None,
        "signals": [],
        "lines": [],
        "blocks": [],
        "tables": [],
        "regions": [],
        "visual_tokens_if_vlm": None,
        "attempts": [],
        "degraded": None,
        "vlm": None,
        "elapsed_s": None,
        "error": {"code": code, "message": writable(message)},
    }


def transcribed_page_json(
    page: Json, answer: PageAnswer, *, model_id: str, attempts: Sequence[Attempt], elapsed_s: float
) -> Json:
    """A page read on the CPU, with the VLM's text in place of its own. ``lines`` and what hangs on them stay those of
    the CPU: they have the boxes. ``elapsed_s`` is what the VLM's part took."""
    return {
        **page,
        "route": str(Route.VLM),
        "text": writable(answer.text),
        "markdown": writable(answer.markdown),
        "tables": [{"box": None, "html": writable(html)} for html in answer.tables],
        "attempts": [attempt_json(attempt) for attempt in attempts],
        "degraded": None,
        "vlm": {
            "model_id": model_id,
            "language": answer.language,
            "is_blank": answer.is_blank,
            "removed": list(answer.removed),
        },
        "elapsed_s": round(page["elapsed_s"] + elapsed_s, 3),
    }


def untranscribed_page_json(
    page: Json, degradation: Degradation, *, attempts: Sequence[Attempt], elapsed_s: float
) -> Json:
    """A page that needed the VLM and did not get it: the CPU's text, and why."""
    return {
        **page,
        "route": str(Route.OCR_DEGRADED),
        "attempts": [attempt_json(attempt) for attempt in attempts],
        "degraded": degraded_json(degradation),
        "vlm": None,
        "elapsed_s": round(page["elapsed_s"] + elapsed_s, 3),
    }


def attempt_json(attempt: Attempt) -> Json:
    usage = attempt.usage
    return {
        "attempt": attempt.attempt,
        "request_id": attempt.request_id,
        "model_id": attempt.model_id,
        "tier": attempt.tier,
        "width_px": attempt.width_px,
        "height_px": attempt.height_px,
        "predicted_visual_tokens": attempt.predicted_visual_tokens,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "usage_is_estimated": usage.is_estimated,
        "verdict": str(attempt.verdict),
        "evidence": [
            {"name": e.name, "measured": _rounded(e.measured), "limit": e.limit, "sample": e.sample}
            for e in attempt.evidence
        ],
        "message": None if attempt.message is None else writable(attempt.message),
        "temperature": attempt.temperature,
        "elapsed_s": None if attempt.elapsed_s is None else round(attempt.elapsed_s, 3),
    }


def degraded_json(degradation: Degradation) -> Json:
    return {"code": str(degradation.code), "message": writable(degradation.message)}


def page_row(source: str, document_id: str, page: Json) -> Json:
    """A page's row of ``pages.jsonl``, from its JSON form."""
    triage = page["triage"]
    return {
        "source": writable(source),
        "document_id": document_id,
        "page_number": page["page_number"],
        "state": page["state"],
        "route": page["route"],
        "escalate": triage["escalate"] if triage else None,
        "reasons": triage["reasons"] if triage else [],
        "text_chars": len(page["text"]),
        "visual_tokens_if_vlm": page["visual_tokens_if_vlm"],
        "degraded": page["degraded"],
        "vlm_calls": len(page["attempts"]),
        "prompt_tokens": sum(attempt["prompt_tokens"] for attempt in page["attempts"]),
        "completion_tokens": sum(attempt["completion_tokens"] for attempt in page["attempts"]),
        "elapsed_s": page["elapsed_s"],
        "error": page["error"],
    }


def failure_row(source: str, code: str, message: str) -> Json:
    """A rejected or failed document's row of ``failures.jsonl``."""
    return {"source": writable(source), "code": code, "message": writable(message)}


def write_document_json(stream: TextIO, header: Json, pages: Iterable[Json]) -> None:
    """One JSON object, a page a line."""
    stream.write(json.dumps(header, ensure_ascii=False)[:-1])
    stream.write(', "pages": [')
    for index, page in enumerate(pages):
        stream.write(",\n" if index else "\n")
        json.dump(page, stream, ensure_ascii=False)
    stream.write("\n]}\n")


def write_document_markdown(stream: TextIO, header: Json, pages: Iterable[Json]) -> None:
    """Each page after a comment that names its number, its route and why."""
    stream.write(f"<!-- {_comment(header['source'])}, document {header['document_id']} -->\n")
    for page in pages:
        stream.write(f"\n<!-- {_comment(page_marker(page))} -->\n")
        error = page["error"]
        if error is not None:
            stream.write(f"\n> Page {page['page_number']} could not be read: {error['message']}\n")
        elif page["markdown"]:
            stream.write(f"\n{page['markdown']}\n")


def page_marker(page: Json) -> str:
    """Like ``page 3: ocr_degraded (no_vlm): table_ruled_cells 18 ≥ 12``."""
    if page["error"] is not None:
        return f"page {page['page_number']}: failed: {page['error']['code']}"
    marker = f"page {page['page_number']}: {page['route']}"
    if page["degraded"] is not None:
        marker += f" ({page['degraded']['code']})"
    reasons = reasons_in_words(page)
    return f"{marker}: {reasons}" if reasons else marker


def reasons_in_words(page: Json) -> str:
    """The signals of a page that was read that crossed, like ``table_ruled_cells 18 ≥ 12``; empty for none."""
    return ", ".join(_reason(reason) for reason in page["triage"]["reasons"])


def _reason(reason: Json) -> str:
    sign = "≥" if reason["measured"] >= reason["threshold"] else "<"
    return f"{reason['signal']} {reason['measured']:.3g} {sign} {reason['threshold']:.3g}"


def _comment(text: str) -> str:
    """Text that cannot end the HTML comment it stands in."""
    return " ".join(text.replace("--", "- -").replace(">", "›").split())


def _line_json(line: Line) -> Json:
    return {
        "text": writable(line.text),
        "box": _box_json(line.box),
        "confidence": _rounded(line.confidence),
        "words": [
            {"text": writable(w.text), "box": _box_json(w.box), "confidence": _rounded(w.confidence)}
            for w in line.words
        ],
    }


def _blocks_json(blocks: Iterable[Block]) -> list[Json]:
    """Blocks refer to the page's lines, which are in the same order, by the number of the first (from 0)."""
    result: list[Json] = []
    first = 0
    for block in blocks:
        result.append(
            {
                "kind": str(block.kind),
                "heading_level": block.heading_level,
                "box": _box_json(block.box),
                "first_line": first,
                "line_count": len(block.lines),
            }
        )
        first += len(block.lines)
    return result


def _box_json(box: Box) -> list[float]:
    """``[left, top, right, bottom]`` to a tenth of a pixel."""
    return [round(float(edge), 1) for edge in (box.left, box.top, box.right, box.bottom)]


def _whole_box_json(box: Box) -> list[int]:
    return [int(edge) for edge in (box.left, box.top, box.right, box.bottom)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), SIGNAL_DECIMALS)
