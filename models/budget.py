"""What a cost centre may spend on the VLM in a month, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WhenSpent(StrEnum):
    """What becomes of a page that would go beyond its cost centre's budget."""

    DEGRADE = "degrade"
    """It keeps the CPU's text, and says why."""
    HOLD = "hold"
    """The same for now; a later run sends it, once the budget has room again."""
    REJECT = "reject"
    """As ``degrade``; new submissions of the cost centre are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """For each calendar month (UTC), in micro-units of ``currency``, in tokens, or both; None is no limit. From
    ``warn_percent`` of a limit on, runs say so."""

    cost_centre: str
    limit_micro: int | None = None
    currency: str | None = None
    limit_tokens: int | None = None
    warn_percent: int = 80
    when_spent: WhenSpent = WhenSpent.DEGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a call may cost at most, or did cost: ``tokens`` of prompt and answer, and their cost, None where a price
    is missing."""

    tokens: int
    micro: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Of one limit in one month: micro-units, or tokens. ``reserved`` is what calls under way may cost at most."""

    limit: int
    spent: int
    reserved: int

    @property
    def left(self) -> int:
        """Below 0 where the limit was lowered under what is spent, or a service billed more than it may."""
        return self.limit - self.spent - self.reserved

    @property
    def percent_spent(self) -> int:
        """Rounded down; 100 of a limit of nothing."""
        return 100 * self.spent // self.limit if self.limit else 100

    def fits(self, wanted: int | None, *, once_calls_end: bool) -> bool:
        """None, a cost that nobody knows, never does. ``once_calls_end``: if they cost nothing."""
        return wanted is not None and wanted <= self.left + (self.reserved if once_calls_end else 0)

    def has_spent(self, percent: int) -> bool:
        return 100 * self.spent >= percent * self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetMonth:
    """Where a budget stands in ``month`` (UTC, ``2026-11``). ``money`` is in ``currency``, which is None for a budget
    that is gone; either is None without such a limit."""

    cost_centre: str
    month: str
    money: Level | None
    currency: str | None
    tokens: Level | None
    warn_percent: int
    when_spent: WhenSpent

    @property
    def levels(self) -> tuple[Level, ...]:
        return tuple(level for level in (self.money, self.tokens) if level is not None)

    def has_room_for(self, most: Charge, *, once_calls_end: bool = False) -> bool:
        held = ((self.money, most.micro), (self.tokens, most.tokens))
        return all(
            level is None or level.fits(wanted, once_calls_end=once_calls_end) for level, wanted in held
        )

    @property
    def is_warned_of(self) -> bool:
        return any(level.has_spent(self.warn_percent) for level in self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a call to ``model_id`` takes of the budgets of ``cost_centre`` for ``month`` until it is closed."""

    cost_centre: str
    month: str
    most: Charge
    currency: str
    model_id: str
