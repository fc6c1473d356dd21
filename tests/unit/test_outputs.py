"""The written forms: valid by the schema, whole, and flat in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from models.document import Document, MediaType
from models.geometry import Box
from models.page import (
    PageResult,
    ReadBy,
    Region,
    RegionKind,
    Route,
    Signal,
    Table,
    TriageDecision,
    TriageReason,
)
from models.text import Block, BlockKind, Line, Word
from models.transcription import DegradedCode
from pipeline import outputs

DOCUMENT = Document(
    document_id="ab" * 32, media_type=MediaType.PDF, byte_count=9, page_count=3, attachments=("a.csv",)
)
VALIDATOR = jsonschema.Draft202012Validator(outputs.output_schema())


def result(**changes: Any) -> PageResult:
    word = Word(text="Tea", box=Box(1.04, 2, 30.26, 12), confidence=0.912345)
    line = Line(text="Tea", box=word.box, confidence=0.912345, words=(word,))
    values: dict[str, Any] = {
        "page_number": 1,
        "route": Route.OCR_DEGRADED,
        "read_by": ReadBy.TESSERACT,
        "width_px": 100,
        "height_px": 200,
        "dpi": 200.0,
        "rotation_deg": 90,
        "skew_deg": -1.234,
        "content_box": Box(10, 20, 190, 90),
        "text": "Tea",
        "markdown": "Tea",
        "confidence": 0.912345,
        "triage": TriageDecision(
            escalate=True,
            reasons=(TriageReason(signal="table_ruled_cells", measured=12.0, threshold=6.0),),
            policy_version="1",
        ),
        "signals": (Signal(name="skew_deg", measured=None), Signal(name="confidence_p10", measured=0.5)),
        "blocks": (Block(kind=BlockKind.HEADING, lines=(line,), box=line.box, heading_level=2),),
        "tables": (Table(box=Box(0, 0, 9, 9), html="<table><tr><td>1</td></tr></table>"),),
        "regions": (Region(kind=RegionKind.STAMP, box=Box(5, 5, 9, 9), confidence=0.8),),
        "visual_tokens_if_vlm": 324,
        "elapsed_s": 1.23456,
    }
    return PageResult(**(values | changes))


def written_json(pages: list[outputs.Json]) -> Any:
    stream = io.StringIO()
    outputs.write_document_json(stream, outputs.document_header(DOCUMENT, "a/inv.pdf"), iter(pages))
    return json.loads(stream.getvalue())


def errors_in(instance: Any, definition: str | None = None) -> list[str]:
    validator = VALIDATOR
    if definition:
        schema = outputs.output_schema()
        validator = jsonschema.Draft202012Validator({**schema, **schema["$defs"][definition]})
    return [error.message for error in validator.iter_errors(instance)]


def test_a_document_with_a_good_a_blank_and_a_failed_page_is_valid() -> None:
    blank = result(
        page_number=2,
        route=Route.BLANK,
        read_by=ReadBy.NOTHING,
        blocks=(),
        text="",
        markdown="",
        confidence=None,
    )
    failed = outputs.failed_page_json(3, code="page_not_rendered", message="print it anew")
    document = written_json([outputs.page_json(result()), outputs.page_json(blank), failed])
    assert errors_in(document) == []
    assert [page["state"] for page in document["pages"]] == ["done", "done", "failed"]
    assert document["pages"][2]["route"] is None
    assert document["pages"][2]["error"] == {"code": "page_not_rendered", "message": "print it anew"}


@pytest.mark.parametrize("key", ["route", "lines", "triage", "error", "state", "content_box"])
def test_the_schema_misses_no_missing_key(key: str) -> None:
    page = dict(outputs.page_json(result()))
    del page[key]
    assert errors_in(written_json([page])) != []


def test_the_schema_and_the_docs_have_every_reason_for_going_without_the_vlm() -> None:
    codes = outputs.output_schema()["$defs"]["degraded"]["properties"]["code"]["enum"]
    assert sorted(codes) == sorted(DegradedCode)
    docs = (Path(__file__).parent.parent.parent / "docs" / "output.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"| `{code}` |" not in docs] == []


def test_the_schema_refuses_a_failed_page_with_text_and_an_unknown_key() -> None:
    failed = outputs.failed_page_json(1, code="x", message="y")
    assert errors_in(written_json([{**failed, "text": "half"}])) != []
    assert errors_in(written_json([{**outputs.page_json(result()), "extra": 1}])) != []


def test_numbers_are_rounded_and_boxes_are_left_top_right_bottom() -> None:
    page = outputs.page_json(result())
    assert page["lines"][0]["words"][0] == {
        "text": "Tea",
        "box": [1.0, 2.0, 30.3, 12.0],
        "confidence": 0.9123,
    }
    assert page["blocks"] == [
        {
            "kind": "heading",
            "heading_level": 2,
            "box": [1.0, 2.0, 30.3, 12.0],
            "first_line": 0,
            "line_count": 1,
        }
    ]
    assert (page["elapsed_s"], page["skew_deg"]) == (1.235, -1.23)
    assert page["content_box"] == [10, 20, 190, 90]
    assert all(type(edge) is int for edge in page["content_box"])


def test_rows_are_valid_and_tell_the_reasons() -> None:
    row = outputs.page_row("a/inv.pdf", DOCUMENT.document_id, outputs.page_json(result()))
    assert errors_in(row, "page_row") == []
    assert row["reasons"] == [{"signal": "table_ruled_cells", "measured": 12.0, "threshold": 6.0}]
    assert row["text_chars"] == 3
    failed = outputs.failed_page_json(2, code="page_timed_out", message="try again")
    row = outputs.page_row("a/inv.pdf", DOCUMENT.document_id, failed)
    assert errors_in(row, "page_row") == []
    assert (row["state"], row["escalate"], row["error"]["code"]) == ("failed", None, "page_timed_out")
    assert errors_in(outputs.failure_row("b.pdf", "empty_file", "0 bytes"), "failure_row") == []
    assert errors_in({"source": "b.pdf", "code": ""}, "failure_row") != []


def test_what_utf8_cannot_hold_is_replaced() -> None:
    bad = result(text="a\ud800b", markdown="a\udfffb")
    stream = io.StringIO()
    outputs.write_document_json(
        stream, outputs.document_header(DOCUMENT, "na\udcffme.pdf"), [outputs.page_json(bad)]
    )
    document = json.loads(stream.getvalue().encode("utf-8"))
    assert (document["source"], document["pages"][0]["text"]) == ("na\ufffdme.pdf", "a\ufffdb")


def test_markdown_marks_each_page_with_route_and_reasons() -> None:
    stream = io.StringIO()
    failed = outputs.failed_page_json(2, code="page_timed_out", message="try again")
    quiet = outputs.page_json(
        result(
            page_number=3,
            route=Route.TEXT_LAYER,
            triage=TriageDecision(escalate=False, reasons=(), policy_version="1"),
        )
    )
    outputs.write_document_markdown(
        stream, outputs.document_header(DOCUMENT, "a--><b>.pdf"), [outputs.page_json(result()), failed, quiet]
    )
    text = stream.getvalue()
    assert "<!-- page 1: ocr_degraded: table_ruled_cells 12 ≥ 6 -->\n\nTea\n" in text
    assert "<!-- page 2: failed: page_timed_out -->\n\n> Page 2 could not be read: try again\n" in text
    assert "<!-- page 3: text_layer -->\n\nTea\n" in text
    assert "--><b>" not in text


def test_a_reason_below_its_threshold_says_so() -> None:
    low = TriageDecision(
        escalate=True,
        reasons=(TriageReason(signal="confidence_p10", measured=0.123456, threshold=0.2),),
        policy_version="1",
    )
    assert outputs.page_marker(outputs.page_json(result(triage=low))).endswith("confidence_p10 0.123 < 0.2")


def test_pages_are_written_as_they_come() -> None:
    stream = io.StringIO()
    lengths: list[int] = []

    def pages() -> Iterator[outputs.Json]:
        for number in range(1, 4):
            lengths.append(len(stream.getvalue()))
            yield outputs.page_json(result(page_number=number))

    outputs.write_document_json(stream, outputs.document_header(DOCUMENT, "a.pdf"), pages())
    assert lengths[0] < lengths[1] < lengths[2]
