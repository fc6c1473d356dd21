"""A batch with an API that answers as a script says: what it tells, writes and reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from models.errors import CredentialsRefused
from models.page import Route
from tests.fakes.scripted_api import answers, document_content, event, refuses, says, scripted_api, streams
from workers.client import Client
from workers.client.batch import Batch
from workers.client.batch_order import BatchOrder
from workers.events import (
    DocumentFinished,
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    IngestReport,
    PageFinished,
    PageGivenUp,
    SourcesFound,
)
from workers.sources import find_sources

Answer = Callable[[Request], Awaitable[Response]]


def page(page_number: int, state: str = "done") -> dict[str, Any]:
    """In the list of a document's pages."""
    is_done = state == "done"
    return {
        "page_number": page_number,
        "state": state,
        "route": "ocr_degraded" if is_done else None,
        "escalate": True if is_done else None,
        "reasons": [{"signal": "stamp", "measured": 1, "threshold": 0.5}] if is_done else None,
        "text_chars": 40 if is_done else None,
        "visual_tokens_if_vlm": 100 if is_done else None,
        "degraded": {"code": "no_vlm", "message": "none"} if is_done else None,
        "vlm_calls": 2 if is_done else None,
        "prompt_tokens": 30 if is_done else None,
        "completion_tokens": 3 if is_done else None,
        "elapsed_s": 0.12345 if is_done else None,
        "error": None if is_done else {"code": "page_not_rendered", "message": "damaged"},
    }


@dataclass(slots=True)
class House:
    """Answers by the last part of a path, ``sent`` to what is sent, and else with the ``document``."""

    of: Mapping[str, Answer]
    document: Mapping[str, Any] = field(default_factory=document_content)

    async def __call__(self, request: Request) -> Response:
        name = "sent" if request.method == "POST" else request.url.path.rpartition("/")[2]
        return await self.of.get(name, answers(self.document))(request)


@dataclass(slots=True)
class Ran:
    out: Path
    events: list[Event] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    report: IngestReport | None = None

    def rows(self, name: str = "pages.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name).read_text("utf-8").splitlines()]

    def kinds(self) -> list[str]:
        return [type(one).__name__ for one in self.events]


def run(tmp_path: Path, house: House, *names: str, on_event: Callable[[Event], None] | None = None) -> Ran:
    for name in names:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"%PDF" + name.encode())
    ran = Ran(tmp_path / "out")

    def heard(one: Event) -> None:
        ran.events.append(one)
        if on_event is not None:
            on_event(one)

    with scripted_api(house) as api:
        batch = Batch(
            BatchOrder(out_dir=ran.out, formats=("markdown",)),
            client=partial(Client, api.url, waits_for_room=True),
            on_event=heard,
            on_wait=lambda error: ran.waits.append(error.code),
        )
        ran.report = batch.run(tuple(find_sources([tmp_path / "in"], left_out=())))
    return ran


def ended(**changed: Any) -> Answer:
    return streams(event("end", "end", document_content(**changed)))


QUEUED = answers(document_content("queued", page_count=None), 202)
BILLED = {"currency": "USD", "prompt_tokens": 60, "completion_tokens": 6}
READ: Mapping[str, Answer] = {
    "sent": QUEUED,
    "events": ended(),
    "pages": answers({"pages": [page(1), page(2)], "next_after": None}),
    "result": says("# text", 200),
    "cost": answers({"totals": [{**BILLED, "cost": "0.000616", "unpriced_entries": 1}]}),
    "budgets": answers({"month": "2026-11", "budgets": []}),
}


def test_pages_that_no_event_told_are_told_at_the_end_and_counted_once(tmp_path: Path) -> None:
    ran = run(tmp_path, House(READ), "a.pdf")
    assert ran.kinds() == [
        "SourcesFound",
        "DocumentFound",
        "PageFinished",
        "PageFinished",
        "DocumentFinished",
    ]
    assert ran.events[0] == SourcesFound(count=1)
    report = ran.report
    assert report is not None
    [document] = report.documents
    assert (document.pages_by_route, document.page_count) == ({Route.OCR_DEGRADED: 2}, 2)
    assert (report.pages_read, report.failed_pages, report.pages_by_reason) == (2, 0, {"stamp": 2})
    assert (report.visual_tokens_if_all, report.visual_tokens_triaged) == (200, 200)
    assert (report.vlm_calls, report.vlm_prompt_tokens, report.vlm_completion_tokens) == (4, 60, 6)
    assert report.pages_by_degradation == {"no_vlm": 2}
    [bill] = report.bills
    assert (bill.cost_centre, bill.currency, bill.prompt_tokens) == ("harbour", "USD", 60)
    assert (bill.cost_micro, bill.unpriced_entries) == (616, 1)
    assert (ran.out / "a.pdf.md").read_text("utf-8") == "# text"
    assert [row["elapsed_s"] for row in ran.rows()] == [0.123, 0.123]


def test_a_document_whose_pages_all_failed_is_a_failure_with_its_pages(tmp_path: Path) -> None:
    failed = ended(
        state="failed", error={"code": "document_failed", "message": "a.pdf: no page could be read"}
    )
    pages = answers({"pages": [page(1, "failed"), page(2, "failed")], "next_after": None})
    ran = run(tmp_path, House({**READ, "events": failed, "pages": pages}), "deep/a.pdf")
    assert ran.rows("failures.jsonl") == [
        {
            "source": "deep/a.pdf",
            "code": "document_failed",
            "message": "deep/a.pdf: no page could be read",
        }
    ]
    assert [(row["page_number"], row["state"], row["reasons"]) for row in ran.rows()] == [
        (1, "failed", []),
        (2, "failed", []),
    ]
    assert ran.report is not None
    assert (ran.report.documents, ran.report.failed_pages) == ((), 2)
    assert [type(one) for one in ran.events[2:]] == [PageGivenUp, PageGivenUp, DocumentRejectedEvent]


def test_what_goes_wrong_with_one_document_ends_no_batch(tmp_path: Path) -> None:
    class Picky(House):
        async def __call__(self, request: Request) -> Response:
            if request.method == "POST" and b'filename="b.pdf"' in request.state.start:
                return await refuses(500, "internal_error", "the server failed; try again")(request)
            return await House.__call__(self, request)

    ran = run(tmp_path, Picky(READ), "a.pdf", "b.pdf", "c.pdf")
    assert [row["source"] for row in ran.rows("failures.jsonl")] == ["b.pdf"]
    assert [row["source"] for row in ran.rows()] == ["a.pdf", "a.pdf", "c.pdf", "c.pdf"]
    assert ran.report is not None
    assert [document.source for document in ran.report.documents] == ["a.pdf", "c.pdf"]


def test_a_key_that_is_taken_away_ends_it(tmp_path: Path) -> None:
    refusal = refuses(401, "credentials_refused", "the key is revoked; get another")
    with pytest.raises(CredentialsRefused, match="revoked"):
        run(tmp_path, House({**READ, "pages": refusal}), "a.pdf")


def test_a_fault_of_ours_is_not_waited_for(tmp_path: Path) -> None:
    def broken(_: Event) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, House(READ), "a.pdf", on_event=broken)


def test_ctrl_c_keeps_what_is_whole_and_names_what_the_server_goes_on_with(tmp_path: Path) -> None:
    reading = document_content("reading")
    hanging = threading.Event()

    async def followed(request: Request) -> Response:
        if hanging.is_set():
            return await streams(event("document", "reading;", reading))(request)
        hanging.set()
        return await ended()(request)

    def interrupt(one: Event) -> None:
        found.append(one)
        kinds = [type(event) for event in found]
        if kinds.count(DocumentFound) == 2 and DocumentFinished in kinds:
            raise KeyboardInterrupt

    found: list[Event] = []
    house = House({**READ, "events": followed}, document=reading)
    ran = run(tmp_path, house, "a.pdf", "b.pdf", on_event=interrupt)
    assert ran.report is not None
    assert ran.report.is_interrupted
    assert sorted(document.is_written for document in ran.report.documents) == [False, True]
    assert len(ran.rows()) == 2


@pytest.mark.parametrize(
    ("settled_before", "from_earlier_run"), [(0, [False, False]), (1, [True, False]), (2, [True, True])]
)
def test_pages_that_were_there_when_the_command_came_again_are_of_an_earlier_run(
    settled_before: int, from_earlier_run: list[bool], tmp_path: Path
) -> None:
    content = document_content("reading", pages={"done": settled_before, "pending": 2 - settled_before})
    sent = answers(content, 202, idempotency_replayed="true")
    ran = run(tmp_path, House({**READ, "sent": sent}), "a.pdf")
    told = [one.from_earlier_run for one in ran.events if isinstance(one, PageFinished)]
    assert told == from_earlier_run


def test_a_document_that_is_over_already_is_not_followed(tmp_path: Path) -> None:
    sent = answers(document_content(), 202, idempotency_replayed="true")
    ran = run(tmp_path, House({**READ, "sent": sent, "events": refuses(500, "internal_error")}), "a.pdf")
    assert [one.from_earlier_run for one in ran.events if isinstance(one, PageFinished)] == [True, True]
    assert ran.report is not None
    assert (ran.report.pages_read, ran.report.pages_from_earlier_run) == (0, 2)
    assert ran.report.bills == ()


def test_a_wait_is_told_once_a_reason(tmp_path: Path) -> None:
    refusals = [refuses(503, "pool_busy", "full; wait", retry_after="0")] * 2

    async def sent(request: Request) -> Response:
        return await (refusals.pop() if refusals else QUEUED)(request)

    ran = run(tmp_path, House({**READ, "sent": sent}), "a.pdf")
    assert ran.waits == ["pool_busy"]
