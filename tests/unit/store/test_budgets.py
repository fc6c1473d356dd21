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
from sqlalchemy import func, select

from models.budget import Budget, BudgetMonth, Charge, Level, Reservation, WhenSpent
from models.errors import BudgetSpent, BudgetUnusable
from models.tables import PageRow, VlmAttemptRow
from models.transcription import Call, TokenUsage
from pipeline.store import Store, connect_store
from pipeline.store.budgets import Settlement, reserve, settle
from pipeline.store.page_statements import release
from tests.unit.store.booking import BOOK
from tests.unit.store.calls import Pages, counted, month_rows

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
    for name in ("research2", "Research", "Research/atlas", "research-x/atlas", "re", "other/research"):
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


# Calls


@pytest.fixture
def pages(store: Store) -> Pages:
    taken = Pages(store, 4)
    taken.take_all()
    return taken


def open_call(
    store: Store, pages: Pages, page_number: int = 1, *, attempt: int = 1, cost_centre: str = "research/atlas"
) -> Call:
    """Of at most 100 tokens, for 31 micro-units."""
    call = pages.call(
        page_number, attempt, cost_centre=cost_centre, month=MONTH, prompt_tokens=50, answer_tokens=50
    )
    assert store.transcriptions.open_call(call, owner=pages.owner_of(page_number), currency="USD")
    return call


def used(prompt_tokens: int, answer_tokens: int) -> TokenUsage:
    return TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=answer_tokens)


def rows(store: Store) -> dict[tuple[str, str], tuple[int, ...]]:
    return {
        key: (row.reserved_micro, row.reserved_tokens, row.spent_micro, row.spent_tokens)
        for key, row in month_rows(store, "research").items()
    }


def test_an_open_call_is_reserved_and_a_closed_one_spent_of_team_and_project(
    store: Store, pages: Pages
) -> None:
    call = open_call(store, pages)
    assert call.reserved_micro == 31
    both = {("research", MONTH), ("research/atlas", MONTH)}
    assert rows(store) == dict.fromkeys(both, (31, 100, 0, 0)) == counted(store)
    closed = pages.closed(call, used(50, 10))
    store.transcriptions.close_call(closed)
    store.transcriptions.close_call(closed)
    assert rows(store) == dict.fromkeys(both, (0, 0, 11, 60)) == counted(store)
    entry_id = store.ledger.entries_of_page(pages.document_id, 1)[0].entry_id
    store.ledger.reverse(entry_id)
    assert rows(store) == dict.fromkeys(both, (0, 0, 0, 0)) == counted(store)


def test_calls_that_are_abandoned_give_back_what_they_cannot_have_cost(store: Store, pages: Pages) -> None:
    open_call(store, pages, 1)
    open_call(store, pages, 2, cost_centre="research")
    open_call(store, pages, 3)
    for page_number in (1, 2):
        store.pages.release_leases(pages.owner_of(page_number))
    assert store.transcriptions.close_abandoned(BOOK) == 2
    assert rows(store) == {
        ("research", MONTH): (31, 100, 12, 100),
        ("research/atlas", MONTH): (31, 100, 6, 50),
    }
    assert rows(store) == counted(store)


def test_a_call_without_room_or_without_its_page_leaves_nothing_behind(store: Store, pages: Pages) -> None:
    store.budgets.set_budget(replace(PROJECT, limit_tokens=99), month=MONTH)
    before = rows(store)
    with pytest.raises(BudgetSpent):
        open_call(store, pages)
    store.pages.release_leases(pages.owner_of(1))
    call = pages.call(1, 1, cost_centre="research", month=MONTH, prompt_tokens=1, answer_tokens=1)
    assert not store.transcriptions.open_call(call, owner=pages.owner_of(1), currency="USD")
    assert pages.take(1) == 0
    assert not store.transcriptions.open_call(call, owner="somebody else", currency="USD")
    assert rows(store) == before
    with store.database.read() as session:
        assert session.scalar(select(func.count()).select_from(VlmAttemptRow)) == 0


def test_no_call_is_opened_about_a_page_that_is_being_given_back(
    store: Store, pages: Pages, tmp_path: Path, database_url: SecretStr | None, waits: Callable[[], bool]
) -> None:
    own = connect_store(tmp_path, database_url)
    call = pages.call(1, 1, cost_centre="research", month=MONTH, prompt_tokens=1, answer_tokens=1)
    with ThreadPoolExecutor(1) as thread:
        with store.database.write() as session:
            session.execute(release(PageRow.lease_owner == pages.owner_of(1)))
            opened = thread.submit(
                own.transcriptions.open_call, call, owner=pages.owner_of(1), currency="USD"
            )
            while not (opened.done() or waits()):
                time.sleep(0.01)
        assert not opened.result()
    assert rows(store) == {}
    own.close()


def test_a_budget_that_is_set_late_knows_what_was_spent_and_is_under_way(store: Store, pages: Pages) -> None:
    store.transcriptions.close_call(pages.closed(open_call(store, pages, 1), used(50, 10)))
    open_call(store, pages, 2)
    open_call(store, pages, 3, cost_centre="other/atlas")
    store.budgets.set_budget(replace(TEAM, limit_tokens=200), month=MONTH)
    assert stands(store).tokens == Level(limit=200, spent=60, reserved=100)
    assert stands(store).money == Level(limit=1_000, spent=11, reserved=31)
    store.budgets.set_budget(replace(TEAM, currency="EUR"), month=MONTH)
    assert stands(store).money == Level(limit=1_000, spent=0, reserved=31)
    store.budgets.set_budget(replace(PROJECT, limit_tokens=200), month=MONTH)
    assert tokens_of(store, "research/atlas") == (60, 100)


def test_room_is_looked_for_without_taking_any(store: Store, pages: Pages) -> None:
    store.budgets.set_budget(replace(TEAM, limit_tokens=150), month=MONTH)
    open_call(store, pages)
    before = rows(store)
    store.budgets.require_room(reservation(150, cost_centre="research/atlas"))
    with pytest.raises(BudgetSpent, match="may cost 151 tokens"):
        store.budgets.require_room(reservation(151, cost_centre="research/atlas"))
    with pytest.raises(BudgetUnusable):
        store.budgets.require_room(reservation(1, None))
    assert rows(store) == before


def test_setting_a_budget_again_and_again_loses_no_call_that_begins_or_ends_meanwhile(
    store: Store, pages: Pages, tmp_path: Path, database_url: SecretStr | None
) -> None:
    def call_often(page_number: int) -> None:
        own = connect_store(tmp_path, database_url)
        for attempt in range(1, 21):
            call = open_call(own, pages, page_number, attempt=attempt)
            own.transcriptions.close_call(pages.closed(call, used(50, attempt)))
        own.close()

    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(call_often, page_number) for page_number in range(1, 5)]
        while not all(one.done() for one in calls):
            for cost_centre in ("research", "research/atlas"):
                store.budgets.set_budget(Budget(cost_centre=cost_centre, limit_tokens=10**6), month=MONTH)
    for one in calls:
        one.result()
    ended = {key: row for key, row in rows(store).items() if key[1] == MONTH}
    assert ended == counted(store)
    assert ended["research", MONTH][1:4:2] == (0, 4 * (20 * 50 + 210))
