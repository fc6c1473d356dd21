"""Budgets, and where they stand in each month.

A cost centre has a row for each month in which it calls the VLM, with a budget or without, made before its first
call. A call takes what it may cost at most from the row of its team, then of its project, each in one UPDATE whose
condition is on that row alone, in the transaction that opens the call; the one that closes it moves the amount from
reserved to spent. So whoever holds the lock of such a row sees in the ledger, and among the open calls, exactly what
the row says: setting a budget counts anew, and loses no call that begins or ends meanwhile.

Rows are locked in the order of their keys, which has a team before its projects, so no two wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import BigInteger, Table, bindparam, delete, func, or_, select, true, update
from sqlalchemy.orm import Session

from models.budget import Budget, BudgetMonth, Charge, Reservation
from models.errors import BudgetSpent, BudgetUnusable
from models.tables import BudgetMonthRow, BudgetRow, LedgerKind, VlmAttemptRow
from models.transcription import Call
from pipeline.chargeback.budget_words import no_room, not_in_currency, unpriced
from pipeline.chargeback.cost_centres import payers
from pipeline.chargeback.entries import LedgerEntry
from pipeline.chargeback.months import month_of
from pipeline.store.budget_statements import (
    budget_columns,
    budget_month,
    budgets_of,
    empty_month,
    hold_to,
    standing,
    uncounted,
)
from pipeline.store.database import Database, insert_missing, rows_changed

MONTHS: Final = cast(Table, BudgetMonthRow.__table__)
MICRO: Final = bindparam("micro", type_=BigInteger)
TOKENS: Final = bindparam("tokens", type_=BigInteger)

TAKE: Final = (
    update(MONTHS)
    .where(
        MONTHS.c.cost_centre == bindparam("of"),
        MONTHS.c.month == bindparam("in"),
        or_(
            MONTHS.c.limit_micro.is_(None),
            MONTHS.c.spent_micro + MONTHS.c.reserved_micro + MICRO <= MONTHS.c.limit_micro,
        ),
        or_(
            MONTHS.c.limit_tokens.is_(None),
            MONTHS.c.spent_tokens + MONTHS.c.reserved_tokens + TOKENS <= MONTHS.c.limit_tokens,
        ),
    )
    .values(
        reserved_micro=MONTHS.c.reserved_micro + func.coalesce(MICRO, 0),
        reserved_tokens=MONTHS.c.reserved_tokens + TOKENS,
    )
)
"""The whole condition is on the row that is changed: where PostgreSQL had to wait for that row, it looks at it again. A
cost that is None fits no limit."""

MOVE: Final = (
    update(MONTHS)
    .where(MONTHS.c.cost_centre == bindparam("of"), MONTHS.c.month == bindparam("in"))
    .values(
        reserved_micro=MONTHS.c.reserved_micro - bindparam("from_micro", type_=BigInteger),
        reserved_tokens=MONTHS.c.reserved_tokens - bindparam("from_tokens", type_=BigInteger),
        spent_micro=MONTHS.c.spent_micro + bindparam("to_micro", type_=BigInteger),
        spent_tokens=MONTHS.c.spent_tokens + bindparam("to_tokens", type_=BigInteger),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A call that is closed: what it had ``reserved`` of the budgets of ``cost_centre``, and what was ``billed``."""

    cost_centre: str
    month: str
    reserved: Charge
    billed: Charge


def reserve(session: Session, reservation: Reservation) -> None:
    """Take it from the team's budget and from the project's. Raises ``BudgetSpent`` where one of them has no room, and
    ``BudgetUnusable`` where one in money cannot be compared with it; the transaction must then be rolled back."""
    bounding = payers(reservation.cost_centre)
    budgets = budgets_of(session, bounding)
    for cost_centre in bounding:
        budget = budgets.get(cost_centre)
        _require_comparable(budget, reservation)
        while not _take(session, cost_centre, reservation):
            stands = _stands(session, cost_centre, reservation.month)
            if stands is None:
                insert_missing(session, BudgetMonthRow, [empty_month(cost_centre, reservation.month, budget)])
            elif not stands.has_room_for(reservation.most):
                raise _refusal(stands, reservation)


def settle(session: Session, settlements: Iterable[Settlement]) -> None:
    """Move what the calls had reserved to spent, at what was billed."""
    changes: dict[tuple[str, str], Counter[str]] = {}
    for one in settlements:
        for cost_centre in payers(one.cost_centre):
            changes.setdefault((cost_centre, one.month), Counter()).update(
                from_micro=one.reserved.micro or 0,
                from_tokens=one.reserved.tokens,
                to_micro=one.billed.micro or 0,
                to_tokens=one.billed.tokens,
            )
    for (cost_centre, month), change in sorted(changes.items()):
        session.execute(MOVE, {"of": cost_centre, "in": month, **change})


def settlement_of(call: Call, entry: LedgerEntry) -> Settlement:
    """Of a call that is booked as ``entry``."""
    return Settlement(
        cost_centre=call.cost_centre,
        month=month_of(call.started_at_s),
        reserved=Charge(tokens=call.reserved_tokens, micro=call.reserved_micro),
        billed=Charge(tokens=entry.prompt_tokens + entry.completion_tokens, micro=entry.cost_micro),
    )


def take_back(session: Session, entry: LedgerEntry) -> None:
    """A call whose entry is reversed has spent nothing of the month that it was made in."""
    if entry.kind is not LedgerKind.VLM_CALL:
        return
    months = select(VlmAttemptRow.month).where(
        VlmAttemptRow.reading_id == entry.reading_id,
        VlmAttemptRow.page_number == entry.page_number,
        VlmAttemptRow.attempt == entry.attempt,
        VlmAttemptRow.month.is_not(None),
    )
    settle(
        session,
        (
            Settlement(
                cost_centre=entry.payer.cost_centre,
                month=month,
                reserved=Charge(tokens=0, micro=0),
                billed=Charge(
                    tokens=-entry.prompt_tokens - entry.completion_tokens, micro=-(entry.cost_micro or 0)
                ),
            )
            for month in session.scalars(months)
            if month is not None
        ),
    )


class BudgetStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def set_budget(self, budget: Budget, *, month: str) -> None:
        """In place of the one that the cost centre has, from ``month`` on, which is this one: it holds at once, and
        what is spent and reserved in it counts."""
        row = budget_columns(budget)
        with self._database.write() as session:
            insert_missing(session, BudgetRow, [row])
            session.execute(update(BudgetRow).where(BudgetRow.cost_centre == budget.cost_centre).values(row))
            hold_to(session, budget, month)

    def remove_budget(self, cost_centre: str, *, month: str) -> bool:
        """From ``month`` on, which is this one; False where there is none."""
        removal = delete(BudgetRow).where(BudgetRow.cost_centre == cost_centre)
        with self._database.write() as session:
            if session.execute(removal.returning(BudgetRow.cost_centre)).first() is None:
                return False
            hold_to(session, Budget(cost_centre=cost_centre), month)
            return True

    def budget(self, cost_centre: str) -> Budget | None:
        with self._database.read() as session:
            return budgets_of(session, (cost_centre,)).get(cost_centre)

    def budgets_over(self, cost_centre: str, month: str) -> tuple[BudgetMonth, ...]:
        """Where the team's and the project's budgets stand in this month or one to come; those that there are."""
        with self._database.read() as session:
            return standing(session, BudgetRow.cost_centre.in_(payers(cost_centre)), month)

    def require_comparable(self, reservation: Reservation) -> None:
        """Raises ``BudgetUnusable`` where a budget in money cannot be compared with what a call costs."""
        with self._database.read() as session:
            for budget in budgets_of(session, payers(reservation.cost_centre)).values():
                _require_comparable(budget, reservation)

    def require_room(self, reservation: Reservation) -> None:
        """Raises what ``reserve`` raises, without taking anything, where it would whatever becomes of the calls under
        way."""
        with self._database.read() as session:
            for cost_centre in payers(reservation.cost_centre):
                _require_comparable(budgets_of(session, (cost_centre,)).get(cost_centre), reservation)
                for stands in standing(session, BudgetRow.cost_centre == cost_centre, reservation.month):
                    if not stands.has_room_for(reservation.most, once_calls_end=True):
                        raise _refusal(stands, reservation)

    def spent_in_other_currencies(self, budget: Budget, month: str) -> dict[str, int]:
        """Micro-units by currency, which count against no limit of ``budget``; nothing where it has none in money."""
        with self._database.read() as session:
            return uncounted(session, budget, month)

    def in_month(self, month: str) -> tuple[BudgetMonth, ...]:
        """All budgets in this month or one to come, in the order of their cost centres."""
        with self._database.read() as session:
            return standing(session, true(), month)

    def in_past_month(self, month: str) -> tuple[BudgetMonth, ...]:
        """The limits are those that held at the end of it. Budgets that were set later had none."""
        query = (
            select(BudgetMonthRow, BudgetRow)
            .outerjoin(BudgetRow, BudgetRow.cost_centre == BudgetMonthRow.cost_centre)
            .where(
                BudgetMonthRow.month == month,
                or_(BudgetMonthRow.limit_micro.is_not(None), BudgetMonthRow.limit_tokens.is_not(None)),
            )
            .order_by(BudgetMonthRow.cost_centre)
        )
        with self._database.read() as session:
            return tuple(budget_month(row, budget) for row, budget in session.execute(query))


def _require_comparable(budget: Budget | None, reservation: Reservation) -> None:
    if budget is None or budget.limit_micro is None:
        return
    if reservation.most.micro is None:
        raise BudgetUnusable(unpriced(budget.cost_centre, reservation.model_id))
    if reservation.currency != budget.currency:
        raise BudgetUnusable(not_in_currency(budget, reservation.currency))


def _take(session: Session, cost_centre: str, reservation: Reservation) -> bool:
    wanted = {
        "of": cost_centre,
        "in": reservation.month,
        "micro": reservation.most.micro,
        "tokens": reservation.most.tokens,
    }
    return rows_changed(session, TAKE, wanted) == 1


def _stands(session: Session, cost_centre: str, month: str) -> BudgetMonth | None:
    row = session.get(BudgetMonthRow, (cost_centre, month), populate_existing=True)
    return None if row is None else budget_month(row, session.get(BudgetRow, cost_centre))


def _refusal(stands: BudgetMonth, reservation: Reservation) -> BudgetSpent | BudgetUnusable:
    if stands.money is not None and reservation.most.micro is None:
        return BudgetUnusable(unpriced(stands.cost_centre, reservation.model_id))
    fits_once_calls_end = stands.has_room_for(reservation.most, once_calls_end=True)
    return BudgetSpent(no_room(stands, reservation), stands, fits_once_calls_end=fits_once_calls_end)
