"""The table of ``doctriage budget show`` in terminals of several widths."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from models.budget import BudgetMonth, Level, WhenSpent
from workers.cli.budget_table import print_budgets


def budget(cost_centre: str, *, money: Level | None = None, tokens: Level | None = None) -> BudgetMonth:
    return BudgetMonth(
        cost_centre=cost_centre,
        month="2026-11",
        money=money,
        currency="USD",
        tokens=tokens,
        warn_percent=80,
        when_spent=WhenSpent.DEGRADE,
    )


FINE = budget("research", money=Level(limit=200_000_000, spent=3_946, reserved=1_204_400))
ROUND = budget(
    "a-department-with-a-long-name/ferries",
    money=Level(limit=15_000_000, spent=0, reserved=0),
    tokens=Level(limit=40_000_000, spent=31_004_112, reserved=0),
)
GREAT = budget("great", money=Level(limit=9_999_999_999_000_000, spent=1, reserved=1_234_567_890_123))


def shown(width: int, *budgets: BudgetMonth) -> str:
    stream = io.StringIO()
    print_budgets(Console(file=stream, width=width), budgets, "2026-11")
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_number_is_cut_whatever_the_terminal_s_width(width: int) -> None:
    lines = shown(width, FINE, ROUND, GREAT).splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert {"200.000000", "0.003946", "1.204400", "198.791654"} <= words
    assert {"40,000,000", "31,004,112", "8,995,888"} <= words
    assert {"9,999,999,999.000000", "0.000001", "1,234,567.890123", "9,998,765,431.109876"} <= words
    assert not any("…" in line for line in lines)


def test_all_money_of_a_table_has_the_same_decimals() -> None:
    table = shown(120, FINE, ROUND)
    assert table.count("15.000000") == 2
    assert "15.00 " not in table


def test_the_bar_shrinks_and_goes_before_a_number_does() -> None:
    wide, narrow = shown(120, FINE), shown(90, FINE)
    assert sum(wide.count(cell) for cell in "█▒░") == 20
    assert sum(narrow.count(cell) for cell in "█▒░") in range(8, 20)
    assert not any(cell in shown(70, FINE) for cell in "█▒░")


def test_long_names_are_folded_and_stay_whole() -> None:
    parts = (line.split("  ")[0].strip() for line in shown(80, ROUND).splitlines()[4:])
    assert "".join(parts) == "a-department-with-a-long-name/ferries"
    assert "a-department-with-a-long-name/ferries" in shown(160, ROUND)
