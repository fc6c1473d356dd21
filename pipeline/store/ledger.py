"""The ledger: entries are added, in the transaction that settles what they are for, and never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, func, insert, select
from sqlalchemy.orm import Session

from models.errors import EntryNotReversible
from models.page import Route
from models.tables import LedgerKind, LedgerRow, SubmissionRow
from pipeline.chargeback.bills import SubmissionBill
from pipeline.chargeback.cost_centres import Payer, team_of
from pipeline.chargeback.entries import LedgerEntry, reversal_entry
from pipeline.chargeback.price_book import UnitPrices
from pipeline.store.budgets import take_back
from pipeline.store.database import Database, insert_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedEntry:
    entry_id: int
    entry: LedgerEntry


class LedgerStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def book_cache_hit(self, entry: LedgerEntry) -> None:
        """Once a submission and reading, however often it is said."""
        is_booked = select(exists().where(LedgerRow.entry_key == entry.entry_key))
        with self._database.write() as session:
            if not session.scalar(is_booked):
                insert_missing(session, LedgerRow, [_columns(entry)])

    def reverse(self, entry_id: int) -> int:
        """Book the entry's reversal, and take it out of the budgets; the reversal's id. Raises EntryNotReversible."""
        with self._database.write() as session:
            row = session.scalar(
                select(LedgerRow).where(LedgerRow.entry_id == entry_id).with_for_update(key_share=True)
            )
            if row is None:
                raise EntryNotReversible(
                    f"entry {entry_id}: the ledger has none of that number; `doctriage chargeback explain` "
                    "shows those of a page"
                )
            if row.kind is LedgerKind.REVERSAL:
                raise EntryNotReversible(
                    f"entry {entry_id}: is the reversal of {row.reverses_entry_id}, and stays; book a new entry"
                )
            earlier = session.scalar(
                select(LedgerRow.entry_id).where(LedgerRow.reverses_entry_id == entry_id)
            )
            if earlier is not None:
                raise EntryNotReversible(f"entry {entry_id}: was reversed before, by entry {earlier}")
            entry = _entry(row)
            reversal = reversal_entry(entry, entry_id, when=datetime.now(UTC))
            booking = insert(LedgerRow).values(_columns(reversal)).returning(LedgerRow.entry_id)
            reversal_id = session.scalars(booking).one()
            take_back(session, entry)
            return reversal_id

    def entry(self, entry_id: int) -> BookedEntry:
        """One that the ledger has."""
        [booked] = self._booked(LedgerRow.entry_id == entry_id)
        return booked

    def entries_of_page(self, document_id: str, page_number: int) -> tuple[BookedEntry, ...]:
        """All that was booked about the page, in the order in which it was."""
        return self._booked(LedgerRow.document_id == document_id, LedgerRow.page_number == page_number)

    def cache_hits_of(self, document_id: str) -> tuple[BookedEntry, ...]:
        """The runs that took pages of the document as they were."""
        return self._booked(LedgerRow.document_id == document_id, LedgerRow.kind == LedgerKind.CACHE_HIT)

    def bill_of(self, submission_id: int) -> tuple[SubmissionBill, ...]:
        """By currency; nothing for a submission that booked nothing."""
        with self._database.read() as session:
            submission = session.get(SubmissionRow, submission_id)
            if submission is None or submission.cost_centre is None:
                return ()
            first_day = datetime.fromtimestamp(submission.created_at_s, UTC).date().isoformat()
            query = (
                select(
                    LedgerRow.currency,
                    func.sum(LedgerRow.prompt_tokens),
                    func.sum(LedgerRow.completion_tokens),
                    func.sum(LedgerRow.cost_micro),
                    func.count() - func.count(LedgerRow.cost_micro),
                )
                .where(
                    LedgerRow.day >= first_day,
                    LedgerRow.team == team_of(submission.cost_centre),
                    LedgerRow.submission_id == submission_id,
                )
                .group_by(LedgerRow.currency)
                .order_by(LedgerRow.currency)
            )
            return tuple(
                SubmissionBill(
                    cost_centre=submission.cost_centre,
                    currency=currency,
                    prompt_tokens=int(prompt_tokens),
                    completion_tokens=int(completion_tokens),
                    cost_micro=int(cost_micro or 0),
                    unpriced_entries=unpriced,
                )
                for currency, prompt_tokens, completion_tokens, cost_micro, unpriced in session.execute(query)
            )

    def _booked(self, *conditions: ColumnElement[bool]) -> tuple[BookedEntry, ...]:
        query = select(LedgerRow).where(*conditions).order_by(LedgerRow.entry_id)
        with self._database.read() as session:
            return tuple(
                BookedEntry(entry_id=row.entry_id, entry=_entry(row)) for row in session.scalars(query)
            )


def insert_entries(session: Session, entries: Iterable[LedgerEntry]) -> None:
    """Raises ``StoreUnavailable`` for one whose attempt is booked already: whoever calls this has changed the row that
    says whether it is."""
    rows = [_columns(entry) for entry in entries]
    if rows:
        session.execute(insert(LedgerRow), rows)


def insert_cpu_entry(session: Session, entry: LedgerEntry) -> None:
    """Numbered on from those that the ledger has for the page, in earlier runs too. The page's row is locked by its
    settlement, so nobody else counts."""
    last = select(func.max(LedgerRow.attempt)).where(
        LedgerRow.document_id == entry.document_id,
        LedgerRow.page_number == entry.page_number,
        LedgerRow.reading_id == entry.reading_id,
        LedgerRow.kind == LedgerKind.CPU_PAGE,
    )
    attempt = (session.scalar(last) or 0) + 1
    insert_entries(session, [replace(entry, attempt=attempt)])


_SAME_IN_BOTH = tuple(
    field.name for field in fields(LedgerEntry) if field.name not in {"booked_at", "payer", "prices", "route"}
)


def _columns(entry: LedgerEntry) -> Mapping[str, Any]:
    return {
        **{name: getattr(entry, name) for name in _SAME_IN_BOTH},
        "entry_key": entry.entry_key,
        "booked_at_s": entry.booked_at.timestamp(),
        "day": entry.day,
        "cost_centre": entry.payer.cost_centre,
        "team": entry.payer.team,
        "submission_id": entry.payer.submission_id,
        "submitter": entry.payer.submitter,
        "route": None if entry.route is None else entry.route.value,
        "currency": entry.prices.currency,
        "price_book_version": entry.prices.book_version,
        "prompt_price_micro": entry.prices.prompt_micro_per_million,
        "cached_price_micro": entry.prices.cached_micro_per_million,
        "completion_price_micro": entry.prices.completion_micro_per_million,
        "cpu_page_price_micro": entry.prices.cpu_page_micro_per_million,
    }


def _entry(row: LedgerRow) -> LedgerEntry:
    return LedgerEntry(
        **{name: getattr(row, name) for name in _SAME_IN_BOTH},
        booked_at=datetime.fromtimestamp(row.booked_at_s, UTC),
        payer=Payer(cost_centre=row.cost_centre, submitter=row.submitter, submission_id=row.submission_id),
        route=None if row.route is None else Route(row.route),
        prices=UnitPrices(
            currency=row.currency,
            book_version=row.price_book_version,
            prompt_micro_per_million=row.prompt_price_micro,
            cached_micro_per_million=row.cached_price_micro,
            completion_micro_per_million=row.completion_price_micro,
            cpu_page_micro_per_million=row.cpu_page_price_micro,
        ),
    )
