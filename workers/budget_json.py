"""Where a budget stands, as JSON. Amounts are text, as in the price book."""

from __future__ import annotations

from models.budget import BudgetMonth, Level
from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text


def budget_json(budget: BudgetMonth) -> dict[str, object]:
    return {
        "cost_centre": budget.cost_centre,
        "money": None if budget.money is None else _money(budget.money, budget.currency),
        "tokens": None if budget.tokens is None else _amounts(budget.tokens),
        "warn_percent": budget.warn_percent,
        "when_spent": budget.when_spent.value,
        "is_warned_of": budget.is_warned_of,
    }


def _money(level: Level, currency: str | None) -> dict[str, str | None]:
    amounts = {name: amount_text(micro, MONEY_DECIMALS) for name, micro in _amounts(level).items()}
    return {"currency": currency, **amounts}


def _amounts(level: Level) -> dict[str, int]:
    return {"limit": level.limit, "spent": level.spent, "reserved": level.reserved, "left": level.left}
