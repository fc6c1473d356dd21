"""Statements, exports and charts, from the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from models.errors import PageNotFound
from pipeline.chargeback.focus import csv_line, focus_rows, header_line
from pipeline.chargeback.statement import LedgerSum, OpenCalls, Statement, statement_of
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from pipeline.store.ledger import BookedEntry
from pipeline.store.statements import StatementStore
from workers.references import document_id_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Days in UTC, from ``first_day`` up to, not including, ``end_day``."""

    first_day: date
    end_day: date

    @property
    def days(self) -> tuple[str, str]:
        return self.first_day.isoformat(), self.end_day.isoformat()

    @property
    def end_s(self) -> float:
        midnight = datetime.min.time()
        return datetime.combine(self.end_day, midnight, UTC).timestamp()


def window_of(first_day: date | None, end_day: date | None, *, today: date) -> Window:
    """This month; from a day on, up to and with today; or up to a day, from the first of the month before it. Raises
    ValueError for a window without a day."""
    if first_day is None:
        if end_day == date.min:
            raise ValueError(f"no day is before {end_day}; end later")
        last = today if end_day is None else end_day - timedelta(days=1)
        first_day = last.replace(day=1)
        end_day = end_day or _next_month(last)
    elif end_day is None:
        if first_day == date.max:
            raise ValueError(f"no day is after {first_day}, to end before; begin earlier")
        end_day = max(today, first_day) + timedelta(days=1)
    if first_day >= end_day:
        raise ValueError(f"{end_day} is not after {first_day}; the end is the first day that is left out")
    return Window(first_day=first_day, end_day=end_day)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCharges:
    """``entries`` are those about the page, in the order in which they were booked, and ``cache_hits`` the runs that
    took pages of the document as they were."""

    source: str
    document_id: str
    page_number: int
    entries: tuple[BookedEntry, ...]
    cache_hits: tuple[BookedEntry, ...]
    open_calls: int


@dataclass(slots=True)
class FocusExport:
    """The lines of the file, and what is in none of them: entries without a price, by model (None: CPU)."""

    ledger: StatementStore
    window: Window
    unpriced: Counter[str | None] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        yield header_line()
        for charges in self.ledger.charge_sums(*self.window.days):
            if charges.cost_micro is None:
                sign = 1 if charges.reversed_day is None else -1
                self.unpriced[charges.model_id] += sign * charges.entries
            yield from map(csv_line, focus_rows(charges))


@contextmanager
def opened_ledger(settings: Settings) -> Iterator[StatementStore]:
    with _opened(settings) as store:
        yield StatementStore(store.database)


def read_statement(
    ledger: StatementStore, by: StatementBy, window: Window, *, cost_centre: str | None = None
) -> tuple[Statement, Mapping[str, str]]:
    """With the names of its documents, by id. One of a ``cost_centre`` and its projects says nothing of open calls,
    which are told for all together."""
    first_day, end_day = window.days
    is_of_all = cost_centre is None
    statement = statement_of(
        ledger.sums((by,), first_day, end_day, cost_centre=cost_centre),
        by=by,
        first_day=first_day,
        end_day=end_day,
        open_calls=ledger.open_calls(window.end_s) if is_of_all else OpenCalls(calls=0, reserved_tokens=0),
    )
    if by is not StatementBy.DOCUMENT:
        return statement, {}
    return statement, ledger.document_names([line.key for line in statement.lines if line.key is not None])


def document_statement(
    ledger: StatementStore, document_id: str | None, submission_id: int, window: Window
) -> Statement:
    """What one submission has booked about its document, by model. The ``window`` is that from its first day to now."""
    first_day, end_day = window.days
    return statement_of(
        () if document_id is None else ledger.document_sums(document_id, submission_id),
        by=StatementBy.MODEL,
        first_day=first_day,
        end_day=end_day,
        open_calls=ledger.open_calls(window.end_s, submission_id=submission_id),
    )


def team_days(ledger: StatementStore, window: Window) -> tuple[LedgerSum, ...]:
    return ledger.sums((StatementBy.TEAM, StatementBy.DAY), *window.days)


def page_charges(settings: Settings, reference: str, page_number: int) -> PageCharges:
    """``reference`` is as for ``doctriage explain``. Raises ``PageNotFound`` where the ledger knows nothing of it."""
    with _opened(settings) as store:
        document_id = document_id_of(store, reference)
        charges = PageCharges(
            source=store.submissions.newest_source_name(document_id, name=reference) or reference,
            document_id=document_id,
            page_number=page_number,
            entries=store.ledger.entries_of_page(document_id, page_number),
            cache_hits=store.ledger.cache_hits_of(document_id),
            open_calls=StatementStore(store.database).open_calls_of_page(document_id, page_number),
        )
    if not charges.entries and not charges.open_calls:
        raise PageNotFound(f"{charges.source}: the ledger has nothing about page {page_number}")
    return charges


@contextmanager
def _opened(settings: Settings) -> Iterator[Store]:
    with closing(open_store(settings.home.absolute(), settings.database_url)) as store:
        yield store


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)
