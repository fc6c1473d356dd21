"""Whole runs whose cost centre has a budget: what is sent, what keeps the CPU's text, and what the month says."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.budget import Budget, BudgetMonth, Level, WhenSpent
from models.choices import RoutePolicy
from models.errors import BudgetSpent, BudgetUnusable
from models.transcription import DegradedCode, Verdict
from pipeline.chargeback.months import month_of
from pipeline.store import Store, open_store
from tests.fakes.vlm_server import Fault
from tests.integration.test_vlm_stops import kill_transcriber, once_in_the_middle
from tests.integration.vlm_runs import VlmBench, by_page, ends_of, fake_vlm, nothing_left_behind

PAGES, PAID = 7, 3
TEAM, PROJECT = "research", "research/atlas"
USED = f"""
    SELECT prompt_tokens + completion_tokens, cost_micro FROM ledger WHERE kind = 'vlm_call' AND team = '{TEAM}'
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[VlmBench]:
    with nothing_left_behind():
        yield VlmBench(tmp_path / "bench")


@contextlib.contextmanager
def opened(bench: VlmBench) -> Iterator[Store]:
    with contextlib.closing(open_store(bench.home)) as store:
        yield store


def set_budget(bench: VlmBench, cost_centre: str = TEAM, **budget: Any) -> None:
    with opened(bench) as store:
        store.budgets.set_budget(Budget(cost_centre=cost_centre, **budget), month=month_of(time.time()))


def stands(bench: VlmBench) -> BudgetMonth:
    """The team's budget, of which nothing is reserved once a run is over."""
    with opened(bench) as store:
        [budget, *_] = store.budgets.budgets_over(PROJECT, month_of(time.time()))
    assert all(level.reserved == 0 for level in budget.levels)
    return budget


def spent(bench: VlmBench) -> int:
    """Of the team's tokens, which is what the ledger says and no more than its limit."""
    level = stands(bench).tokens
    assert level is not None
    assert level.spent == sum(tokens for tokens, _ in bench.query(USED)) <= level.limit
    return level.spent


@pytest.fixture(scope="module")
def limit_tokens(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Of a budget for exactly ``PAID`` of the pages, which take about the same: room for the last of them is left when
    the others are paid, and none for another. What a page takes is learned from a run."""
    sample = VlmBench(tmp_path_factory.mktemp("sample") / "bench")
    sample.document(PAGES)
    with fake_vlm() as fake:
        sample.run(fake.base_url, cost_centre=TEAM)
    used = [tokens for tokens, _ in sample.query(USED)]
    reserved = [tokens for (tokens,) in sample.query("SELECT reserved_tokens FROM vlm_attempts")]
    limit = (PAID - 1) * max(used) + max(reserved)
    assert limit < PAID * min(used) + min(reserved)
    return limit


def test_a_budget_for_so_many_pages_sends_so_many_and_the_others_keep_their_text(
    bench: VlmBench, limit_tokens: int
) -> None:
    """Reservations are far above what calls cost: pages wait until the calls of others have been settled."""
    bench.document(PAGES)
    set_budget(bench, limit_tokens=limit_tokens)
    with fake_vlm() as fake:
        report = bench.run(fake.base_url, cost_centre=PROJECT)
        assert len(fake.seen) == PAID
        again = bench.run(fake.base_url, cost_centre=PROJECT)
        assert len(fake.seen) == PAID
    assert Counter(ends_of(bench.pages()).values()) == {"vlm": PAID, "budget_spent": PAGES - PAID}
    assert report.pages_by_degradation == again.pages_by_degradation == {"budget_spent": PAGES - PAID}
    assert spent(bench) == fake.billed_tokens.total()
    [message] = {page["degraded"]["message"] for page in bench.pages() if page["degraded"]}
    assert message.startswith(f"budget of {TEAM} for {month_of(time.time())}: ")
    assert "tokens left of" in message
    assert "then --force sends the page" in message
    assert bench.query("SELECT count(*) FROM vlm_attempts") == [(PAID,)]


def run_beside(folder: Path, home: Path, url: str) -> None:
    bench = VlmBench(folder)
    bench.home = home
    bench.run(url, cost_centre=PROJECT)


def test_two_runs_at_once_share_what_the_budget_has(
    bench: VlmBench, tmp_path: Path, limit_tokens: int
) -> None:
    """Each waits for room that the other has reserved."""
    other = VlmBench(tmp_path / "other")
    bench.document(PAGES)
    other.document(PAGES, height_px=201)
    set_budget(bench, limit_tokens=limit_tokens)
    spawn = multiprocessing.get_context("spawn")
    with fake_vlm() as fake:
        beside = spawn.Process(target=run_beside, args=(other.folder, bench.home, fake.base_url))
        beside.start()
        bench.run(fake.base_url, cost_centre=TEAM)
        beside.join()
        assert beside.exitcode == 0
    ends = Counter((*ends_of(bench.pages()).values(), *ends_of(other.pages()).values()))
    assert ends == {"vlm": PAID, "budget_spent": 2 * PAGES - PAID}
    assert len(fake.seen) == PAID
    assert spent(bench) == fake.billed_tokens.total()


def test_pages_that_are_held_are_sent_once_the_budget_is_raised(bench: VlmBench, limit_tokens: int) -> None:
    bench.document(PAGES)
    set_budget(bench, limit_tokens=limit_tokens, when_spent=WhenSpent.HOLD)
    with fake_vlm() as fake:
        for _ in range(2):
            bench.run(fake.base_url, cost_centre=TEAM)
            assert Counter(ends_of(bench.pages()).values()) == {"vlm": PAID, "budget_held": PAGES - PAID}
            assert len(fake.seen) == PAID
        set_budget(bench, limit_tokens=10**6, when_spent=WhenSpent.HOLD)
        bench.run(fake.base_url, cost_centre=TEAM)
    assert set(ends_of(bench.pages()).values()) == {"vlm"}
    assert len(fake.seen) == PAGES
    assert spent(bench) == fake.billed_tokens.total()


def test_a_budget_that_rejects_takes_no_run_without_room_for_any_call(
    bench: VlmBench, limit_tokens: int
) -> None:
    bench.document(PAGES)
    set_budget(bench, limit_tokens=limit_tokens, when_spent=WhenSpent.REJECT)
    with fake_vlm() as fake:
        bench.run(fake.base_url, cost_centre=TEAM)
        assert Counter(ends_of(bench.pages()).values()) == {"vlm": PAID, "budget_spent": PAGES - PAID}
        set_budget(bench, limit_tokens=spent(bench), when_spent=WhenSpent.REJECT)
        before = bench.ocr_readings()
        bench.document(PAGES, "b.tif", first_width_px=600)
        with pytest.raises(
            BudgetSpent, match=f"budget of {TEAM} for .*: 0 tokens left of .* nothing is taken"
        ):
            bench.run(fake.base_url, cost_centre=PROJECT)
        assert bench.ocr_readings() == before
        bench.route = RoutePolicy.OCR
        bench.run(fake.base_url, cost_centre=PROJECT)
    bench.route = RoutePolicy.VLM
    bench.run(None, cost_centre=PROJECT)


def test_a_budget_in_money_holds_to_the_micro_unit(bench: VlmBench) -> None:
    bench.document(PAGES)
    set_budget(bench, limit_micro=10**6, currency="USD")
    with fake_vlm() as fake:
        bench.run(fake.base_url, cost_centre=TEAM)
    money = stands(bench).money
    assert money is not None
    assert money.spent == sum(micro for _, micro in bench.query(USED)) > 0
    reserved = [micro for (micro,) in bench.query("SELECT reserved_micro FROM vlm_attempts")]
    assert min(reserved) > max(micro for _, micro in bench.query(USED))
    set_budget(bench, limit_micro=money.spent + min(reserved) - 1, currency="USD")
    with fake_vlm() as fake:
        bench.run(fake.base_url, cost_centre=TEAM, force=True)
        assert fake.seen == []
    assert set(ends_of(bench.pages()).values()) == {DegradedCode.BUDGET_SPENT}
    assert stands(bench).money == Level(limit=money.spent + min(reserved) - 1, spent=money.spent, reserved=0)


def test_a_run_whose_calls_nobody_can_price_does_not_begin_on_a_budget_in_money(
    bench: VlmBench, tmp_path: Path
) -> None:
    bench.document(1)
    set_budget(bench, limit_micro=10**9, currency="USD")
    book = tmp_path / "own.toml"
    book.write_text(
        'schema_version = 1\nname = "own"\ncurrency = "EUR"\n[[entries]]\neffective_from = 2025-01-01\n'
        '[entries.models."*"]\nper_million_prompt_tokens = "1"\nper_million_completion_tokens = "1"\n',
        encoding="utf-8",
    )
    with fake_vlm() as fake:
        with pytest.raises(BudgetUnusable, match="no price for unheard-of"):
            bench.run(fake.base_url, cost_centre=PROJECT, model="unheard-of")
        with pytest.raises(BudgetUnusable, match=r"a budget in USD, and the price book is in EUR"):
            bench.run(fake.base_url, cost_centre=PROJECT, chargeback={"price_book_file": book})
        assert fake.seen == []
        set_budget(bench, limit_tokens=10**6)
        bench.run(fake.base_url, cost_centre=PROJECT, chargeback={"price_book_file": book})
    assert set(ends_of(bench.pages()).values()) == {"vlm"}


def test_a_second_call_without_room_is_not_made_and_the_first_stays_booked(bench: VlmBench) -> None:
    """A cut-off answer is asked for anew with more room, which the budget has not."""
    bench.document(1)
    with fake_vlm(by_page({1: Fault.TRUNCATED})) as fake:
        bench.run(fake.base_url, cost_centre=TEAM, max_answers=2)
        first, second = (tokens for (tokens,) in bench.query("SELECT reserved_tokens FROM vlm_attempts"))
        used = bench.query(USED)[0][0]
        assert second > first
        spent_before = sum(tokens for tokens, _ in bench.query(USED))
        set_budget(bench, limit_tokens=spent_before + used + second - 1)
        bench.run(fake.base_url, cost_centre=TEAM, max_answers=2, force=True)
        assert len(fake.seen) == 3
    assert ends_of(bench.pages()) == {1: DegradedCode.BUDGET_SPENT}
    assert bench.verdicts()[1] == ["truncated"] * 3
    assert [attempt["verdict"] for attempt in bench.pages()[0]["attempts"]] == ["truncated"] * 3
    assert spent(bench) == spent_before + used


def test_a_call_whose_process_was_killed_keeps_nothing_reserved(bench: VlmBench) -> None:
    bench.document(PAGES)
    set_budget(bench, limit_tokens=10**6)
    with fake_vlm(by_page({1: Fault.HANG}, calls=1)) as fake:
        bench.run(
            fake.base_url, cost_centre=PROJECT, on_event=once_in_the_middle(bench, fake, kill_transcriber)
        )
    assert set(ends_of(bench.pages()).values()) == {"vlm"}
    assert bench.verdicts()[1][0] == Verdict.ABANDONED
    assert spent(bench) > fake.reported_tokens.total()


def test_a_run_says_when_little_is_left(bench: VlmBench) -> None:
    bench.document(PAGES)
    set_budget(bench, limit_tokens=10**6, warn_percent=100)
    set_budget(bench, "sales", limit_tokens=0)
    with fake_vlm() as fake:
        assert bench.run(fake.base_url, cost_centre=PROJECT).budgets == ()
        set_budget(bench, limit_tokens=2 * spent(bench), warn_percent=50)
        [budget] = bench.run(fake.base_url, cost_centre=PROJECT).budgets
    assert (budget.cost_centre, budget.is_warned_of) == (TEAM, True)
    assert budget == stands(bench)
