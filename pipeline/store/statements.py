"""What statements, exports and reconciliations ask of the ledger. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Row, Select, and_, case, cast, func, or_, select, text
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from models.tables import LedgerKind, LedgerRow, ReadingRow, SourceRow, VlmAttemptRow
from pipeline.chargeback.charges import Quantities
from pipeline.chargeback.focus import ChargeSum
from pipeline.chargeback.price_book import UnitPrices
from pipeline.chargeback.reconciliation import BookedTokens
from pipeline.chargeback.statement import LedgerSum, OpenCalls
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.store.cost_centre_statements import is_paid_by
from pipeline.store.database import Database, streamed

Column = InstrumentedAttribute[Any]

NAMES_AT_A_TIME: Final = 500
ROWS_AT_A_TIME: Final = 1000

KEYS: Final[Mapping[StatementBy, Column]] = {
    StatementBy.COST_CENTRE: LedgerRow.cost_centre,
    StatementBy.PROJECT: LedgerRow.cost_centre,
    StatementBy.TEAM: LedgerRow.team,
    StatementBy.DOCUMENT: LedgerRow.document_id,
    StatementBy.REASON: LedgerRow.reason,
    StatementBy.DAY: LedgerRow.day,
}
"""The model is told apart in every statement."""

ALWAYS: Final = (
    LedgerRow.currency,
    LedgerRow.kind,
    LedgerRow.model_id,
    LedgerRow.is_forced,
    LedgerRow.is_wasted,
    LedgerRow.usage_is_estimated,
)

INDEXED: Final = (
    LedgerRow.day,
    LedgerRow.team,
    LedgerRow.cost_centre,
    LedgerRow.currency,
    LedgerRow.kind,
    LedgerRow.model_id,
    LedgerRow.reason,
    LedgerRow.is_forced,
    LedgerRow.is_wasted,
    LedgerRow.usage_is_estimated,
)
"""What ``ix_ledger_statement`` begins with. SQLite, which would sort to group, reads groups of all of these in the
index's order; PostgreSQL is faster with few groups."""


SUMMED_COUNTS: Final = (
    "pages",
    "vlm_pages",
    "cached_pages",
    "cpu_pages",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "avoided_tokens",
)
SUMMED_AMOUNTS: Final = ("cost_micro", "avoided_micro")


class StatementStore:
    """Days are UTC, ``2026-11-30``; ``end_day`` is the first one after those that are meant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sums(
        self, by: Collection[StatementBy], first_day: str, end_day: str, *, cost_centre: str | None = None
    ) -> tuple[LedgerSum, ...]:
        """The ledger's entries, told apart at least by what a statement tells apart and by ``by``; of one cost centre
        and its projects where one is named. Not by a cursor, for which PostgreSQL uses one process alone."""
        with self._database.read() as session:
            is_sqlite = session.get_bind().dialect.name == "sqlite"
            if not is_sqlite and StatementBy.DOCUMENT not in by:
                prefer_the_index(session)
            query = sums_query(by, first_day, end_day, is_sqlite=is_sqlite)
            if cost_centre is not None:
                query = query.where(is_paid_by(LedgerRow.cost_centre, cost_centre))
            return tuple(_ledger_sum(row) for row in session.execute(query))

    def document_sums(self, document_id: str, submission_id: int) -> tuple[LedgerSum, ...]:
        """What one submission has booked about a document, by model: who else has it read pays for that alone."""
        query = _summed(ALWAYS).where(
            LedgerRow.document_id == document_id, LedgerRow.submission_id == submission_id
        )
        with self._database.read() as session:
            return tuple(_ledger_sum(row) for row in session.execute(query))

    def open_calls(self, before_s: float, *, submission_id: int | None = None) -> OpenCalls:
        """Those begun before that moment and not closed yet; of one submission where it is named."""
        query = select(func.count(), func.sum(VlmAttemptRow.reserved_tokens)).where(
            VlmAttemptRow.verdict.is_(None), VlmAttemptRow.started_at_s < before_s
        )
        if submission_id is not None:
            query = query.where(VlmAttemptRow.submission_id == submission_id)
        with self._database.read() as session:
            calls, reserved_tokens = session.execute(query).one()
            return OpenCalls(calls=calls, reserved_tokens=int(reserved_tokens or 0))

    def document_names(self, document_ids: Sequence[str]) -> Mapping[str, str]:
        """The newest source name of each document that has one."""
        names: dict[str, str] = {}
        with self._database.read() as session:
            for start in range(0, len(document_ids), NAMES_AT_A_TIME):
                some = document_ids[start : start + NAMES_AT_A_TIME]
                names.update((row.document_id, row.name) for row in session.execute(_newest_names(some)))
        return names

    def open_calls_of_page(self, document_id: str, page_number: int) -> int:
        query = (
            select(func.count())
            .select_from(VlmAttemptRow)
            .join(ReadingRow, ReadingRow.reading_id == VlmAttemptRow.reading_id)
            .where(
                ReadingRow.document_id == document_id,
                VlmAttemptRow.page_number == page_number,
                VlmAttemptRow.verdict.is_(None),
            )
        )
        with self._database.read() as session:
            return session.scalar(query) or 0

    def charge_sums(self, first_day: str, end_day: str) -> Iterator[ChargeSum]:
        """By day, cost centre, model and all else that a price depends on, in that order."""
        query = _charges_query(first_day, end_day)
        with self._database.read() as session, streamed(session, query, at_a_time=ROWS_AT_A_TIME) as rows:
            for row in rows:
                yield _charge_sum(row)

    def booked_tokens(self, after_s: float, until_s: float) -> tuple[BookedTokens, ...]:
        """By model: what was booked for calls to the VLM after one moment and up to another."""
        is_reversal = LedgerRow.kind == LedgerKind.REVERSAL
        query = (
            select(
                LedgerRow.model_id,
                _whole(func.sum(LedgerRow.prompt_tokens)).label("prompt_tokens"),
                _whole(func.sum(LedgerRow.completion_tokens)).label("completion_tokens"),
                func.sum(case((is_reversal, 1), else_=0)).label("reversals"),
                func.sum(case((is_reversal, 0), (LedgerRow.usage_is_estimated, 1), else_=0)).label(
                    "estimated_calls"
                ),
            )
            .where(
                LedgerRow.model_id.is_not(None),
                LedgerRow.booked_at_s > after_s,
                LedgerRow.booked_at_s <= until_s,
            )
            .group_by(LedgerRow.model_id)
            .order_by(LedgerRow.model_id)
        )
        with self._database.read() as session:
            return tuple(BookedTokens(**row._mapping) for row in session.execute(query))

    def calls_under_way(self, moment_s: float) -> int:
        """Calls to the VLM that had begun and had not ended at that moment."""
        ended_s = VlmAttemptRow.started_at_s + VlmAttemptRow.elapsed_s
        query = (
            select(func.count())
            .select_from(VlmAttemptRow)
            .where(
                VlmAttemptRow.started_at_s <= moment_s,
                or_(VlmAttemptRow.verdict.is_(None), ended_s > moment_s),
            )
        )
        with self._database.read() as session:
            return session.scalar(query) or 0


def prefer_the_index(session: Session) -> None:
    """For one transaction PostgreSQL is told that the index's pages lie side by side, as they do: by its defaults it
    would rather read the whole table, whatever other months it holds."""
    session.execute(text("SET LOCAL random_page_cost = 1.1"))


def sums_query(
    by: Collection[StatementBy], first_day: str, end_day: str, *, is_sqlite: bool
) -> Select[*tuple[Any, ...]]:
    keys = tuple(dict.fromkeys(KEYS[one] for one in by if one in KEYS))
    columns = INDEXED if is_sqlite and LedgerRow.document_id not in keys else (*keys, *ALWAYS)
    return _summed(columns).where(LedgerRow.day >= first_day, LedgerRow.day < end_day)


def _summed(columns: Sequence[Column]) -> Select[*tuple[Any, ...]]:
    has_unpriced_avoided = and_(LedgerRow.avoided_micro.is_(None), LedgerRow.avoided_tokens != 0)
    predicted = case((LedgerRow.prompt_tokens != 0, LedgerRow.predicted_prompt_tokens), else_=0)
    return select(
        *columns,
        func.count().label("entries"),
        func.count(LedgerRow.cost_micro).label("priced_entries"),
        func.sum(case((has_unpriced_avoided, 1), else_=0)).label("avoided_unpriced_entries"),
        func.sum(predicted).label("billed_predicted_tokens"),
        func.coalesce(func.sum(LedgerRow.cpu_s), 0.0).label("cpu_s"),
        *(func.sum(getattr(LedgerRow, name)).label(name) for name in SUMMED_COUNTS),
        *(_whole(func.sum(getattr(LedgerRow, name))).label(name) for name in SUMMED_AMOUNTS),
    ).group_by(*columns)


def _whole(total: ColumnElement[Any]) -> ColumnElement[int]:
    """PostgreSQL sums big integers to a decimal number."""
    return cast(total, BigInteger)


def _ledger_sum(row: Row[*tuple[Any, ...]]) -> LedgerSum:
    values = dict(row._mapping)
    kind = values.pop("kind")
    untold: dict[str, Any] = dict.fromkeys(("day", "team", "cost_centre", "document_id", "reason"))
    return LedgerSum(**untold | values, is_reversal=kind == LedgerKind.REVERSAL)


CHARGED_ALIKE: Final = (
    LedgerRow.day,
    LedgerRow.team,
    LedgerRow.cost_centre,
    LedgerRow.model_id,
    LedgerRow.currency,
    LedgerRow.price_book_version,
    LedgerRow.prompt_price_micro,
    LedgerRow.cached_price_micro,
    LedgerRow.completion_price_micro,
    LedgerRow.cpu_page_price_micro,
)

QUANTITIES: Final = ("cpu_pages", "cached_pages", "prompt_tokens", "cached_tokens", "completion_tokens")


def _charges_query(first_day: str, end_day: str) -> Select[*tuple[Any, ...]]:
    reversed_row = aliased(LedgerRow)
    alike = (
        *CHARGED_ALIKE,
        reversed_row.day.label("reversed_day"),
        and_(LedgerRow.is_forced, LedgerRow.model_id.is_not(None)).label("is_forced_vlm"),
        LedgerRow.cost_micro.is_(None).label("is_unpriced"),
    )
    return (
        select(
            *alike,
            func.count().label("entries"),
            *(_whole(func.sum(getattr(LedgerRow, name))).label(name) for name in QUANTITIES),
            _whole(func.sum(LedgerRow.cost_micro)).label("cost_micro"),
        )
        .outerjoin(reversed_row, reversed_row.entry_id == LedgerRow.reverses_entry_id)
        .where(LedgerRow.day >= first_day, LedgerRow.day < end_day)
        .group_by(*alike)
        .order_by(*(column.nulls_first() for column in alike))
    )


def _charge_sum(row: Row[*tuple[Any, ...]]) -> ChargeSum:
    return ChargeSum(
        day=row.day,
        reversed_day=row.reversed_day,
        team=row.team,
        cost_centre=row.cost_centre,
        model_id=row.model_id,
        is_forced_vlm=bool(row.is_forced_vlm),
        entries=row.entries,
        quantities=Quantities(**{name: getattr(row, name) for name in QUANTITIES}),
        prices=UnitPrices(
            currency=row.currency,
            book_version=row.price_book_version,
            prompt_micro_per_million=row.prompt_price_micro,
            cached_micro_per_million=row.cached_price_micro,
            completion_micro_per_million=row.completion_price_micro,
            cpu_page_micro_per_million=row.cpu_page_price_micro,
        ),
        cost_micro=row.cost_micro,
    )


def _newest_names(document_ids: Sequence[str]) -> Select[str, str]:
    newest = (
        select(func.max(SourceRow.source_id))
        .join(ReadingRow, ReadingRow.reading_id == SourceRow.reading_id)
        .where(ReadingRow.document_id.in_(document_ids))
        .group_by(ReadingRow.document_id)
    )
    return (
        select(ReadingRow.document_id, SourceRow.name)
        .join(SourceRow, SourceRow.reading_id == ReadingRow.reading_id)
        .where(SourceRow.source_id.in_(newest))
    )
