"""The embedded executor with engines that misbehave: what a page does to itself, its siblings and the run."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.choices import RoutePolicy
from models.errors import EngineUnavailable, OutputNotWritable, PageNotFound
from pipeline.settings import Settings
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from tests.fakes.pages import tiff_of_widths
from workers.events import (
    DocumentFound,
    Event,
    IngestReport,
    IngestRequest,
    PageFinished,
    PageGivenUp,
    PageRetried,
    SourceRenamed,
)
from workers.local import find_page, ingest


class Bench:
    """An input folder, an output folder, a state folder and engines, all below one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.inputs = folder / "in"
        self.out = folder / "out"
        self.calls = folder / "calls"
        self.inputs.mkdir()
        self.ocr = FakeOcr(folder=folder)
        self.settings = Settings(home=folder / "home")
        self.events: list[Event] = []
        self.limit()

    def limit(self, **limits: Any) -> None:
        executor = {"jobs": 1, "page_timeout_s": 30, **limits}
        self.settings = Settings(home=self.settings.home, executor=executor)

    def engines(self, **changes: Any) -> None:
        self.ocr = FakeOcr(folder=self.ocr.folder, **changes)

    def run(self, *paths: Path, **request: Any) -> IngestReport:
        self.events.clear()
        return ingest(
            IngestRequest(paths=paths or (self.inputs,), out_dir=self.out, **request),
            settings=self.settings,
            on_event=self.events.append,
            engine_builder=FakeEngines(ocr=self.ocr),
        )

    def readings(self) -> Counter[int]:
        """How often each page was read, by width."""
        if not self.calls.exists():
            return Counter()
        return Counter(int(line.split()[0]) for line in self.calls.read_text().splitlines())

    def document(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.out / f"{name}.json").read_bytes())
        return document

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def events_of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.CRASH, "worker_crashed"),
        (Fault.STALL, "page_timed_out"),
        (Fault.RAISE, "engine_failed"),
        (Fault.ENGINE_ERROR, "engine_failed"),
        (Fault.LIE, "engine_failed"),
    ],
)
def test_a_page_that_fails_is_tried_again_given_up_and_shown_and_its_siblings_are_read(
    bench: Bench, fault: Fault, code: str
) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501, 502, 503, 504])
    tiff_of_widths(bench.inputs / "b.tif", [510, 511])
    bench.engines(faults={502: fault})
    bench.limit(page_timeout_s=3)
    report = bench.run()
    assert bench.readings() == {500: 1, 501: 1, 502: 2, 503: 1, 504: 1, 510: 1, 511: 1}
    assert [(event.page_number, event.code) for event in bench.events_of(PageRetried)] == [(3, code)]
    assert [(event.page_number, event.code) for event in bench.events_of(PageGivenUp)] == [(3, code)]
    assert (report.failed_pages, report.pages_read, report.failures) == (1, 6, ())
    pages = bench.document("a.tif")["pages"]
    assert [page["page_number"] for page in pages] == [1, 2, 3, 4, 5]
    assert [page.get("text", "").split()[2:3] for page in pages] == [["500"], ["501"], [], ["503"], ["504"]]
    states = {
        row["page_number"]: row["state"] for row in bench.rows("pages.jsonl") if row["source"] == "a.tif"
    }
    assert states == {1: "done", 2: "done", 3: "failed", 4: "done", 5: "done"}


def test_a_document_of_which_no_page_could_be_read_is_a_failure_and_its_siblings_are_written(
    bench: Bench,
) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501])
    tiff_of_widths(bench.inputs / "b.tif", [510])
    bench.engines(faults={500: Fault.ENGINE_ERROR, 501: Fault.ENGINE_ERROR})
    report = bench.run()
    assert [(failure.source, failure.code) for failure in report.failures] == [("a.tif", "document_failed")]
    assert [row["source"] for row in bench.rows("failures.jsonl")] == ["a.tif"]
    assert not (bench.out / "a.tif.json").exists()
    assert len(bench.document("b.tif")["pages"]) == 1
    states = [(row["source"], row["page_number"], row["state"]) for row in bench.rows("pages.jsonl")]
    assert sorted(states) == [("a.tif", 1, "failed"), ("a.tif", 2, "failed"), ("b.tif", 1, "done")]


def test_no_room_for_temporary_files_ends_the_run_once_and_fails_no_page(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501, 502])
    bench.engines(faults={501: Fault.DISK_FULL})
    with pytest.raises(OutputNotWritable, match="disk is full; free some space"):
        bench.run()
    bench.engines()
    report = bench.run()
    assert (report.pages_from_earlier_run, report.pages_read, report.failed_pages) == (1, 2, 0)


def test_a_page_that_crashes_once_is_read_at_the_second_attempt(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501, 502, 503])
    bench.engines(faults={501: Fault.CRASH_ONCE})
    report = bench.run()
    assert (report.pages_read, report.failed_pages) == (4, 0)
    assert bench.readings() == {500: 1, 501: 2, 502: 1, 503: 1}


def test_one_corrupt_file_among_ten_gives_nine_results_and_one_failure(bench: Bench) -> None:
    for number in range(9):
        tiff_of_widths(bench.inputs / f"{number}.tif", [500 + number])
    (bench.inputs / "bad.tif").write_bytes(b"II*\x00" + os.urandom(200))
    report = bench.run()
    assert len(report.documents) == 9
    assert [failure.source for failure in report.failures] == ["bad.tif"]
    [row] = bench.rows("failures.jsonl")
    assert row["source"] == "bad.tif"
    assert row["code"] == report.failures[0].code
    assert len(list(bench.out.glob("*.json"))) == 9
    assert not (bench.out / "bad.tif.json").exists()


def test_equal_bytes_are_read_once_and_written_for_every_source(bench: Bench) -> None:
    original = tiff_of_widths(bench.inputs / "a" / "scan.tif", [500, 501])
    for name in ("b/scan.tif", "copy of scan.tif"):
        (bench.inputs / name).parent.mkdir(exist_ok=True)
        (bench.inputs / name).write_bytes(original.read_bytes())
    report = bench.run()
    assert bench.readings() == {500: 1, 501: 1}
    names = ["a/scan.tif", "b/scan.tif", "copy of scan.tif"]
    assert sorted(document.source for document in report.documents) == names
    assert len({bench.document(name)["document_id"] for name in names}) == 1
    assert [bench.document(name)["source"] for name in names] == names
    assert report.visual_tokens_if_all == sum(
        row["visual_tokens_if_vlm"] for row in bench.rows("pages.jsonl") if row["source"] == names[0]
    )
    found = bench.events_of(DocumentFound)
    assert sum(event.page_count for event in found if event.same_bytes_as is None) == 2


def test_a_second_run_reads_nothing_again_and_force_reads_everything(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501])
    bench.run()
    (bench.out / "a.tif.json").unlink()
    again = bench.run()
    assert (again.pages_read, again.pages_from_earlier_run) == (0, 2)
    assert all(event.from_earlier_run for event in bench.events_of(PageFinished))
    assert len(bench.document("a.tif")["pages"]) == 2
    assert bench.readings() == {500: 1, 501: 1}
    forced = bench.run(force=True)
    assert (forced.pages_read, forced.pages_from_earlier_run) == (2, 0)
    assert bench.readings() == {500: 2, 501: 2}


def test_pages_that_failed_are_tried_again_by_the_next_run(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501])
    bench.engines(faults={501: Fault.ENGINE_ERROR})
    assert bench.run().failed_pages == 1
    bench.engines()
    report = bench.run()
    assert (report.pages_read, report.pages_from_earlier_run, report.failed_pages) == (1, 1, 0)


@pytest.mark.parametrize("change", ["engine version", "setting"])
def test_what_alters_results_reads_again_and_going_back_does_not(bench: Bench, change: str) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    bench.run()
    before, settings = bench.ocr, bench.settings
    if change == "setting":
        bench.settings = bench.settings.model_copy(update={"route": RoutePolicy.OCR})
    else:
        bench.engines(version="2")
    assert bench.run().pages_read == 1
    bench.ocr, bench.settings = before, settings
    assert bench.run().pages_from_earlier_run == 1
    assert bench.readings() == {500: 2}


def test_workers_are_replaced_after_their_share_of_pages(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501, 502, 503])
    bench.limit(jobs=1, max_pages_per_worker=1)
    assert bench.run().pages_read == 4
    processes = {line.split()[1] for line in bench.calls.read_text().splitlines()}
    assert len(processes) >= 2


def test_an_engine_that_is_missing_ends_the_run_in_words(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    bench.engines(faults={500: Fault.UNAVAILABLE})
    with pytest.raises(EngineUnavailable, match="install it"):
        bench.run()
    bench.engines()
    assert bench.run().pages_read == 1


def test_an_output_folder_that_is_a_file_is_refused_before_anything_is_read(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    bench.out.write_bytes(b"")
    with pytest.raises(OutputNotWritable, match="out"):
        bench.run()
    assert bench.readings() == {}
    assert not bench.settings.home.exists()


def test_one_output_that_cannot_be_written_fails_its_source_alone(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    tiff_of_widths(bench.inputs / "b.tif", [501])
    (bench.out / "a.tif.json").mkdir(parents=True)
    report = bench.run()
    assert [(failure.source, failure.code) for failure in report.failures] == [
        ("a.tif", "output_not_writable")
    ]
    assert [document.source for document in report.documents] == ["b.tif"]


def test_odd_names_come_out_as_they_went_in(bench: Bench) -> None:
    names = ["line\nbreak.tif", "a b'\"$(x).tif", "ünï/çödé.tif", "n" * 251 + ".tif", "[red]x[/].tif"]
    for number, name in enumerate(names):
        tiff_of_widths(bench.inputs / name, [500 + number])
    raw = Path(os.fsdecode(os.fsencode(bench.inputs) + b"/caf\xe9.tif"))
    raw.write_bytes((bench.inputs / names[1]).read_bytes())
    report = bench.run()
    assert report.failures == ()
    assert {row["source"] for row in bench.rows("pages.jsonl")} == {*names, r"caf\xe9.tif"}
    for name in (*names[:3], names[4], r"caf\xe9.tif"):
        assert bench.document(name)["source"] == name
    assert all(document.is_written for document in report.documents)


def test_two_files_of_one_name_are_both_written_and_it_is_said(bench: Bench) -> None:
    first = tiff_of_widths(bench.inputs / "x" / "a.tif", [500])
    second = tiff_of_widths(bench.inputs / "y" / "a.tif", [501])
    bench.run(first, second)
    [renamed] = bench.events_of(SourceRenamed)
    assert renamed.wanted == "a.tif"
    texts = [bench.document(name)["pages"][0]["text"] for name in ("a.tif", renamed.source)]
    assert texts == ["page of 500 pixels", "page of 501 pixels"]


def test_results_inside_the_input_folder_are_not_read_by_the_next_run(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    bench.out = bench.inputs
    bench.run()
    report = bench.run()
    assert [document.source for document in report.documents] == ["a.tif"]
    assert report.failures == ()


def test_a_source_that_vanishes_or_is_no_file_is_a_failure_row(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500])
    os.mkfifo(bench.inputs / "pipe")
    (bench.inputs / "broken").symlink_to(bench.inputs / "nowhere")
    report = bench.run()
    assert {(row["source"], row["code"]) for row in bench.rows("failures.jsonl")} == {
        ("pipe", "source_unreadable"),
        ("broken", "source_unreadable"),
    }
    assert len(report.documents) == 1


def test_ctrl_c_stops_and_the_next_run_goes_on(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", list(range(500, 512)))
    bench.engines(read_s=0.1)
    stop = interrupt_after(bench, pages=2)
    report = ingest(
        IngestRequest(paths=(bench.inputs,), out_dir=bench.out),
        settings=bench.settings,
        on_event=stop,
        engine_builder=FakeEngines(ocr=bench.ocr),
    )
    assert report.is_interrupted
    assert not report.documents[0].is_written
    assert not (bench.out / "a.tif.json").exists()
    states = Counter(row["state"] for row in bench.rows("pages.jsonl"))
    assert states["done"] >= 2
    assert states["done"] + states["pending"] == 12
    bench.engines()
    rest = bench.run()
    assert rest.pages_from_earlier_run == states["done"]
    assert rest.pages_read == states["pending"]
    assert len(bench.document("a.tif")["pages"]) == 12


def test_a_forced_run_that_is_stopped_keeps_the_earlier_results(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", list(range(500, 506)))
    bench.run()
    written = (bench.out / "a.tif.json").read_bytes()
    bench.engines(read_s=0.1)
    stopped = ingest(
        IngestRequest(paths=(bench.inputs,), out_dir=bench.out, force=True),
        settings=bench.settings,
        on_event=interrupt_after(bench, pages=len(bench.events_of(PageFinished)) + 1),
        engine_builder=FakeEngines(ocr=bench.ocr),
    )
    assert stopped.is_interrupted
    assert (bench.out / "a.tif.json").read_bytes() == written
    assert [row["state"] for row in bench.rows("pages.jsonl")] == ["done"] * 6
    assert find_page("a.tif", 6, settings=bench.settings).page["text"] == "page of 505 pixels"
    rest = bench.run()
    assert (rest.pages_read, rest.pages_from_earlier_run) == (0, 6)


def test_a_page_that_failed_is_told_with_its_reason(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501])
    bench.engines(faults={501: Fault.ENGINE_ERROR})
    bench.run()
    with pytest.raises(PageNotFound, match=r"page 2 could not be read \(engine_failed\): \w+"):
        find_page("a.tif", 2, settings=bench.settings)
    with pytest.raises(PageNotFound, match="no page 3; it has 2"):
        find_page("a.tif", 3, settings=bench.settings)


def interrupt_after(bench: Bench, *, pages: int) -> Callable[[Event], None]:
    def on_event(event: Event) -> None:
        bench.events.append(event)
        if len(bench.events_of(PageFinished)) == pages:
            raise KeyboardInterrupt

    return on_event


def test_a_finished_page_is_found_by_name_file_and_id(bench: Bench) -> None:
    file = tiff_of_widths(bench.inputs / "sub" / "a.tif", [500, 501])
    [document] = bench.run().documents
    for reference in ("sub/a.tif", str(file), document.document_id, document.document_id[:8]):
        found = find_page(reference, 2, settings=bench.settings)
        assert found.page["text"] == "page of 501 pixels"
        assert found.blob_path.read_bytes() == file.read_bytes()


def test_a_page_has_the_name_that_it_was_asked_for_by(bench: Bench) -> None:
    for name in ("a.tif", "b.tif"):
        tiff_of_widths(bench.inputs / name, [500])
    bench.run()
    for name in ("a.tif", "b.tif"):
        assert find_page(name, 1, settings=bench.settings).source == name
