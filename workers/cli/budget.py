"""``doctriage budget``: what cost centres may spend on the VLM in a month, and what they have spent."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from models.budget import Budget, BudgetMonth, WhenSpent
from pipeline.chargeback.echoes import echoed
from workers.cli.arguments import alternatives, cost_centre, one_of, whole_number

if TYPE_CHECKING:
    from pipeline.store import BudgetStore

NO_LIMIT = "none"
MOST_TOKENS = 10**15

budget_app = typer.Typer(
    no_args_is_help=True, help="What cost centres may spend on the VLM in a month, and what they have spent."
)


def _money_micro(text: str) -> int:
    from pipeline.chargeback.amounts import money_micro

    return money_micro(text)


def _tokens(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{echoed(text)} is no number of tokens; write digits, at most {MOST_TOKENS:,}")
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(MOST_TOKENS)) or int(digits) > MOST_TOKENS:
        raise ValueError(f"{echoed(text)} is too many; at most {MOST_TOKENS:,}")
    return int(digits)


def _month(text: str) -> str:
    from pipeline.chargeback.months import month_name

    try:
        return month_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


CostCentre = Annotated[
    str, typer.Argument(metavar="COST_CENTRE", help="A team, or TEAM/PROJECT.", parser=cost_centre)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@budget_app.command("set")
def set_command(
    cost_centre: CostCentre,
    money: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="A month's limit in the price book's currency, such as 200.00."),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="N", help="A month's limit in tokens, of prompts and answers.")
    ] = None,
    warn_at: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 100),
            metavar="PERCENT",
            help="Spent from which runs say so; by default 80.",
        ),
    ] = None,
    when_spent: Annotated[
        WhenSpent | None,
        typer.Option(
            parser=one_of(WhenSpent),
            metavar=alternatives(WhenSpent),
            help="What becomes of pages without room: degrade (the default) keeps the CPU's text; hold does so for "
            "now, and the same command sends them once there is room; reject also refuses new runs.",
        ),
    ] = None,
) -> None:
    """Set a cost centre's budget, or change the one that it has. It holds at once, for this month and all to come.

    What is not given stays as it is; the word none takes a limit away. A team's budget holds for all its projects
    together, and a project's own within it.
    """
    from pipeline.chargeback.price_book import load_price_book
    from pipeline.settings import load_settings

    book = load_price_book(load_settings().chargeback.price_book_file)
    month = _this_month()
    with _budgets() as budgets:
        budget = budgets.budget(cost_centre) or Budget(cost_centre=cost_centre)
        budget = _limited(budget, money, tokens, book.currency)
        budget = replace(
            budget,
            warn_percent=budget.warn_percent if warn_at is None else warn_at,
            when_spent=when_spent or budget.when_spent,
        )
        budgets.set_budget(budget, month=month)
        stands = [one for one in budgets.in_month(month) if one.cost_centre == cost_centre]
        uncounted = budgets.spent_in_other_currencies(budget, month)
    _print_budgets(stands, month)
    if money is not None and uncounted:
        _print_uncounted(uncounted, month)


@budget_app.command("remove")
def remove_command(cost_centre: CostCentre) -> None:
    """Remove a cost centre's budget: it is not limited any more. What it spent stays on its bill."""
    with _budgets() as budgets:
        is_gone = budgets.remove_budget(cost_centre, month=_this_month())
    if not is_gone:
        raise typer.BadParameter(
            f"{cost_centre!r} has no budget; `doctriage budget show` lists them", param_hint="COST_CENTRE"
        )
    typer.echo(f"{cost_centre} has no budget any more")


@budget_app.command("show")
def show_command(
    month: Annotated[
        str | None, typer.Option(metavar="MONTH", help="By default this one (UTC).", parser=_month)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the budgets and where they stand in a month: spent, reserved by calls under way, left."""
    this_month = _this_month()
    month = month or this_month
    with _budgets() as budgets:
        stands = budgets.in_past_month(month) if month < this_month else budgets.in_month(month)
    if as_json:
        from workers.budget_json import budget_json

        document = {"month": month, "budgets": [budget_json(one) for one in stands]}
        typer.echo(json.dumps(document, ensure_ascii=False))
    else:
        _print_budgets(stands, month)


@contextlib.contextmanager
def _budgets() -> Iterator[BudgetStore]:
    from pipeline.settings import load_settings
    from pipeline.store import open_store

    settings = load_settings()
    with contextlib.closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        yield store.budgets


def _this_month() -> str:
    from pipeline.chargeback.months import month_of

    return month_of(time.time())


def _limited(budget: Budget, money: str | None, tokens: str | None, currency: str) -> Budget:
    if money is not None:
        micro = _given(_money_micro, money, "--money")
        budget = replace(budget, limit_micro=micro, currency=None if micro is None else currency)
    if tokens is not None:
        budget = replace(budget, limit_tokens=_given(_tokens, tokens, "--tokens"))
    if budget.limit_micro is None and budget.limit_tokens is None:
        raise typer.BadParameter(
            "a budget has a limit in money, in tokens or both; `doctriage budget remove` removes it",
            param_hint="--money / --tokens",
        )
    return budget


def _given(parse: Callable[[str], int | None], text: str, option: str) -> int | None:
    """None where the word says that there is no limit."""
    if text == NO_LIMIT:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def _print_uncounted(spent_micro: Mapping[str, int], month: str) -> None:
    from workers.cli.budget_table import print_uncounted
    from workers.cli.terminal import open_console

    print_uncounted(open_console(), spent_micro, month)


def _print_budgets(budgets: Sequence[BudgetMonth], month: str) -> None:
    if not budgets:
        typer.echo(f"no budgets in {month}; `doctriage budget set COST_CENTRE --money AMOUNT` sets one")
        return
    from workers.cli.budget_table import print_budgets
    from workers.cli.terminal import open_console

    print_budgets(open_console(), budgets, month)
