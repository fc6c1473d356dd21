"""A VLM service that is down, locked or misnamed: pages wait, then keep their text, and a later run asks again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from models.errors import SettingsError
from models.page import Route
from models.transcription import DegradedCode, Verdict
from tests.fakes.vlm_server import FakeVlm
from tests.integration.vlm_runs import (
    FIRST_WIDTH_PX,
    VlmBench,
    assert_books_are_kept,
    ends_of,
    fake_vlm,
    nothing_left_behind,
)
from workers.events import Event, PageFinished

PATIENCE_S = 60


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        yield VlmBench(tmp_path / "bench")


def come_up_after_a_failed_call(bench: VlmBench, fake: FakeVlm) -> threading.Thread:
    def wait_and_come_up() -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            database = bench.home / "doctriage.sqlite3"
            if database.exists() and is_any_call_over(bench):
                break
            time.sleep(0.1)
        fake.come_up()

    thread = threading.Thread(target=wait_and_come_up)
    thread.start()
    return thread


def is_any_call_over(bench: VlmBench) -> bool:
    tables = bench.query("SELECT name FROM sqlite_master WHERE name = 'vlm_attempts'")
    return bool(tables) and any(call.verdict is not None for call in bench.booked())


def test_a_service_that_comes_up_in_time_gets_every_page(bench: VlmBench) -> None:
    bench.document(4)
    with fake_vlm() as fake:
        fake.go_down()
        helper = come_up_after_a_failed_call(bench, fake)
        report = bench.run(fake.base_url)
        helper.join()
    assert set(ends_of(bench.pages()).values()) == {Route.VLM}
    assert any(told[0] == Verdict.UNREACHABLE for told in bench.verdicts().values())
    assert_books_are_kept(bench, fake, report, page_count=4)


def test_pages_that_went_without_are_sent_by_the_next_run_and_not_read_again(bench: VlmBench) -> None:
    """One run loses the service on its way, one has the wrong key, one finds all well, one has nothing to do."""
    bench.document(6)
    with fake_vlm(api_key="right", seconds_a_request=0.4) as fake:
        lost = bench.run(
            fake.base_url,
            on_event=after(bench, 2, fake.go_down),
            api_key="right",
            wait_s=0.5,
            concurrency=1,
        )
        first = ends_of(bench.pages())
        done = {page for page, end in first.items() if end == Route.VLM}
        assert 2 <= len(done) < 6
        assert set(first.values()) == {Route.VLM, DegradedCode.VLM_UNAVAILABLE}
        assert lost.pages_by_degradation == {"vlm_unavailable": 6 - len(done)}
        assert (lost.failures, lost.failed_pages, lost.is_interrupted) == ((), 0, False)
        booked_then = bench.booked()

        fake.come_up()
        locked = bench.run(fake.base_url, api_key="wrong")
        assert locked.pages_by_degradation == {"vlm_refused": 6 - len(done)}
        refused = [page["degraded"] for page in bench.pages() if page["degraded"]]
        assert all("DOCTRIAGE_VLM__API_KEY" in said["message"] for said in refused)

        well = bench.run(fake.base_url, api_key="right")
        assert set(ends_of(bench.pages()).values()) == {Route.VLM}
        assert_books_are_kept(bench, fake, well, page_count=6)
    assert bench.ocr_readings() == {FIRST_WIDTH_PX + number: 1 for number in range(6)}
    by_page = Counter(call.page_number for call in bench.booked())
    before = Counter(call.page_number for call in booked_then)
    assert by_page == {page: before[page] + (0 if page in done else 2) for page in range(1, 7)}


def after(bench: VlmBench, pages: int, action: Callable[[], None]) -> Callable[[Event], None]:
    """Does ``action`` when so many pages are finished."""

    def on_event(event: Event) -> None:
        bench.events.append(event)
        if (
            isinstance(event, PageFinished)
            and sum(isinstance(one, PageFinished) for one in bench.events) == pages
        ):
            action()

    return on_event


@pytest.mark.parametrize("url", ["gpu:8000/v1", "ftp://gpu/v1", "http://", "http://user:word@gpu:8000/v1"])
def test_an_address_that_is_none_is_refused_before_anything_is_read(bench: VlmBench, url: str) -> None:
    bench.document(1)
    with pytest.raises(SettingsError, match=r"VLM|leave user and password out"):
        bench.run(url)
    assert bench.ocr_readings() == {}
    assert not bench.home.exists()
