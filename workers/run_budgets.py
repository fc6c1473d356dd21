"""What budgets have to do with a run as a whole: whether it may begin, and what it says of them at its end."""

from __future__ import annotations

import time

import structlog

from models.budget import BudgetMonth, WhenSpent
from models.choices import RoutePolicy
from models.errors import BudgetSpent
from pipeline.chargeback.budget_words import rejection
from pipeline.chargeback.entries import Account
from pipeline.chargeback.months import month_of
from pipeline.escalated_page import LEAST_ANSWER_TOKENS
from pipeline.planning.serving_plan import ServingPlan
from pipeline.settings import Settings
from pipeline.store import BudgetStore

log = structlog.get_logger()


def require_budget(budgets: BudgetStore, settings: Settings, account: Account, plan: ServingPlan) -> None:
    """Of a run that may call the VLM. Raises ``BudgetSpent`` where a budget that rejects new runs has no room for the
    least call, and ``BudgetUnusable`` where there is one in money and nobody knows what a call costs in its
    currency."""
    if not settings.vlm.is_configured or settings.route is RoutePolicy.OCR:
        return
    least = account.reservation(
        account.model_id,
        prompt_tokens=plan.text_tokens,
        answer_tokens=min(LEAST_ANSWER_TOKENS, plan.max_output_tokens),
        at_s=time.time(),
    )
    budgets.require_comparable(least)
    for budget in budgets.budgets_over(least.cost_centre, least.month):
        if budget.when_spent is WhenSpent.REJECT and not budget.has_room_for(least.most):
            raise BudgetSpent(rejection(budget), budget)


def budgets_to_warn_of(budgets: BudgetStore, cost_centre: str) -> tuple[BudgetMonth, ...]:
    """Those of the team and the project, this month, of which so much is spent; each is logged."""
    month = month_of(time.time())
    spent = tuple(budget for budget in budgets.budgets_over(cost_centre, month) if budget.is_warned_of)
    for budget in spent:
        shares = [level.percent_spent for level in budget.levels]
        log.warning(
            "budget_nearly_spent",
            cost_centre=budget.cost_centre,
            month=month,
            percent_spent=max(shares),
            warn_percent=budget.warn_percent,
        )
    return spent
