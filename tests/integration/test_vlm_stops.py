"""Runs that are stopped or lose the process that talks to the VLM, and pages that are asked about twice or once."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from models.choices import RoutePolicy
from models.page import Route
from models.transcription import DegradedCode, Verdict
from pipeline.answers.prompt import estimated_prompt_tokens
from tests.fakes.vlm_server import FakeVlm, Fault
from tests.fakes.wordy_ocr import DOUBTFUL_FROM_PX
from tests.integration.vlm_runs import (
    FIRST_WIDTH_PX,
    PLAN,
    VlmBench,
    answer_on,
    assert_books_are_kept,
    by_page,
    ends_of,
    fake_vlm,
    nothing_left_behind,
    page_number_of,
)
from workers.events import Event, PageFinished

PAGES = 6
STUCK_PAGE = 1
"""Its first call is in flight for as long as the service lives."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        yield VlmBench(tmp_path / "bench")


@pytest.fixture
def stuck(bench: VlmBench) -> Iterator[FakeVlm]:
    bench.document(PAGES)
    with fake_vlm(by_page({STUCK_PAGE: Fault.HANG}, calls=1)) as fake:
        yield fake


def once_in_the_middle(bench: VlmBench, fake: FakeVlm, action: Callable[[], None]) -> Callable[[Event], None]:
    """Does ``action`` when a page is finished and the stuck one's call has arrived."""
    done: list[bool] = []

    def on_event(event: Event) -> None:
        bench.events.append(event)
        is_stuck = any(page_number_of(seen) == STUCK_PAGE for seen in fake.seen)
        if isinstance(event, PageFinished) and is_stuck and not done:
            done.append(True)
            action()

    return on_event


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_transcriber() -> None:
    [process] = [one for one in multiprocessing.active_children() if one.name == "doctriage-vlm"]
    process.kill()


def assert_stuck_call_is_abandoned(bench: VlmBench, verdicts: list[str | None]) -> None:
    """Booked at what its prompt was predicted to cost."""
    assert verdicts[0] == Verdict.ABANDONED
    call = bench.booked()[0]
    assert (call.page_number, call.attempt, call.usage_is_estimated) == (STUCK_PAGE, 1, True)
    assert (call.prompt_tokens, call.completion_tokens) == (
        call.predicted_visual_tokens + estimated_prompt_tokens(1),
        0,
    )


def test_ctrl_c_books_the_calls_in_flight_and_the_next_run_goes_on(bench: VlmBench, stuck: FakeVlm) -> None:
    stopped = bench.run(stuck.base_url, on_event=once_in_the_middle(bench, stuck, interrupt))
    assert stopped.is_interrupted
    assert not (bench.out / "a.tif.json").exists()
    assert None not in [call.verdict for call in bench.booked()]
    assert_stuck_call_is_abandoned(bench, bench.verdicts()[STUCK_PAGE])
    assert bench.query("SELECT count(*) FROM pages WHERE lease_owner IS NOT NULL") == [(0,)]

    report = bench.run(stuck.base_url)
    assert set(ends_of(bench.pages()).values()) == {Route.VLM}
    assert bench.verdicts()[STUCK_PAGE] == ["abandoned", "accepted"]
    assert report.pages_from_earlier_run + report.pages_read == PAGES
    assert_books_are_kept(bench, stuck, report, page_count=PAGES)


def test_the_transcriber_is_killed_and_replaced_and_every_call_is_booked(
    bench: VlmBench, stuck: FakeVlm
) -> None:
    report = bench.run(stuck.base_url, on_event=once_in_the_middle(bench, stuck, kill_transcriber))
    assert set(ends_of(bench.pages()).values()) == {Route.VLM}
    assert_stuck_call_is_abandoned(bench, bench.verdicts()[STUCK_PAGE])
    assert all(told[-1] == "accepted" for told in bench.verdicts().values())
    finished = [event.page_number for event in bench.events if isinstance(event, PageFinished)]
    assert sorted(finished) == list(range(1, PAGES + 1))
    assert bench.ocr_readings() == {FIRST_WIDTH_PX + number: 1 for number in range(PAGES)}
    assert_books_are_kept(bench, stuck, report, page_count=PAGES)


def test_only_doubtful_pages_are_asked_about_equal_bytes_once_and_again_by_a_forced_run(
    bench: VlmBench,
) -> None:
    bench.route = RoutePolicy.AUTO
    bench.document(2, "sure.tif")
    original = bench.document(3, first_width_px=DOUBTFUL_FROM_PX)
    (bench.inputs / "twin.tif").write_bytes(original.read_bytes())
    with fake_vlm(answer=answer_on(DOUBTFUL_FROM_PX)) as fake:
        report = bench.run(fake.base_url)
        assert len(fake.seen) == report.vlm_calls == 3
        for name, route in (("a.tif", Route.VLM), ("twin.tif", Route.VLM), ("sure.tif", Route.OCR)):
            assert set(ends_of(bench.pages(name)).values()) == {route}
        assert_books_are_kept(bench, fake, report, page_count=3)

        forced = bench.run(fake.base_url, force=True)
        assert bench.verdicts() == {number: ["accepted"] * 2 for number in (1, 2, 3)}
        assert_books_are_kept(bench, fake, forced, page_count=3)
    assert set(bench.ocr_readings().values()) == {2}
    assert {seen.temperature for seen in fake.seen} == {PLAN.sampling.temperature}
    assert fake.peak_in_flight <= 4


def test_a_page_the_process_dies_of_again_alone_keeps_the_cpu_s_text_and_the_others_go_on(
    bench: VlmBench,
) -> None:
    bench.document(PAGES)
    with fake_vlm(by_page({STUCK_PAGE: Fault.HANG})) as fake, killing_at_each_call_about(STUCK_PAGE, fake):
        report = bench.run(fake.base_url)
    assert not report.is_interrupted
    pages = bench.pages()
    assert [page["route"] for page in pages] == [Route.OCR_DEGRADED] + [Route.VLM] * (PAGES - 1)
    stuck_page = pages[STUCK_PAGE - 1]
    assert stuck_page["degraded"]["code"] == DegradedCode.PAGE_NOT_SENT
    assert {attempt["verdict"] for attempt in stuck_page["attempts"]} == {Verdict.ABANDONED}
    assert len(stuck_page["attempts"]) == sum(page_number_of(seen) == STUCK_PAGE for seen in fake.seen) >= 2


@contextlib.contextmanager
def killing_at_each_call_about(page_number: int, fake: FakeVlm) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        known = 0
        while not over.wait(0.05):
            calls = sum(page_number_of(seen) == page_number for seen in fake.seen)
            if calls > known:
                known = calls
                kill_transcriber()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
