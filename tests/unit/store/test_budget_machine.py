"""Any order of calls, ends, losses and changes of budgets leaves the months' rows as a simple model has them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic import SecretStr

from models.budget import Budget
from models.errors import BudgetSpent
from models.tables import LedgerKind
from models.transcription import Call, TokenUsage
from pipeline.chargeback.cost_centres import payers
from pipeline.chargeback.months import month_after, month_of
from pipeline.store import Store
from tests.unit.store.booking import BOOK
from tests.unit.store.calls import MonthRow, Pages, counted, month_rows

PAGES = 5

pages = st.integers(1, PAGES)
projects = st.sampled_from(["", "/atlas", "/borea"])
tokens = st.integers(0, 1_000)
limits = st.none() | st.integers(0, 5_000)


@dataclass(slots=True)
class ModelMonth:
    """What the row of a cost centre and month must hold."""

    limit_micro: int | None
    limit_tokens: int | None
    reserved: list[Call] = field(default_factory=list)
    spent_micro: int = 0
    spent_tokens: int = 0

    def has_room_for(self, call: Call) -> bool:
        return _fits(
            self.limit_micro, self.spent_micro, [one.reserved_micro or 0 for one in (*self.reserved, call)]
        ) and _fits(
            self.limit_tokens, self.spent_tokens, [one.reserved_tokens for one in (*self.reserved, call)]
        )

    @property
    def is_within_limits(self) -> bool:
        row = self.as_row
        return _fits(row.limit_micro, row.spent_micro, [row.reserved_micro]) and _fits(
            row.limit_tokens, row.spent_tokens, [row.reserved_tokens]
        )

    @property
    def as_row(self) -> MonthRow:
        return MonthRow(
            self.limit_micro,
            self.limit_tokens,
            sum(one.reserved_micro or 0 for one in self.reserved),
            sum(one.reserved_tokens for one in self.reserved),
            self.spent_micro,
            self.spent_tokens,
        )


def _fits(limit: int | None, spent: int, reserved: list[int]) -> bool:
    return limit is None or spent + sum(reserved) <= limit


class BudgetMachine(RuleBasedStateMachine):
    """A page has one call at a time. ``ended`` are the calls whose entries have not been reversed."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.team = f"team-{secrets.token_hex(8)}"
        self.pages = Pages(self.store, PAGES)
        self.pages.take_all()
        self.month = "2025-02"  # reversals are booked today
        self.budgets: dict[str, Budget] = {}
        self.months: dict[tuple[str, str], ModelMonth] = {}
        self.calls: dict[int, Call] = {}
        self.attempts = dict.fromkeys(range(1, PAGES + 1), 0)
        self.ended: list[Call] = []
        self.is_held_to = True

    @rule(page=pages, project=projects, prompt=tokens, answer=tokens, is_ahead=st.booleans())
    def open_call(self, page: int, project: str, prompt: int, answer: int, is_ahead: bool) -> None:
        """``is_ahead``: by a machine for which the next month has begun."""
        if page in self.calls:
            return
        call = self.pages.call(
            page,
            self.attempts[page] + 1,
            cost_centre=self.team + project,
            month=month_after(self.month) if is_ahead else self.month,
            prompt_tokens=prompt,
            answer_tokens=answer,
        )
        months = {key: self.months.get(key) or self._new_month(key[0]) for key in keys_of(call)}
        has_room = all(month.has_room_for(call) for month in months.values())
        assert self._is_opened(call) is has_room
        if has_room:
            self.attempts[page] += 1
            self.calls[page] = call
            self.months |= months
            for month in months.values():
                month.reserved.append(call)

    @rule(page=pages, percent=st.sampled_from([0, 1, 50, 99, 100]))
    def close_within_what_was_reserved(self, page: int, percent: int) -> None:
        if page in self.calls:
            call = self.calls[page]
            answer_tokens = call.reserved_tokens - call.predicted_prompt_tokens
            self._close(page, call.predicted_prompt_tokens * percent // 100, answer_tokens * percent // 100)

    @rule(page=pages, more=st.integers(1, 3_000))
    def close_beyond_what_was_reserved(self, page: int, more: int) -> None:
        if page in self.calls:
            self.is_held_to = False
            self._close(page, self.calls[page].reserved_tokens + more, 0)

    @rule(page=pages)
    def lose_the_process(self, page: int) -> None:
        """Its page is given back; the next run closes its call and takes the page."""
        self.store.pages.release_leases(self.pages.owner_of(page))
        assert self.store.transcriptions.close_abandoned(BOOK) == (page in self.calls)
        if page in self.calls:
            call = self.calls[page]
            self._ended(page, TokenUsage(prompt_tokens=call.predicted_prompt_tokens, completion_tokens=0))
        assert self.pages.take(page) == self.attempts[page]

    @precondition(lambda self: self.ended)
    @rule(number=st.integers(0, 10))
    def reverse(self, number: int) -> None:
        call = self.ended.pop(number % len(self.ended))
        [booked] = [
            one
            for one in self.store.ledger.entries_of_page(self.pages.document_id, call.page_number)
            if (one.entry.attempt, one.entry.kind) == (call.attempt, LedgerKind.VLM_CALL)
        ]
        self.store.ledger.reverse(booked.entry_id)
        for key in keys_of(call):
            self.months[key].spent_micro -= booked.entry.cost_micro or 0
            self.months[key].spent_tokens -= booked.entry.prompt_tokens + booked.entry.completion_tokens

    @rule(project=projects, limit_micro=limits, limit_tokens=limits)
    def set_budget(self, project: str, limit_micro: int | None, limit_tokens: int | None) -> None:
        """Raised, lowered, or without a limit: that is a budget that is gone."""
        cost_centre = self.team + project
        budget = Budget(
            cost_centre=cost_centre,
            limit_micro=limit_micro,
            currency=None if limit_micro is None else "USD",
            limit_tokens=limit_tokens,
        )
        if limit_micro is None and limit_tokens is None:
            is_gone = self.store.budgets.remove_budget(cost_centre, month=self.month)
            assert is_gone is (self.budgets.pop(cost_centre, None) is not None)
            if not is_gone:
                return
        else:
            self.store.budgets.set_budget(budget, month=self.month)
            self.budgets[cost_centre] = budget
        for month in (self.month, month_after(self.month)):
            row = self.months.setdefault((cost_centre, month), ModelMonth(None, None))
            row.limit_micro, row.limit_tokens = limit_micro, limit_tokens
            self.is_held_to &= row.is_within_limits

    @rule()
    def let_the_month_end(self) -> None:
        self.month = month_after(self.month)

    @invariant()
    def rows_are_as_the_model_has_them(self) -> None:
        found = month_rows(self.store, self.team)
        assert found == {key: month.as_row for key, month in self.months.items()}
        booked = {key: sums for key, sums in counted(self.store).items() if key in self.months}
        empty = (0, 0, 0, 0)
        for key, row in found.items():
            held = (row.reserved_micro, row.reserved_tokens, row.spent_micro, row.spent_tokens)
            assert held == booked.get(key, empty)

    @invariant()
    def no_limit_is_exceeded_unless_it_was_lowered_or_more_was_billed(self) -> None:
        if self.is_held_to:
            assert all(month.is_within_limits for month in self.months.values())

    def _new_month(self, cost_centre: str) -> ModelMonth:
        budget = self.budgets.get(cost_centre)
        return (
            ModelMonth(None, None) if budget is None else ModelMonth(budget.limit_micro, budget.limit_tokens)
        )

    def _is_opened(self, call: Call) -> bool:
        try:
            return self.store.transcriptions.open_call(
                call, owner=self.pages.owner_of(call.page_number), currency=BOOK.currency
            )
        except BudgetSpent:
            return False

    def _close(self, page: int, prompt_tokens: int, answer_tokens: int) -> None:
        usage = TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=answer_tokens)
        self.store.transcriptions.close_call(self.pages.closed(self.calls[page], usage))
        self._ended(page, usage)

    def _ended(self, page: int, usage: TokenUsage) -> None:
        call = self.calls.pop(page)
        self.ended.append(call)
        for key in keys_of(call):
            month = self.months[key]
            month.reserved.remove(call)
            month.spent_micro += self.pages.closed(call, usage).entry.cost_micro or 0
            month.spent_tokens += usage.prompt_tokens + usage.completion_tokens


def keys_of(call: Call) -> list[tuple[str, str]]:
    return [(cost_centre, month_of(call.started_at_s)) for cost_centre in payers(call.cost_centre)]


def test_any_order_of_calls_and_changes_leaves_what_a_simple_model_has(
    store: Store, database_url: SecretStr | None
) -> None:
    """One database for all examples: each has a team and a document of its own."""

    class Machine(BudgetMachine):
        pass

    Machine.store = store
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40 if database_url is None else 10,
            stateful_step_count=25,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
