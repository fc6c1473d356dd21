"""What a user is told of a budget that has no room, or nearly none."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from models.budget import Budget, BudgetMonth, Level, Reservation, WhenSpent
from pipeline.chargeback.amounts import money_text
from pipeline.chargeback.months import month_after


def no_room(budget: BudgetMonth, reservation: Reservation) -> str:
    """Why no call was made about a page, and what to do."""
    most = reservation.most
    wanted = {"money": most.micro or 0, "tokens": most.tokens}
    needs = [
        _amount(budget, kind, wanted[kind]) for kind, level in _levels(budget) if wanted[kind] > level.left
    ]
    sends = "the same command" if budget.when_spent is WhenSpent.HOLD else "--force"
    return (
        f"{_left(budget)}, and this call may cost {' and '.join(needs)}; {_raise_it(budget.cost_centre)} or wait for "
        f"{month_after(budget.month)}, then {sends} sends the page"
    )


def rejection(budget: BudgetMonth) -> str:
    """Why no run begins."""
    return (
        f"{_left(budget)}, so nothing is taken; {_raise_it(budget.cost_centre)}, wait for "
        f"{month_after(budget.month)}, or run with --route ocr, which costs nothing of it"
    )


def warning(budget: BudgetMonth) -> str:
    shares = [
        f"{level.percent_spent} % of {_amount(budget, kind, level.limit)}"
        for kind, level in _levels(budget)
        if level.has_spent(budget.warn_percent)
    ]
    return f"budget of {budget.cost_centre} for {budget.month}: {', '.join(shares)} spent"


def unpriced(cost_centre: str, model_id: str) -> str:
    return (
        f"{cost_centre} has a budget in money, and the price book has no price for {model_id}, so nobody knows what a "
        f"call costs; add the price, or set a budget in tokens alone: {_set(cost_centre)} --money none --tokens N"
    )


def not_in_currency(budget: Budget, currency: str) -> str:
    return (
        f"{budget.cost_centre} has a budget in {budget.currency}, and the price book is in {currency}; set it anew "
        f"({_set(budget.cost_centre)} --money AMOUNT), or use a price book in {budget.currency}"
    )


def _left(budget: BudgetMonth) -> str:
    """Such as ``budget of research for 2026-11: 0.01 USD left of 200 USD``."""
    levels = [
        f"{_amount(budget, kind, level.left)} left of {_amount(budget, kind, level.limit)}"
        for kind, level in _levels(budget)
    ]
    return f"budget of {budget.cost_centre} for {budget.month}: {', '.join(levels)}"


def _levels(budget: BudgetMonth) -> Iterator[tuple[str, Level]]:
    if budget.money is not None:
        yield "money", budget.money
    if budget.tokens is not None:
        yield "tokens", budget.tokens


def _amount(budget: BudgetMonth, kind: str, amount: int) -> str:
    return money_text(amount, budget.currency) if kind == "money" else f"{amount:,} tokens"


def _raise_it(cost_centre: str) -> str:
    return f"raise it ({_set(cost_centre)})"


def _set(cost_centre: str) -> str:
    return f"doctriage budget set {shlex.quote(cost_centre)}"
