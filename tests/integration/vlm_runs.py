"""Whole runs of the embedded executor with a VLM on a real socket and an OCR engine that costs nothing.

Every page is known by its width; the OCR and the fake VLM agree on what stands on it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from models.choices import RoutePolicy
from models.page import Route
from models.transcription import Verdict
from pipeline.planning.configured import load_plan
from pipeline.settings import Settings, VlmSettings
from pipeline.visual_tokens import VisualTokenBudget, count
from tests.fakes.pages import page_image, write_tiff
from tests.fakes.vlm_script import ChatRequest, FaultPicker, SeenRequest
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from tests.fakes.wordy_ocr import WordyEngines, WordyOcr, words_on
from workers.events import Event, IngestReport, IngestRequest
from workers.local import ingest
from workers.retry import LOST, VlmRetryLimits

FIRST_WIDTH_PX = 500
PLAN = load_plan(VlmSettings())
BUDGET = VisualTokenBudget(family=PLAN.family, min_pixels=PLAN.min_pixels, max_pixels=PLAN.max_pixels)
LIMITS = VlmRetryLimits()


NEVER_ARRIVED = (Verdict.UNREACHABLE, Verdict.CONNECTION_LOST, Verdict.ABANDONED)
"""What a call can be booked as that the service has not seen: one that goes down resets connections whose request it
has not read yet."""


def page_number_of(request: ChatRequest | SeenRequest) -> int:
    return int(request.request_id.split("/")[2])


def attempt_of(request: ChatRequest | SeenRequest) -> int:
    return int(request.request_id.split("/")[3])


def answer_on(first_width_px: int = FIRST_WIDTH_PX) -> Callable[[ChatRequest], str]:
    """The honest answer about a page of a document whose first page has this width."""

    def answer(request: ChatRequest) -> str:
        words = " ".join(words_on(first_width_px + page_number_of(request) - 1))
        return f"---\nlanguage: en\nrotation: 0\nblank: false\n---\n\n# Seen\n\n{words}."

    return answer


def by_page(faults: Mapping[int, Fault], *, calls: int | None = None) -> FaultPicker:
    """Pages by number with their faults, in each of their first ``calls`` calls (None: in all)."""

    def picked(request: ChatRequest) -> Fault | None:
        if calls is not None and attempt_of(request) > calls:
            return None
        return faults.get(page_number_of(request))

    return picked


def fake_vlm(fault: FaultPicker | None = None, *, api_key: str | None = None, **script: Any) -> FakeVlm:
    if fault is not None:
        script["fault"] = fault
    script = {"answer": answer_on(), "retry_after_s": 0.2, **script}
    return FakeVlm(Script(**script), budget=BUDGET, api_key=api_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A row of the table of calls."""

    page_number: int
    attempt: int
    request_id: str
    tier: str
    predicted_visual_tokens: int
    temperature: float
    verdict: str | None
    message: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    usage_is_estimated: bool | None


class VlmBench:
    """An input folder, an output folder, a state folder and an OCR engine, all below one temporary folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.inputs = folder / "in"
        self.out = folder / "out"
        self.home = folder / "home"
        self.inputs.mkdir(exist_ok=True)
        self.ocr = WordyOcr(folder=folder)
        self.events: list[Event] = []
        self.route = RoutePolicy.VLM

    def document(
        self,
        page_count: int,
        name: str = "a.tif",
        *,
        height_px: int = 200,
        first_width_px: int = FIRST_WIDTH_PX,
    ) -> Path:
        pages = [
            page_image(f"page of width {width}", width_px=width, height_px=height_px)
            for width in range(first_width_px, first_width_px + page_count)
        ]
        return write_tiff(self.inputs / name, pages)

    def run(
        self,
        url: str | None,
        *,
        on_event: Callable[[Event], None] | None = None,
        force: bool = False,
        cost_centre: str | None = None,
        chargeback: Mapping[str, Any] | None = None,
        **vlm: Any,
    ) -> IngestReport:
        """Quick to give up a service, but patient with answers, as the machine may be busy."""
        self.events.clear()
        settings = Settings(
            home=self.home,
            route=self.route,
            executor={"jobs": 1, "page_timeout_s": 60},
            chargeback=chargeback or {},
            vlm={"url": url, "concurrency": 4, "timeout_s": 30, "wait_s": 60, **vlm},
        )
        return ingest(
            IngestRequest(paths=(self.inputs,), out_dir=self.out, force=force, cost_centre=cost_centre),
            settings=settings,
            on_event=on_event or self.events.append,
            engine_builder=WordyEngines(ocr=self.ocr),
        )

    def ocr_readings(self) -> Counter[int]:
        """How often the CPU read each page, by width."""
        calls = self.folder / "calls"
        return Counter(map(int, calls.read_text().split())) if calls.exists() else Counter()

    def pages(self, name: str = "a.tif") -> list[dict[str, Any]]:
        document: dict[str, Any] = json.loads((self.out / f"{name}.json").read_bytes())
        pages: list[dict[str, Any]] = document["pages"]
        return pages

    def booked(self) -> list[Booked]:
        columns = ", ".join(Booked.__slots__)
        return [
            Booked(**dict(zip(Booked.__slots__, row, strict=True)))
            for row in self.query(f"SELECT {columns} FROM vlm_attempts ORDER BY page_number, attempt")
        ]

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        path = self.home / "doctriage.sqlite3"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(statement).fetchall()

    def verdicts(self) -> dict[int, list[str | None]]:
        """By page number, in order."""
        told: dict[int, list[str | None]] = {}
        for call in self.booked():
            told.setdefault(call.page_number, []).append(call.verdict)
        return told


def ends_of(pages: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """By page number: the route, or the code of why the page has the CPU's text."""
    return {
        page["page_number"]: page["degraded"]["code"] if page["degraded"] else page["route"] for page in pages
    }


def assert_books_are_kept(bench: VlmBench, fake: FakeVlm, report: IngestReport, *, page_count: int) -> None:
    """Each page is there once, each request is booked once, at what the service said that it cost."""
    pages, booked = bench.pages(), bench.booked()
    assert [page["page_number"] for page in pages] == list(range(1, page_count + 1))
    assert all(page["route"] in (Route.VLM, Route.OCR_DEGRADED) for page in pages)
    assert bench.query("SELECT DISTINCT state FROM pages") == [("done",)]
    seen = {request.request_id: request for request in fake.seen}
    assert len(seen) == len(fake.seen)
    assert len({call.request_id for call in booked}) == len(booked)
    for call in booked:
        assert call.verdict is not None
        if call.request_id in seen:
            assert_call_is_booked_at_its_cost(call, seen.pop(call.request_id))
        else:
            assert call.verdict in NEVER_ARRIVED
    assert seen == {}
    assert_pages_add_up(pages, booked, report)
    assert_ledger_agrees(bench)


CALLS = (
    "reading_id, page_number, attempt, model_id, submission_id, cost_centre, predicted_visual_tokens, "
    "predicted_prompt_tokens, prompt_tokens, completion_tokens, usage_is_estimated"
)


def assert_ledger_agrees(bench: VlmBench) -> None:
    """Every call that is closed is in the ledger once, at what its prices make of it. A reading by the CPU is too,
    unless its process was stopped before the page was settled."""
    closed = bench.query(
        f"SELECT {CALLS}, verdict FROM vlm_attempts WHERE verdict IS NOT NULL ORDER BY 1, 2, 3"
    )
    entered = bench.query(f"SELECT {CALLS}, outcome FROM ledger WHERE kind = 'vlm_call' ORDER BY 1, 2, 3")
    assert entered == closed
    transcribed = bench.query("SELECT reading_id, page_number FROM pages WHERE route = 'vlm' ORDER BY 1, 2")
    gave_the_text = "SELECT DISTINCT reading_id, page_number FROM ledger WHERE vlm_pages = 1 ORDER BY 1, 2"
    assert bench.query(gave_the_text) == transcribed
    assert bench.query("SELECT count(*) FROM ledger WHERE is_wasted AND vlm_pages") == [(0,)]
    [(readings,)] = bench.query("SELECT count(*) FROM ledger WHERE kind = 'cpu_page' AND outcome = 'read'")
    read_pages = "SELECT count(DISTINCT document_id || page_number) FROM ledger WHERE outcome = 'read'"
    named = "SELECT count(DISTINCT document_id || page_number) FROM pages JOIN readings USING (reading_id)"
    assert bench.query(read_pages) == bench.query(named)
    assert 0 < readings <= bench.ocr_readings().total()
    cost = (
        "(prompt_tokens - cached_tokens) * coalesce(prompt_price_micro, 0) + cached_tokens * coalesce("
        "cached_price_micro, 0) + completion_tokens * coalesce(completion_price_micro, 0) + "
        "cpu_pages * coalesce(cpu_page_price_micro, 0)"
    )
    off = f"SELECT * FROM ledger WHERE cost_micro IS NULL OR abs(cost_micro * 1000000 - ({cost})) > 500000"
    assert bench.query(off) == []


def assert_call_is_booked_at_its_cost(call: Booked, seen: SeenRequest) -> None:
    assert call.predicted_visual_tokens == sum(count(*size, BUDGET) for size in seen.sizes)
    assert (call.temperature, call.attempt) == (seen.temperature, attempt_of(seen))
    tokens = (call.prompt_tokens, call.completion_tokens)
    if seen.billed is None:
        assert (tokens, call.usage_is_estimated) == ((0, 0), False)
    elif seen.reported is None or not seen.reported.prompt_tokens or call.verdict in LOST:
        assert call.usage_is_estimated
        assert call.prompt_tokens is not None
        assert call.predicted_visual_tokens <= call.prompt_tokens <= seen.billed.prompt_tokens
    else:
        assert tokens == (seen.reported.prompt_tokens, seen.reported.completion_tokens)
        assert not call.usage_is_estimated


def assert_pages_add_up(
    pages: Sequence[Mapping[str, Any]], booked: Sequence[Booked], report: IngestReport
) -> None:
    by_number: dict[int, list[Booked]] = {page["page_number"]: [] for page in pages}
    for call in booked:
        by_number[call.page_number].append(call)
    for page in pages:
        calls = by_number[page["page_number"]]
        assert [call.attempt for call in calls] == list(range(1, len(calls) + 1))
        told = [(attempt["request_id"], attempt["verdict"]) for attempt in page["attempts"]]
        assert told == [(call.request_id, call.verdict) for call in calls]
        if calls:
            assert calls[0].predicted_visual_tokens == page["visual_tokens_if_vlm"]
    assert report.vlm_calls == len(booked)
    assert report.vlm_prompt_tokens == sum(call.prompt_tokens or 0 for call in booked)
    assert report.vlm_completion_tokens == sum(call.completion_tokens or 0 for call in booked)


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """No process but Python's own resource tracker, and no thread, outlives what is run inside. A database that other
    tests use is none of it."""
    before = set(threading.enumerate())
    children_before = set(psutil.Process().children(recursive=True))
    yield
    assert multiprocessing.active_children() == []
    children = set(psutil.Process().children(recursive=True)) - children_before
    left = [child.cmdline() for child in children if child.name() != "postgres"]
    assert [command for command in left if "resource_tracker" not in " ".join(command)] == []
    assert set(threading.enumerate()) <= before
