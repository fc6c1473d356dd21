"""``doctriage budget`` as a user starts it."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.chargeback.months import month_after, month_of
from pipeline.store import open_store
from tests.acceptance.test_command_line import run_doctriage
from workers.cli import app


def shown(home: Path, *options: str) -> list[dict[str, Any]]:
    answer = run_doctriage("budget", "show", "--json", *options, home=home)
    assert (answer.returncode, answer.stderr) == (0, "")
    budgets: list[dict[str, Any]] = json.loads(answer.stdout)["budgets"]
    return budgets


def set_budget(home: Path, *arguments: str) -> str:
    answer = run_doctriage("budget", "set", *arguments, home=home)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    return answer.stdout


def test_a_budget_is_set_changed_shown_and_removed(tmp_path: Path) -> None:
    set_budget(tmp_path, "research", "--money", "200.000001", "--warn-at", "90")
    [before] = shown(tmp_path)
    assert before == {
        "cost_centre": "research",
        "money": {
            "currency": "USD",
            "limit": "200.000001",
            "spent": "0",
            "reserved": "0",
            "left": "200.000001",
        },
        "tokens": None,
        "warn_percent": 90,
        "when_spent": "degrade",
        "is_warned_of": False,
    }
    set_budget(tmp_path, "research", "--tokens", "5000000", "--when-spent", "hold")
    set_budget(tmp_path, "research/atlas", "--tokens", "0")
    changed, project = shown(tmp_path)
    tokens = {"limit": 5_000_000, "spent": 0, "reserved": 0, "left": 5_000_000}
    assert changed == {**before, "tokens": tokens, "when_spent": "hold"}
    assert (project["cost_centre"], project["is_warned_of"]) == ("research/atlas", True)
    set_budget(tmp_path, "research", "--money", "none")
    assert shown(tmp_path)[0]["money"] is None
    table = run_doctriage("budget", "show", home=tmp_path).stdout
    assert f"Budgets in {month_of(time.time())} (UTC)" in table
    assert [line.split()[0] for line in table.splitlines()[4:]] == ["research", "research/atlas"]
    removed = run_doctriage("budget", "remove", "research", home=tmp_path)
    assert (removed.returncode, removed.stdout) == (0, "research has no budget any more\n")
    assert [one["cost_centre"] for one in shown(tmp_path)] == ["research/atlas"]


def test_other_months_are_shown_by_their_name(tmp_path: Path) -> None:
    set_budget(tmp_path, "research", "--tokens", "7")
    assert shown(tmp_path, "--month", month_after(month_of(time.time())))[0]["tokens"]["limit"] == 7
    assert shown(tmp_path, "--month", "2020-01") == []
    answer = run_doctriage("budget", "show", "--month", "2020-01", home=tmp_path)
    assert answer.stdout == (
        "no budgets in 2020-01; `doctriage budget set COST_CENTRE --money AMOUNT` sets one\n"
    )


def test_money_is_in_the_price_book_s_currency(tmp_path: Path) -> None:
    book = tmp_path / "own.toml"
    book.write_text(
        'schema_version = 1\nname = "own"\ncurrency = "EUR"\n[[entries]]\neffective_from = 2026-01-01\n',
        encoding="utf-8",
    )
    settings = {"DOCTRIAGE_CHARGEBACK__PRICE_BOOK_FILE": str(book)}
    answer = run_doctriage("budget", "set", "research", "--money", "1234.5", home=tmp_path, **settings)
    assert "EUR" in answer.stdout
    assert "1,234.50" in answer.stdout
    assert shown(tmp_path)[0]["money"]["currency"] == "EUR"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "research"), "a budget has a limit in money, in tokens or both"),
        (("set", "research", "--money", "1.0000001"), "more than 6 decimals"),
        (("set", "research", "--money", "-1"), "is no amount"),
        (("set", "research", "--money", "12,50"), "is no amount"),
        (("set", "research", "--money", "99999999999"), "is too much; the greatest amount is 9,999,999,999"),
        (("set", "research", "--money", "999999999999.999999"), "the greatest amount is 9,999,999,999"),
        (("set", "research", "--tokens", "1.5"), "is no number of tokens"),
        (("set", "research", "--tokens", "1" + 20 * "0"), "is too many; at most 1,000,000,000,000,000"),
        (("set", "research", "--tokens", 5_000 * "9"), "is too many; at most"),
        (("set", "a/b/c", "--tokens", "1"), "is no cost centre"),
        (("set", "research", "--tokens", "1", "--warn-at", "0"), "'0' is no whole number from 1 to 100"),
        (
            ("set", "research", "--tokens", "1", "--warn-at", "half"),
            "'half' is no whole number from 1 to 100",
        ),
        (
            ("set", "research", "--tokens", "1", "--when-spent", "cry"),
            "'cry' is none of degrade, hold, reject",
        ),
        (("remove", "research"), "has no budget"),
        (("show", "--month", "2026-13"), "is no month"),
    ],
)
def test_what_is_no_budget_is_refused_with_words(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    environment = {"DOCTRIAGE_HOME": str(tmp_path), "COLUMNS": "200", "NO_COLOR": "1"}
    answer = CliRunner().invoke(app, ("budget", *arguments), env=environment)
    assert answer.exit_code == 2
    assert told in " ".join(answer.stderr.replace("│", " ").split())
    with contextlib.closing(open_store(tmp_path)) as store:
        assert store.budgets.budget("research") is None
