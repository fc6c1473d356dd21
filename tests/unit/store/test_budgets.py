"""What calls may take of budgets, on both databases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from models.budget import Budget, BudgetMonth, Charge, Level, Reservation, WhenSpent
from models.errors import BudgetSpent, BudgetUnusable
from pipeline.store import Store, connect_store
from pipeline.store.budgets import Settlement, reserve, settle

MONTH, NEXT, AFTER = "2026-11", "2026-12", "2027-01"
TEAM = Budget(cost_centre="research", limit_micro=1_000, currency="USD", limit_tokens=500)
PROJECT = Budget(cost_centre="research/atlas", limit_tokens=100)


def reservation(
    tokens: int,
    micro: int | None = 0,
    *,
    cost_centre: str = "research",
    month: str = MONTH,
    currency: str = "USD",
) -> Reservation:
    return Reservation(
        cost_centre=cost_centre,
        month=month,
        most=Charge(tokens=tokens, micro=micro),
        currency=currency,
        model_id="qwen",
    )


def take(store: Store, tokens: int, micro: int | None = 0, **changes: str) -> None:
    with store.database.write() as session:
        reserve(session, reservation(tokens, micro, **changes))


def is_refused(store: Store, tokens: int, micro: int | None = 0, **changes: str) -> bool:
    try:
        take(store, tokens, micro, **changes)
    except BudgetSpent:
        return True
    return False


def end(store: Store, reserved: Charge, billed: Charge, cost_centre: str = "research") -> None:
    with store.database.write() as session:
        settle(
            session,
            [Settlement(cost_centre=cost_centre, month=MONTH, reserved=reserved, billed=billed)],
        )


def stands(store: Store, cost_centre: str = "research", month: str = MONTH) -> BudgetMonth:
    [found] = [one for one in store.budgets.in_month(month) if one.cost_centre == cost_centre]
    return found


def tokens_of(store: Store, cost_centre: str = "research", month: str = MONTH) -> tuple[int, int]:
    """Spent and reserved."""
    level = stands(store, cost_centre, month).tokens
    assert level is not None
    return level.spent, level.reserved


@pytest.mark.parametrize(
    ("tokens", "micro", "fits"),
    [(500, 1_000, True), (501, 0, False), (0, 1_001, False), (500, 0, True), (0, 1_000, True)],
)
def test_a_call_fits_up_to_either_limit(store: Store, tokens: int, micro: int, fits: bool) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    assert is_refused(store, tokens, micro) is not fits


def test_what_is_reserved_and_what_is_spent_both_count(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    take(store, 200)
    take(store, 200)
    assert is_refused(store, 101)
    end(store, Charge(tokens=200, micro=0), Charge(tokens=50, micro=7))
    assert tokens_of(store) == (50, 200)
    assert stands(store).money == Level(limit=1_000, spent=7, reserved=0)
    take(store, 250)
    assert is_refused(store, 1)


def test_a_team_bounds_its_projects_together_and_a_project_itself(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    store.budgets.set_budget(PROJECT, month=MONTH)
    take(store, 450, cost_centre="research/other")
    assert is_refused(store, 51, cost_centre="research/atlas")
    take(store, 50, cost_centre="research/atlas")
    assert is_refused(store, 1)
    assert tokens_of(store) == (0, 500)
    assert tokens_of(store, "research/atlas") == (0, 50)


def test_what_the_project_refuses_is_not_taken_of_the_team(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    store.budgets.set_budget(PROJECT, month=MONTH)
    with pytest.raises(BudgetSpent, match=r"research/atlas for 2026-11: 100 tokens left of 100 tokens"):
        take(store, 101, cost_centre="research/atlas")
    assert tokens_of(store) == (0, 0)


def test_a_cost_centre_of_a_similar_name_has_a_budget_of_its_own(store: Store) -> None:
    store.budgets.set_budget(replace(TEAM, limit_tokens=0), month=MONTH)
    for name in ("research2", "Research", "research-x/atlas", "re", "other/research"):
        take(store, 1_000, cost_centre=name)
    assert is_refused(store, 1, cost_centre="research/any")


def test_without_a_budget_nothing_is_limited_and_one_set_later_knows(store: Store) -> None:
    take(store, 10**12, 10**15)
    assert store.budgets.in_month(MONTH) == ()


def test_each_month_has_its_own(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    for month in (MONTH, NEXT, AFTER):
        take(store, 500, month=month)
        assert is_refused(store, 1, month=month)
        assert tokens_of(store, month=month) == (0, 500)


def test_a_change_holds_at_once_and_for_months_that_have_begun_elsewhere(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    take(store, 1, month=NEXT)
    store.budgets.set_budget(replace(TEAM, limit_tokens=10), month=MONTH)
    for month in (MONTH, NEXT, AFTER):
        assert is_refused(store, 11, month=month)


def test_a_budget_that_is_removed_limits_nothing_any_more(store: Store) -> None:
    store.budgets.set_budget(replace(TEAM, limit_tokens=0), month=MONTH)
    assert is_refused(store, 1)
    assert store.budgets.remove_budget("research", month=MONTH)
    assert not store.budgets.remove_budget("research", month=MONTH)
    for month in (MONTH, NEXT, AFTER):
        take(store, 1, month=month)
    assert store.budgets.budget("research") is None


def test_a_past_month_keeps_the_limit_that_it_had(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    store.budgets.set_budget(replace(TEAM, limit_tokens=7), month=NEXT)
    [past] = store.budgets.in_past_month(MONTH)
    assert past.tokens == Level(limit=500, spent=0, reserved=0)
    store.budgets.remove_budget("research", month=NEXT)
    [past] = store.budgets.in_past_month(MONTH)
    assert (past.tokens, past.currency) == (Level(limit=500, spent=0, reserved=0), None)
    assert store.budgets.in_past_month(NEXT) == ()


def test_money_needs_a_price_in_its_currency(store: Store) -> None:
    store.budgets.set_budget(TEAM, month=MONTH)
    with pytest.raises(BudgetUnusable, match="no price for qwen"):
        take(store, 1, None)
    with pytest.raises(BudgetUnusable, match="in USD, and the price book is in EUR"):
        take(store, 1, 1, currency="EUR")
    store.budgets.set_budget(replace(TEAM, limit_micro=None, currency=None), month=MONTH)
    take(store, 1, None)
    take(store, 1, 1, currency="EUR")


def test_a_refusal_says_whether_calls_under_way_are_all_that_is_in_its_way(store: Store) -> None:
    store.budgets.set_budget(replace(TEAM, when_spent=WhenSpent.HOLD), month=MONTH)
    take(store, 400)
    with pytest.raises(BudgetSpent) as refused:
        take(store, 101)
    assert refused.value.fits_once_calls_end
    assert refused.value.budget.when_spent is WhenSpent.HOLD
    end(store, Charge(tokens=400, micro=0), Charge(tokens=400, micro=0))
    with pytest.raises(BudgetSpent) as refused:
        take(store, 101)
    assert not refused.value.fits_once_calls_end
    assert str(refused.value) == (
        "budget of research for 2026-11: 0.001 USD left of 0.001 USD, 100 tokens left of 500 tokens, and this call "
        "may cost 101 tokens; raise it (doctriage budget set research) or wait for 2026-12, then the same command "
        "sends the page"
    )


def test_budgets_over_a_cost_centre_are_its_team_s_and_its_own(store: Store) -> None:
    for budget in (TEAM, PROJECT, replace(TEAM, cost_centre="sales")):
        store.budgets.set_budget(budget, month=MONTH)
    named = [one.cost_centre for one in store.budgets.budgets_over("research/atlas", MONTH)]
    assert named == ["research", "research/atlas"]
    assert [one.cost_centre for one in store.budgets.budgets_over("research", NEXT)] == ["research"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_whoever_waits_for_a_row_sees_what_the_other_took(
    store: Store, tmp_path: Path, database_url: SecretStr | None, waits: Callable[[], bool], is_kept: bool
) -> None:
    """The other is not committed when the second looks for room."""
    store.budgets.set_budget(TEAM, month=MONTH)
    own = connect_store(tmp_path, database_url)
    with ThreadPoolExecutor(1) as thread:
        with store.database.write() as session:
            reserve(session, reservation(300))
            second = thread.submit(is_refused, own, 300)
            while not (second.done() or waits()):
                time.sleep(0.01)
            if not is_kept:
                session.rollback()
        assert second.result() is is_kept
    own.close()


def test_the_first_calls_of_a_month_make_its_row_once(
    store: Store, tmp_path: Path, database_url: SecretStr | None
) -> None:
    store.budgets.set_budget(replace(TEAM, limit_tokens=40), month=MONTH)
    barrier = threading.Barrier(6)

    def take_ten(_: int) -> bool:
        own = connect_store(tmp_path, database_url)
        barrier.wait()
        refused = is_refused(own, 10, month=AFTER)
        own.close()
        return refused

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(take_ten, range(6))) == [False] * 4 + [True] * 2
    assert tokens_of(store, month=AFTER) == (0, 40)
