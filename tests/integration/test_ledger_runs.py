"""What whole runs book: each attempt once, to the token, on the account of who caused it, whatever becomes of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from models.choices import RoutePolicy
from models.errors import PriceBookInvalid, SettingsError
from pipeline.answers.prompt import estimated_prompt_tokens
from pipeline.settings import Settings
from tests.fakes.engines import FakeEngines, FakeOcr
from tests.fakes.engines import Fault as CpuFault
from tests.fakes.pages import tiff_of_widths
from tests.fakes.vlm_server import FakeVlm, Fault, Script
from tests.fakes.wordy_ocr import DOUBTFUL_FROM_PX
from tests.integration.vlm_runs import (
    BUDGET,
    VlmBench,
    answer_on,
    assert_books_are_kept,
    assert_ledger_agrees,
    by_page,
    fake_vlm,
    nothing_left_behind,
    page_number_of,
)
from workers.accounts import login_name
from workers.events import Event, IngestRequest, PageFinished
from workers.local import ingest

PAGES = 4
PATIENCE_S = 120
SUMS = "sum(prompt_tokens), sum(completion_tokens), sum(vlm_pages), sum(pages), sum(cached_pages), sum(cpu_pages)"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        yield VlmBench(tmp_path / "bench")


def tokens_by_model(bench: VlmBench) -> Counter[str]:
    sums = "SELECT model_id, sum(prompt_tokens + completion_tokens) FROM ledger WHERE model_id IS NOT NULL GROUP BY 1"
    return Counter(dict(bench.query(sums)))


def ledger_at(home: Path, statement: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(home / "doctriage.sqlite3")) as connection:
        return connection.execute(statement).fetchall()


def wait_for(condition: Callable[[], bool], run: BaseProcess) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert run.is_alive(), "the run ended before it could be killed"
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.05)


def sums_of(bench: VlmBench, submission_id: int) -> dict[str, int]:
    names = ("prompt_tokens", "completion_tokens", "vlm_pages", "pages", "cached_pages", "cpu_pages")
    [row] = bench.query(f"SELECT {SUMS} FROM ledger WHERE submission_id = {submission_id}")
    return dict(zip(names, row, strict=True))


def test_the_ledger_holds_every_token_that_was_billed_by_model_whatever_became_of_the_call(
    bench: VlmBench,
) -> None:
    """Faults that say what they cost: answers cut off, repeated, invented, empty; refused at the door; right at once
    and at the second try."""
    told = (Fault.TRUNCATED, Fault.REPETITION, Fault.LIE, Fault.EMPTY, Fault.REFUSAL, Fault.RATE_LIMITED)
    faults = dict(enumerate((*told, Fault.TOO_LONG), 1))
    bench.document(len(faults) + 1)
    picker = by_page(faults, calls=2)
    with fake_vlm(picker) as small:
        report = bench.run(small.base_url)
        assert_books_are_kept(bench, small, report, page_count=len(faults) + 1)
    script = Script(answer=answer_on(), fault=picker, retry_after_s=0.2)
    with FakeVlm(script, budget=BUDGET, model_id="another") as other:
        second = bench.run(other.base_url, model="another")
    assert small.billed_tokens == small.reported_tokens
    assert other.billed_tokens == other.reported_tokens
    assert tokens_by_model(bench) == small.billed_tokens + other.billed_tokens
    assert set(tokens_by_model(bench)) == {"qwen2.5-vl-7b-fp8", "another"}
    for run, submission_id in ((report, 1), (second, 2)):
        [bill] = run.bills
        sums = sums_of(bench, submission_id)
        assert (bill.prompt_tokens, bill.completion_tokens) == (
            sums["prompt_tokens"],
            sums["completion_tokens"],
        )
        assert bill.cost_centre == "default"
    assert (report.bills[0].unpriced_entries, report.bills[0].cost_micro > 0) == (0, True)
    unpriced = sum(request.billed is not None for request in other.seen)
    assert second.bills[0].unpriced_entries == unpriced > 0


def test_equal_bytes_of_two_cost_centres_are_read_and_paid_by_each_and_shared_where_a_setting_says_so(
    bench: VlmBench,
) -> None:
    bench.document(PAGES)
    shared = {"share_across_cost_centres": True}
    with fake_vlm() as fake:
        for cost_centre in ("harbour/ferries", "market"):
            bench.run(fake.base_url, cost_centre=cost_centre)
        apart = len(fake.seen)
        for cost_centre in ("orchard", "quarry"):
            bench.run(fake.base_url, cost_centre=cost_centre, chargeback=shared)
    first, second, third, fourth = (sums_of(bench, number) for number in (1, 2, 3, 4))
    assert first == second == third
    assert (first["vlm_pages"], first["pages"], first["cached_pages"]) == (PAGES, PAGES, 0)
    assert first["prompt_tokens"] > 0
    assert (apart, len(fake.seen)) == (2 * PAGES, 3 * PAGES)
    assert {name: value for name, value in fourth.items() if value} == {"cached_pages": PAGES}
    assert bench.query("SELECT DISTINCT submission_id, cost_centre, team FROM ledger ORDER BY 1") == [
        (1, "harbour/ferries", "harbour"),
        (2, "market", "market"),
        (3, "orchard", "orchard"),
        (4, "quarry", "quarry"),
    ]
    for table in ("ledger", "submissions"):
        assert bench.query(f"SELECT DISTINCT submitter FROM {table}") == [(login_name(),)]


def test_a_second_run_is_one_cache_hit_that_costs_nothing_and_a_forced_one_pays_again(
    bench: VlmBench,
) -> None:
    bench.document(PAGES)
    (bench.inputs / "twin.tif").write_bytes((bench.inputs / "a.tif").read_bytes())
    with fake_vlm() as fake:
        paid = bench.run(fake.base_url)
        again = bench.run(fake.base_url)
        forced = bench.run(fake.base_url, force=True)
    assert bench.query(
        "SELECT kind, cached_pages, cost_micro, outcome FROM ledger WHERE submission_id = 2"
    ) == [("cache_hit", PAGES, 0, "cache_hit")]
    [first_bill], [bill], [forced_bill] = paid.bills, again.bills, forced.bills
    assert (bill.prompt_tokens, bill.completion_tokens, bill.cost_micro) == (0, 0, 0)
    assert (forced_bill.cost_micro, forced_bill.prompt_tokens) == (
        first_bill.cost_micro,
        first_bill.prompt_tokens,
    )
    assert sums_of(bench, 3)["cached_pages"] == 0
    attempts = "SELECT kind, page_number, group_concat(attempt) FROM ledger WHERE page_number GROUP BY 1, 2"
    assert {numbers for _, _, numbers in bench.query(attempts)} == {"1,2"}
    assert_ledger_agrees(bench)


def test_pages_that_a_run_without_a_vlm_has_read_are_not_paid_again_when_one_comes(bench: VlmBench) -> None:
    bench.route = RoutePolicy.AUTO
    bench.document(2, "sure.tif")
    bench.document(3, first_width_px=DOUBTFUL_FROM_PX)
    bench.run(None)
    with fake_vlm(answer=answer_on(DOUBTFUL_FROM_PX)) as fake:
        bench.run(fake.base_url)
    assert sums_of(bench, 1)["cpu_pages"] == 5
    later = sums_of(bench, 2)
    assert (later["cpu_pages"], later["pages"], later["cached_pages"], later["vlm_pages"]) == (0, 0, 5, 3)
    assert later["prompt_tokens"] + later["completion_tokens"] == fake.billed_tokens.total()
    assert_ledger_agrees(bench)


def test_pages_that_triage_kept_say_what_they_saved_and_forced_ones_that_they_were_forced(
    bench: VlmBench,
) -> None:
    bench.document(2)
    bench.route = RoutePolicy.AUTO
    bench.run(None)
    text_tokens = estimated_prompt_tokens(1)
    kept = bench.query("SELECT route, avoided_tokens, avoided_micro > 0, is_forced, cpu_s > 0 FROM ledger")
    visual = [page["visual_tokens_if_vlm"] for page in bench.pages()]
    assert kept == [("ocr", tokens + text_tokens, 1, 0, 1) for tokens in visual]
    bench.route = RoutePolicy.VLM
    with fake_vlm() as fake:
        bench.run(fake.base_url)
    forced = bench.query(
        "SELECT kind, route, reason, is_forced, avoided_tokens, vlm_pages, pages FROM ledger WHERE submission_id = 2 "
        "ORDER BY kind"
    )
    assert (
        forced
        == [("cpu_page", None, "forced_vlm", 1, 0, 0, 1)] * 2
        + [("vlm_call", "vlm", "forced_vlm", 1, 0, 1, 0)] * 2
    )


@pytest.mark.parametrize(
    ("fault", "outcome", "has_cpu_s"),
    [
        (CpuFault.CRASH, "worker_crashed", False),
        (CpuFault.STALL, "page_timed_out", False),
        (CpuFault.ENGINE_ERROR, "engine_failed", True),
        (CpuFault.LIE, "engine_failed", True),
    ],
)
def test_an_attempt_on_the_cpu_that_fails_is_booked_as_waste_and_its_siblings_as_read(
    tmp_path: Path, fault: CpuFault, outcome: str, has_cpu_s: bool
) -> None:
    tiff_of_widths(tmp_path / "in" / "a.tif", [500, 501, 502])
    ingest(
        IngestRequest(paths=(tmp_path / "in",), out_dir=tmp_path / "out"),
        settings=Settings(home=tmp_path / "home", executor={"jobs": 1, "page_timeout_s": 3}),
        on_event=lambda event: None,
        engine_builder=FakeEngines(ocr=FakeOcr(folder=tmp_path, faults={501: fault})),
    )
    columns = "page_number, attempt, outcome, is_wasted, pages, cpu_pages, cost_micro, cpu_s IS NOT NULL"
    rows = ledger_at(tmp_path / "home", f"SELECT {columns} FROM ledger ORDER BY page_number, attempt")
    assert rows == [
        (1, 1, "read", 0, 1, 1, 28, 1),
        (2, 1, outcome, 1, 0, 1, 28, int(has_cpu_s)),
        (2, 2, outcome, 1, 1, 1, 28, int(has_cpu_s)),
        (3, 1, "read", 0, 1, 1, 28, 1),
    ]


def run_apart(folder: Path, url: str) -> None:
    """In a process of its own, which is killed."""
    VlmBench(folder).run(url, cost_centre="harbour")


@pytest.mark.parametrize("has_heir", [False, True])
def test_a_run_that_is_killed_leaves_its_call_open_and_the_next_books_it_once(
    bench: VlmBench, has_heir: bool
) -> None:
    """Also where whoever holds the page dies only while the next run waits for it."""
    bench.document(PAGES)
    stuck_page = 1
    with fake_vlm(by_page({stuck_page: Fault.HANG}, calls=1)) as fake:
        run = multiprocessing.get_context("spawn").Process(
            target=run_apart, args=(bench.folder, fake.base_url)
        )
        run.start()
        try:
            wait_for(lambda: is_in_the_middle(bench, fake, stuck_page), run)
        finally:
            run.kill()
            run.join()
        is_open = "SELECT page_number, attempt FROM vlm_attempts WHERE verdict IS NULL"
        assert (stuck_page, 1) in bench.query(is_open)
        calls = f"FROM ledger WHERE kind = 'vlm_call' AND page_number = {stuck_page}"
        assert bench.query(f"SELECT count(*) {calls}") == [(0,)]
        with heir_of(bench, stuck_page) if has_heir else contextlib.nullcontext() as heir:
            report = bench.run(fake.base_url, cost_centre="harbour", on_event=killing_at_a_page(heir))
        assert_books_are_kept(bench, fake, report, page_count=PAGES)
    assert bench.query(is_open) == []
    booked = bench.query(
        f"SELECT outcome, attempt, submission_id, is_wasted, usage_is_estimated, vlm_pages {calls} "
        "ORDER BY attempt"
    )
    assert booked == [("abandoned", 1, 1, 1, 1, 0), ("accepted", 2, 2, 0, 0, 1)]


@contextlib.contextmanager
def heir_of(bench: VlmBench, page_number: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the page, and does nothing."""
    holding = "from workers.owner import current_owner; print(current_owner(), flush=True); input()"
    command = [sys.executable, "-c", holding]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as heir:
        assert heir.stdout is not None
        owner = heir.stdout.readline().strip()
        with contextlib.closing(sqlite3.connect(bench.home / "doctriage.sqlite3")) as connection, connection:
            change = "UPDATE pages SET lease_owner = ? WHERE page_number = ? AND lease_owner IS NOT NULL"
            assert connection.execute(change, (owner, page_number)).rowcount == 1
        yield heir


def killing_at_a_page(heir: subprocess.Popen[str] | None) -> Callable[[Event], None]:
    def on_event(event: Event) -> None:
        if heir is not None and isinstance(event, PageFinished):
            heir.kill()
            heir.wait()

    return on_event


def is_in_the_middle(bench: VlmBench, fake: FakeVlm, stuck_page: int) -> bool:
    is_stuck = any(page_number_of(seen) == stuck_page for seen in fake.seen)
    sums = "SELECT coalesce(sum(pages), 0), coalesce(sum(vlm_pages), 0) FROM ledger"
    return is_stuck and bench.query(sums) >= [(PAGES, 1)]


@pytest.mark.parametrize(
    ("chargeback", "cost_centre", "refusal"),
    [
        ({"default_cost_centre": None}, None, "give --cost-centre"),
        ({}, "a/b/c", "is no cost centre"),
        ({"price_book_file": "gone.toml"}, "a", "name a price book"),
    ],
)
def test_a_run_that_nobody_pays_for_or_without_prices_reads_nothing(
    bench: VlmBench, chargeback: dict[str, Any], cost_centre: str | None, refusal: str
) -> None:
    bench.document(1)
    with pytest.raises((SettingsError, PriceBookInvalid), match=refusal):
        bench.run(None, cost_centre=cost_centre, chargeback=chargeback)
    assert not bench.ocr_readings()
    assert not bench.home.exists()
