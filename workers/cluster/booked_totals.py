"""What the ledger has booked since it was begun, without adding all of it up again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pipeline.store.pool_figures import BookedKey, BookedSum, PoolFigures

MOST_NAMES: Final = 200
OTHERS: Final = "other"
"""Cost centres and models are told apart up to so many; what comes later is counted together."""

Totals = dict[BookedKey, BookedSum]


def _today() -> date:
    return datetime.now(UTC).date()


class BookedTotals:
    """Entries are never changed, and are written soon after the moment that they bear: the days before yesterday are
    added up once. Sums only ever grow, but for those of reversals."""

    def __init__(self, figures: PoolFigures, *, today: Callable[[], date] = _today) -> None:
        self._figures = figures
        self._today = today
        self._closed: Totals = {}
        self._closed_until: str | None = None
        self._teams = _Names()
        self._models = _Names()

    def look(self) -> Totals:
        """Raises ``StoreUnavailable``."""
        yesterday = (self._today() - timedelta(days=1)).isoformat()
        if self._closed_until is None or yesterday > self._closed_until:
            closing = self._figures.booked(self._closed_until, yesterday)
            self._closed = _summed((*self._closed.items(), *self._bounded(closing).items()))
            self._closed_until = yesterday
        since = self._bounded(self._figures.booked(self._closed_until, None))
        return _summed((*self._closed.items(), *since.items()))

    def _bounded(self, totals: Totals) -> Totals:
        """In the order of their names, so that who counts anew comes to the same."""
        self._teams.meet(key.team for key in totals)
        self._models.meet(key.model_id for key in totals if key.model_id is not None)
        return _summed((self._shown(key), booked) for key, booked in totals.items())

    def _shown(self, key: BookedKey) -> BookedKey:
        model_id = None if key.model_id is None else self._models.shown(key.model_id)
        return replace(key, team=self._teams.shown(key.team), model_id=model_id)


class _Names:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def meet(self, names: Iterable[str]) -> None:
        for name in sorted(set(names) - self._known):
            if len(self._known) < MOST_NAMES:
                self._known.add(name)

    def shown(self, name: str) -> str:
        return name if name in self._known else OTHERS


def _summed(parts: Iterable[tuple[BookedKey, BookedSum]]) -> Totals:
    totals: Totals = {}
    for key, booked in parts:
        totals[key] = booked if key not in totals else _plus(totals[key], booked)
    return totals


def _plus(one: BookedSum, other: BookedSum) -> BookedSum:
    names = [field.name for field in fields(BookedSum)]
    return BookedSum(**{name: getattr(one, name) + getattr(other, name) for name in names})
