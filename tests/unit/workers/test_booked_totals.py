"""Sums over the ledger as a counter needs them: never less than before, and each day added up once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from models.tables import LedgerKind
from pipeline.store.pool_figures import SUMS, BookedKey, BookedSum, PoolFigures
from workers.cluster.booked_totals import MOST_NAMES, OTHERS, BookedTotals

KEY = BookedKey(
    kind=LedgerKind.CPU_PAGE,
    team="harbour",
    currency="USD",
    model_id=None,
    route="ocr",
    outcome="read",
    reason=None,
)


def booked(entries: int) -> BookedSum:
    return BookedSum(entries=entries, unpriced_entries=0, **dict.fromkeys(SUMS, entries))


class Ledger(PoolFigures):
    """Entries by day and key. ``asked`` are the spans of days that were added up."""

    def __init__(self) -> None:
        self.entries: Counter[tuple[date, BookedKey]] = Counter()
        self.asked: list[tuple[str | None, str | None]] = []

    def booked(self, first_day: str | None, end_day: str | None) -> dict[BookedKey, BookedSum]:
        self.asked.append((first_day, end_day))
        sums: Counter[BookedKey] = Counter()
        for (day, key), entries in self.entries.items():
            if (first_day or "") <= day.isoformat() < (end_day or "9"):
                sums[key] += entries
        return {key: booked(entries) for key, entries in sums.items()}


class Calendar:
    def __init__(self) -> None:
        self.today = date(2026, 11, 10)

    def __call__(self) -> date:
        return self.today


def totals_of(ledger: Ledger) -> tuple[BookedTotals, Calendar]:
    calendar = Calendar()
    return BookedTotals(ledger, today=calendar), calendar


@given(st.lists(st.tuples(st.sampled_from(["book", "late", "tomorrow"]), st.integers(1, 50)), max_size=30))
def test_every_entry_is_counted_once_whenever_it_was_booked(steps: list[tuple[str, int]]) -> None:
    """Also one that bears yesterday's date and becomes visible today."""
    ledger = Ledger()
    totals, calendar = totals_of(ledger)
    seen = 0
    for step, entries in steps:
        if step == "tomorrow":
            calendar.today = date.fromordinal(calendar.today.toordinal() + 1)
        else:
            late = int(step == "late")
            ledger.entries[date.fromordinal(calendar.today.toordinal() - late), KEY] += entries
        counted = sum(one.entries for one in totals.look().values())
        assert counted == ledger.entries.total()
        assert counted >= seen
        seen = counted


def test_the_days_before_yesterday_are_added_up_once() -> None:
    ledger = Ledger()
    totals, calendar = totals_of(ledger)
    totals.look()
    totals.look()
    calendar.today = date(2026, 11, 12)
    totals.look()
    assert ledger.asked == [
        (None, "2026-11-09"),
        ("2026-11-09", None),
        ("2026-11-09", None),
        ("2026-11-09", "2026-11-11"),
        ("2026-11-11", None),
    ]


def test_there_are_never_more_cost_centres_and_models_than_a_dashboard_bears() -> None:
    ledger = Ledger()
    totals, calendar = totals_of(ledger)
    for number in range(MOST_NAMES + 5):
        key = replace(KEY, team=f"team-{number:04}", model_id=f"model-{number:04}")
        ledger.entries[calendar.today, key] += 1
    ledger.entries[calendar.today, replace(KEY, team="a late one")] += 7
    shown = totals.look()
    assert len({key.team for key in shown}) == len({key.model_id for key in shown} - {None}) == MOST_NAMES + 1
    assert sum(one.entries for key, one in shown.items() if key.team == OTHERS) == 6
    assert sum(one.entries for one in shown.values()) == ledger.entries.total()
    assert totals.look() == shown
