"""Which days a statement is of."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from workers.statements import window_of

TODAY = date(2026, 12, 15)


@pytest.mark.parametrize(
    ("first_day", "end_day", "window"),
    [
        (None, None, ("2026-12-01", "2027-01-01")),
        (date(2026, 11, 20), None, ("2026-11-20", "2026-12-16")),
        (date(2027, 3, 1), None, ("2027-03-01", "2027-03-02")),
        (None, date(2026, 11, 20), ("2026-11-01", "2026-11-20")),
        (None, date(2026, 12, 1), ("2026-11-01", "2026-12-01")),
        (date(2026, 2, 28), date(2026, 3, 1), ("2026-02-28", "2026-03-01")),
    ],
)
def test_what_is_left_out_of_a_window_is_this_month_or_today(
    first_day: date | None, end_day: date | None, window: tuple[str, str]
) -> None:
    assert window_of(first_day, end_day, today=TODAY).days == window


@pytest.mark.parametrize("end_day", [date(2026, 11, 1), date(2026, 10, 1)])
def test_a_window_has_a_day(end_day: date) -> None:
    with pytest.raises(ValueError, match="is not after 2026-11-01"):
        window_of(date(2026, 11, 1), end_day, today=TODAY)


def test_a_window_ends_at_midnight_utc() -> None:
    window = window_of(None, None, today=TODAY)
    assert datetime.fromtimestamp(window.end_s, UTC) == datetime(2027, 1, 1, tzinfo=UTC)
