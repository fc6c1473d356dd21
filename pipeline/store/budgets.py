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

from sqlalchemy import ColumnElement, and_, delete, or_, select, true, update
from sqlalchemy.orm import InstrumentedAttribute, Session

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
    is_month,
    standing,
)
from pipeline.store.database import Database, insert_missing, rows_changed


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
        _require_comparable(budgets.get(cost_centre), reservation)
        if _take(session, cost_centre, reservation):
            continue
        insert_missing(
            session, BudgetMonthRow, [empty_month(cost_centre, reservation.month, budgets.get(cost_centre))]
        )
        if not _take(session, cost_centre, reservation):
            raise _refusal(session, cost_centre, reservation)


def settle(session: Session, settlements: Iterable[Settlement]) -> None:
    """Move what the calls had reserved to spent, at what was billed."""
    changes: dict[tuple[str, str], Counter[str]] = {}
    for one in settlements:
        for cost_centre in payers(one.cost_centre):
            changes.setdefault((cost_centre, one.month), Counter()).update(
                reserved_micro=-(one.reserved.micro or 0),
                reserved_tokens=-one.reserved.tokens,
                spent_micro=one.billed.micro or 0,
                spent_tokens=one.billed.tokens,
            )
    for (cost_centre, month), change in sorted(changes.items()):
        added = {name: getattr(BudgetMonthRow, name) + amount for name, amount in change.items()}
        session.execute(update(BudgetMonthRow).where(is_month(cost_centre, month)).values(added))


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

    def require_room(self, reservation: Reservation) -> None:
        """Raises what ``reserve`` raises, without taking anything, where it would whatever becomes of the calls under
        way."""
        with self._database.read() as session:
            for cost_centre in payers(reservation.cost_centre):
                _require_comparable(budgets_of(session, (cost_centre,)).get(cost_centre), reservation)
                for stands in standing(session, BudgetRow.cost_centre == cost_centre, reservation.month):
                    if not _fits_once_calls_end(stands, reservation.most):
                        raise BudgetSpent(no_room(stands, reservation), stands)

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
    """PostgreSQL looks at the condition again where it had to wait for the row."""
    row, most = BudgetMonthRow, reservation.most
    has_room = and_(
        _has_room(row.limit_micro, row.spent_micro, row.reserved_micro, most.micro),
        _has_room(row.limit_tokens, row.spent_tokens, row.reserved_tokens, most.tokens),
    )
    taking = (
        update(row)
        .where(is_month(cost_centre, reservation.month), has_room)
        .values(
            reserved_micro=row.reserved_micro + (most.micro or 0),
            reserved_tokens=row.reserved_tokens + most.tokens,
        )
    )
    return rows_changed(session, taking) == 1


def _has_room(
    limit: InstrumentedAttribute[int | None],
    spent: InstrumentedAttribute[int],
    reserved: InstrumentedAttribute[int],
    wanted: int | None,
) -> ColumnElement[bool]:
    is_free = limit.is_(None)
    return is_free if wanted is None else or_(is_free, spent + reserved + wanted <= limit)


def _refusal(session: Session, cost_centre: str, reservation: Reservation) -> BudgetSpent | BudgetUnusable:
    """Looked up anew: the budget may have been changed since."""
    key = (cost_centre, reservation.month)
    row = session.get(BudgetMonthRow, key, populate_existing=True)
    assert row is not None
    budget = session.get(BudgetRow, cost_centre, populate_existing=True)
    if row.limit_micro is not None and reservation.most.micro is None:
        return BudgetUnusable(unpriced(cost_centre, reservation.model_id))
    stands = budget_month(row, budget)
    return BudgetSpent(
        no_room(stands, reservation),
        stands,
        fits_once_calls_end=_fits_once_calls_end(stands, reservation.most),
    )


def _fits_once_calls_end(stands: BudgetMonth, most: Charge) -> bool:
    return all(
        level.spent + wanted <= level.limit
        for level, wanted in ((stands.money, most.micro), (stands.tokens, most.tokens))
        if level is not None and wanted is not None
    )
