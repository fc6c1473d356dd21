"""Where budgets stand, as a table that cuts no number. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.budget import BudgetMonth, Level
from pipeline.chargeback.amounts import money_text
from workers.cli.printable import printable
from workers.cli.table_parts import new_table

MOST_BAR_CELLS: Final = 20
LEAST_BAR_CELLS: Final = 8
"""A narrower bar says nothing; it is left out."""
LEAST_NAME_CELLS: Final = 10
"""Names are folded to no less."""
GAP_CELLS: Final = 2
"""Between columns."""
AMOUNTS: Final = ("limit", "spent", "reserved", "left")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A limit of a budget. ``name`` is empty for a budget's second one."""

    name: str
    unit: str
    amounts: tuple[str, ...]
    level: Level
    style: str
    when_spent: str

    @property
    def share(self) -> str:
        return f"{self.level.percent_spent} %"


def print_budgets(console: Console, budgets: Sequence[BudgetMonth], month: str) -> None:
    console.print(_budgets_table(budgets, month, console.width), crop=False)


def print_uncounted(console: Console, spent_micro: Mapping[str, int], month: str) -> None:
    """``spent_micro`` is by currency, of those that are not the limit's."""
    amounts = " and ".join(money_text(micro, currency) for currency, micro in sorted(spent_micro.items()))
    line = f"what was spent in {month} in another currency does not count against the new limit: {amounts}"
    console.print(Text(line, style="yellow"))


def _budgets_table(budgets: Sequence[BudgetMonth], month: str, width: int) -> Table:
    """A row a limit, its amounts side by side; beneath each other where ``width`` is too narrow for that."""
    rows = tuple(_rows(budgets))
    name_cells = max(map(cell_len, ("cost centre", *(row.name for row in rows))))
    spare = width - _cells_without_names(rows)
    table = new_table(f"Budgets in {month} (UTC)")
    table.add_column("cost centre", overflow="fold")
    if spare < min(name_cells, LEAST_NAME_CELLS):
        return _with_stacked_amounts(table, rows)
    bar_cells = min(MOST_BAR_CELLS, spare - name_cells - GAP_CELLS)
    return _with_amounts_in_a_line(table, rows, bar_cells if bar_cells >= LEAST_BAR_CELLS else 0)


def _cells_without_names(rows: Sequence[_Row]) -> int:
    columns = [
        [row.unit for row in rows],
        *([heading, *(row.amounts[index] for row in rows)] for index, heading in enumerate(AMOUNTS)),
        ["spent", *(row.share for row in rows)],
        ["spent", *(row.when_spent for row in rows)],
    ]
    return sum(max(map(cell_len, texts)) + GAP_CELLS for texts in columns)


def _with_amounts_in_a_line(table: Table, rows: Sequence[_Row], bar_cells: int) -> Table:
    table.add_column("in", no_wrap=True)
    for heading in AMOUNTS:
        table.add_column(heading, justify="right", no_wrap=True)
    if bar_cells:
        table.add_column("", no_wrap=True)
    _add_ends(table)
    for row in rows:
        bar = (_bar(row.level, row.style, bar_cells),) if bar_cells else ()
        table.add_row(
            Text(row.name), row.unit, *row.amounts, *bar, Text(row.share, row.style), row.when_spent
        )
    return table


def _with_stacked_amounts(table: Table, rows: Sequence[_Row]) -> Table:
    table.add_column("", no_wrap=True)
    table.add_column("amount", justify="right", no_wrap=True)
    table.add_column("in", no_wrap=True)
    _add_ends(table)
    for row in rows:
        amounts = "\n".join(row.amounts)
        share = Text(row.share, row.style)
        table.add_row(Text(row.name), "\n".join(AMOUNTS), amounts, row.unit, share, row.when_spent)
    return table


def _add_ends(table: Table) -> None:
    table.add_column("spent", justify="right", no_wrap=True)
    table.add_column("when\nspent", no_wrap=True)


def _rows(budgets: Sequence[BudgetMonth]) -> Iterator[_Row]:
    decimals = _money_decimals(budgets)
    for budget in budgets:
        name = printable(budget.cost_centre)
        if budget.money is not None:
            amounts = tuple(_money(micro, decimals) for micro in _amounts(budget.money))
            yield _row(budget, budget.money, name, budget.currency or "money", amounts)
            name = ""
        if budget.tokens is not None:
            amounts = tuple(f"{tokens:,}" for tokens in _amounts(budget.tokens))
            yield _row(budget, budget.tokens, name, "tokens", amounts)


def _row(budget: BudgetMonth, level: Level, name: str, unit: str, amounts: tuple[str, ...]) -> _Row:
    return _Row(
        name=name,
        unit=unit,
        amounts=amounts,
        level=level,
        style=_style(budget, level),
        when_spent=budget.when_spent.value,
    )


def _amounts(level: Level) -> tuple[int, ...]:
    return level.limit, level.spent, level.reserved, level.left


def _money_decimals(budgets: Sequence[BudgetMonth]) -> int:
    """As many as the longest amount of the table has."""
    levels = [budget.money for budget in budgets if budget.money is not None]
    return max((_decimals(money_text(micro)) for level in levels for micro in _amounts(level)), default=0)


def _money(micro: int, decimals: int) -> str:
    text = money_text(micro)
    return text + "0" * (decimals - _decimals(text))


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _style(budget: BudgetMonth, level: Level) -> str:
    if level.left <= 0:
        return "red"
    return "yellow" if level.has_spent(budget.warn_percent) else "green"


def _bar(level: Level, style: str, bar_cells: int) -> Text:
    """Spent, reserved and left, in parts of the limit."""
    spent = _filled(level.spent, level.limit, bar_cells)
    used = max(spent, _filled(level.spent + level.reserved, level.limit, bar_cells))
    return Text.assemble(
        ("█" * spent, style), ("▒" * (used - spent), "cyan"), ("░" * (bar_cells - used), "dim")
    )


def _filled(amount: int, limit: int, bar_cells: int) -> int:
    return min(bar_cells, bar_cells * amount // limit) if limit else bar_cells
