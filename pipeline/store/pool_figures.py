"""Figures of the pool for those who watch it: what was booked, what was lost for good, and which places are taken."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row, Select, and_, case, func, select

from models.pool import SubmissionState
from models.tables import LedgerKind, LedgerRow, PageRow, PageState, ReadingRow, SubmissionRow, VlmSlotRow
from pipeline.store.database import Database

SUMS: Final = (
    "pages",
    "cached_pages",
    "predicted_visual_tokens",
    "predicted_prompt_tokens",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_micro",
)
KEYS: Final = (
    LedgerRow.kind,
    LedgerRow.team,
    LedgerRow.currency,
    LedgerRow.model_id,
    LedgerRow.route,
    LedgerRow.outcome,
    LedgerRow.reason,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedKey:
    """What entries are told apart by; ``LedgerRow`` says what each means."""

    kind: LedgerKind
    team: str
    currency: str
    model_id: str | None
    route: str | None
    outcome: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedSum:
    """Sums over ``entries`` of one key, of which ``unpriced_entries`` have no cost."""

    entries: int
    unpriced_entries: int
    pages: int
    cached_pages: int
    predicted_visual_tokens: int
    predicted_prompt_tokens: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost_micro: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """For calls in flight to one service: how many there are, and how many of them are taken."""

    service: str
    capacity: int
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSubmissions:
    """``oldest_at_s`` is when the oldest of them was opened, in Unix seconds."""

    count: int
    oldest_at_s: float | None


class PoolFigures:
    """Raises ``StoreUnavailable``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def booked(self, first_day: str | None, end_day: str | None) -> dict[BookedKey, BookedSum]:
        """What the ledger booked on the days (UTC, ``2026-11-30``) from the first up to, and without, the end; None
        leaves that side open."""
        days = []
        if first_day is not None:
            days.append(LedgerRow.day >= first_day)
        if end_day is not None:
            days.append(LedgerRow.day < end_day)
        with self._database.read() as session:
            rows = session.execute(_booked_query().where(*days))
            return {_key(row): _sum(row) for row in rows}

    def dead_pages(self) -> dict[str, int]:
        """Pages of the pool that failed for good, by the code of their last error."""
        query = (
            select(PageRow.error_code, func.count())
            .join(ReadingRow, ReadingRow.reading_id == PageRow.reading_id)
            .where(PageRow.state == PageState.FAILED, ReadingRow.submission_id.is_not(None))
            .group_by(PageRow.error_code)
        )
        with self._database.read() as session:
            return {code or "": count for code, count in session.execute(query)}

    def open_submissions(self) -> OpenSubmissions:
        query = select(func.count(), func.min(SubmissionRow.created_at_s)).where(
            SubmissionRow.state == SubmissionState.OPEN
        )
        with self._database.read() as session:
            count, oldest_at_s = session.execute(query).one()
            return OpenSubmissions(count=count, oldest_at_s=oldest_at_s)

    def places(self) -> tuple[Places, ...]:
        """One of each service that was ever called, in the order of their names. A place whose lease has ended is
        free."""
        is_taken = and_(VlmSlotRow.owner.is_not(None), VlmSlotRow.expires_at_s >= time.time())
        query = (
            select(VlmSlotRow.service, func.count(), func.coalesce(func.sum(case((is_taken, 1), else_=0)), 0))
            .group_by(VlmSlotRow.service)
            .order_by(VlmSlotRow.service)
        )
        with self._database.read() as session:
            return tuple(
                Places(service=service, capacity=capacity, taken=int(taken))
                for service, capacity, taken in session.execute(query)
            )


def _booked_query() -> Select[*tuple[Any, ...]]:
    sums = [func.coalesce(func.sum(getattr(LedgerRow, name)), 0).label(name) for name in SUMS]
    return select(
        *KEYS,
        func.count().label("entries"),
        (func.count() - func.count(LedgerRow.cost_micro)).label("unpriced_entries"),
        *sums,
    ).group_by(*KEYS)


def _key(row: Row[Any]) -> BookedKey:
    return BookedKey(**{column.key: getattr(row, column.key) for column in KEYS})


def _sum(row: Row[Any]) -> BookedSum:
    counted = ("entries", "unpriced_entries", *SUMS)
    return BookedSum(**{name: int(getattr(row, name)) for name in counted})
