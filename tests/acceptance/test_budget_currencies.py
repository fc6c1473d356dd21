"""A budget whose currency changes, as a user sets it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from pipeline.chargeback.months import month_of
from pipeline.store import open_store
from tests.acceptance.test_chargeback_reversal import billed_call
from tests.acceptance.test_command_line import run_doctriage


def test_what_was_spent_in_the_old_currency_is_said_not_to_count(tmp_path: Path) -> None:
    month = month_of(time.time())
    with closing(open_store(tmp_path)) as store:
        billed_call(store, month)
    book = tmp_path / "own.toml"
    book.write_text(
        'schema_version = 1\nname = "own"\ncurrency = "EUR"\n[[entries]]\neffective_from = 2026-01-01\n',
        encoding="utf-8",
    )
    euros = {"DOCTRIAGE_CHARGEBACK__PRICE_BOOK_FILE": str(book)}

    def budget_set(*options: str, **settings: str) -> list[str]:
        answer = run_doctriage("budget", "set", "retail", *options, home=tmp_path, **settings)
        assert (answer.returncode, answer.stderr) == (0, "")
        return answer.stdout.splitlines()

    assert "another currency" not in "".join(budget_set("--money", "5"))
    assert budget_set("--money", "7", **euros)[-1] == (
        f"what was spent in {month} in another currency does not count against the new limit: 0.000493 USD"
    )
    assert "another currency" not in "".join(budget_set("--warn-at", "70", **euros))
