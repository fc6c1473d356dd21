"""Where a budget stands, as JSON. Amounts are text, as in the price book."""

from __future__ import annotations

from models.budget import BudgetMonth, Level
from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text
from workers.api import schema


def budget_json(budget: BudgetMonth) -> schema.Budget:
    return {
        "cost_centre": budget.cost_centre,
        "money": None if budget.money is None else _money(budget.money, budget.currency),
        "tokens": None if budget.tokens is None else _amounts(budget.tokens),
        "warn_percent": budget.warn_percent,
        "when_spent": budget.when_spent,
        "is_warned_of": budget.is_warned_of,
    }


def _money(level: Level, currency: str | None) -> schema.MoneyLevel:
    return {
        "currency": currency,
        "limit": amount_text(level.limit, MONEY_DECIMALS),
        "spent": amount_text(level.spent, MONEY_DECIMALS),
        "reserved": amount_text(level.reserved, MONEY_DECIMALS),
        "left": amount_text(level.left, MONEY_DECIMALS),
    }


def _amounts(level: Level) -> schema.TokenLevel:
    return {"limit": level.limit, "spent": level.spent, "reserved": level.reserved, "left": level.left}
