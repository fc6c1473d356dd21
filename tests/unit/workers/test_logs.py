"""What a run logs for those who ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from models.page import Route
from workers.events import DocumentFinished, DocumentRejectedEvent, PageFinished
from workers.logs import log_event, set_up_logs

EVENTS = (
    PageFinished(source="a.pdf", page_number=2, route=Route.OCR, elapsed_s=1.5, from_earlier_run=False),
    DocumentRejectedEvent(source="b.pdf", code="empty_file", message="b.pdf: empty"),
    DocumentFinished(
        source="a.pdf", document_id="ab", page_count=2, failed_pages=0, outputs=(Path("out/a.pdf.md"),)
    ),
)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def logged(level: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    set_up_logs(level)
    for event in EVENTS:
        log_event(event)
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_info_has_a_line_for_every_event(capsys: pytest.CaptureFixture[str]) -> None:
    page, rejected, document = logged("info", capsys)
    assert page.items() >= {"event": "page_finished", "source": "a.pdf", "page_number": 2}.items()
    assert (page["route"], page["elapsed_s"], page["level"]) == ("ocr", 1.5, "info")
    assert (rejected["event"], rejected["code"]) == ("document_rejected", "empty_file")
    assert (document["event"], document["outputs"]) == ("document_finished", ["out/a.pdf.md"])


def test_by_default_nothing_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    assert logged("error", capsys) == []
