"""The statements behind ``BudgetStore``: what a month's row holds, and what it must hold once a budget is set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, select, true, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from models.budget import Budget, BudgetMonth, Level, WhenSpent
from models.tables import BudgetMonthRow, BudgetRow, LedgerRow, VlmAttemptRow
from pipeline.chargeback.cost_centres import team_of
from pipeline.chargeback.months import month_after
from pipeline.store.cost_centre_statements import is_paid_by
from pipeline.store.database import insert_missing


def budgets_of(session: Session, cost_centres: Sequence[str]) -> dict[str, Budget]:
    rows = session.scalars(select(BudgetRow).where(BudgetRow.cost_centre.in_(cost_centres)))
    return {row.cost_centre: _budget(row) for row in rows}


def hold_to(session: Session, budget: Budget, month: str) -> None:
    """Also in the next month: a machine whose clock is ahead may be making its row now."""
    for one in (month, month_after(month)):
        insert_missing(session, BudgetMonthRow, [empty_month(budget.cost_centre, one, budget)])
        row = update(BudgetMonthRow).where(is_month(budget.cost_centre, one))
        session.execute(row.values(limit_micro=budget.limit_micro, limit_tokens=budget.limit_tokens))
        session.execute(row.values(_counted(session, budget, one)))  # under the lock that the first one took


def _counted(session: Session, budget: Budget, month: str) -> dict[str, int]:
    """What the ledger and the calls under way say of the month. Amounts in another currency are none of its."""
    spent_micro, spent_tokens = session.execute(_spent(budget, month)).one()
    reserved_micro, reserved_tokens = session.execute(_reserved(budget, month)).one()
    return {
        "spent_micro": int(spent_micro),
        "spent_tokens": int(spent_tokens),
        "reserved_micro": int(reserved_micro),
        "reserved_tokens": int(reserved_tokens),
    }


def _reserved(budget: Budget, month: str) -> Select[int, int]:
    return select(_sum(VlmAttemptRow.reserved_micro), _sum(VlmAttemptRow.reserved_tokens)).where(
        VlmAttemptRow.verdict.is_(None),
        VlmAttemptRow.month == month,
        is_paid_by(VlmAttemptRow.cost_centre, budget.cost_centre),
    )


def _spent(budget: Budget, month: str) -> Select[int, int]:
    is_its_currency = true() if budget.currency is None else LedgerRow.currency == budget.currency
    return (
        select(
            _sum(case((is_its_currency, LedgerRow.cost_micro), else_=0)),
            _sum(LedgerRow.prompt_tokens + LedgerRow.completion_tokens),
        )
        .join(VlmAttemptRow, _is_about_call())
        .where(_is_spent_by(budget.cost_centre, month))
    )


def uncounted(session: Session, budget: Budget, month: str) -> dict[str, int]:
    """What the ledger says of the month in other currencies than the budget's: micro-units by currency, above 0."""
    if budget.currency is None:
        return {}
    query = (
        select(LedgerRow.currency, _sum(LedgerRow.cost_micro))
        .join(VlmAttemptRow, _is_about_call())
        .where(_is_spent_by(budget.cost_centre, month), LedgerRow.currency != budget.currency)
        .group_by(LedgerRow.currency)
    )
    return {currency: int(micro) for currency, micro in session.execute(query) if micro > 0}


def _is_about_call() -> ColumnElement[bool]:
    return and_(
        VlmAttemptRow.reading_id == LedgerRow.reading_id,
        VlmAttemptRow.page_number == LedgerRow.page_number,
        VlmAttemptRow.attempt == LedgerRow.attempt,
        LedgerRow.model_id.is_not(None),
    )


def _is_spent_by(cost_centre: str, month: str) -> ColumnElement[bool]:
    """The month is that of the call, which may have been booked later; a reversal is its entry's."""
    return and_(
        LedgerRow.day >= f"{month}-01",
        LedgerRow.team == team_of(cost_centre),
        VlmAttemptRow.month == month,
        is_paid_by(VlmAttemptRow.cost_centre, cost_centre),
    )


def _sum(amount: ColumnElement[Any] | InstrumentedAttribute[Any]) -> ColumnElement[int]:
    return func.coalesce(func.sum(amount), 0)


def is_month(cost_centre: str, month: str) -> ColumnElement[bool]:
    return and_(BudgetMonthRow.cost_centre == cost_centre, BudgetMonthRow.month == month)


def empty_month(cost_centre: str, month: str, budget: Budget | None) -> dict[str, Any]:
    return {
        "cost_centre": cost_centre,
        "month": month,
        "limit_micro": None if budget is None else budget.limit_micro,
        "limit_tokens": None if budget is None else budget.limit_tokens,
        "reserved_micro": 0,
        "reserved_tokens": 0,
        "spent_micro": 0,
        "spent_tokens": 0,
    }


def budget_columns(budget: Budget) -> dict[str, Any]:
    return {**asdict(budget), "updated_at_s": time.time()}


def _budget(row: BudgetRow) -> Budget:
    return Budget(
        cost_centre=row.cost_centre,
        limit_micro=row.limit_micro,
        currency=row.currency,
        limit_tokens=row.limit_tokens,
        warn_percent=row.warn_percent,
        when_spent=row.when_spent,
    )


def standing(session: Session, which: ColumnElement[bool], month: str) -> tuple[BudgetMonth, ...]:
    """In a month without a row yet nothing is spent."""
    query = (
        select(BudgetRow, BudgetMonthRow)
        .outerjoin(
            BudgetMonthRow,
            and_(BudgetMonthRow.cost_centre == BudgetRow.cost_centre, BudgetMonthRow.month == month),
        )
        .where(which)
        .order_by(BudgetRow.cost_centre)
    )
    return tuple(
        budget_month(row or BudgetMonthRow(**empty_month(budget.cost_centre, month, _budget(budget))), budget)
        for budget, row in session.execute(query)
    )


def budget_month(row: BudgetMonthRow, budget: BudgetRow | None) -> BudgetMonth:
    """Of a budget that was removed meanwhile nothing is known but its limits; a page that it refused may be sent
    again."""
    return BudgetMonth(
        cost_centre=row.cost_centre,
        month=row.month,
        money=_level(row.limit_micro, row.spent_micro, row.reserved_micro),
        currency=None if budget is None else budget.currency,
        tokens=_level(row.limit_tokens, row.spent_tokens, row.reserved_tokens),
        warn_percent=100 if budget is None else budget.warn_percent,
        when_spent=WhenSpent.HOLD if budget is None else budget.when_spent,
    )


def _level(limit: int | None, spent: int, reserved: int) -> Level | None:
    return None if limit is None else Level(limit=limit, spent=spent, reserved=reserved)
