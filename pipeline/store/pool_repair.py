"""What the pool takes back from workers that are gone, and what it sets going where something stands still.

Each step is a transaction of its own. Several may repair at once: what one has changed, another does not find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select, union, update
from sqlalchemy.orm import InstrumentedAttribute

from models.errors import WorkerLost
from models.pool import Queue, SourceState, SubmissionState
from models.tables import PageRow, ReadingRow, ReadingState, SourceRow, SubmissionRow, VlmSlotRow
from pipeline.chargeback.price_book import PriceBook
from pipeline.store.database import Database, in_key_order, rows_changed
from pipeline.store.page_statements import HELD, has_unsettled
from pipeline.store.pool_losses import reclaim_pages
from pipeline.store.pool_records import Reclaimed, Repaired
from pipeline.store.pool_statements import (
    TAKEN_FROM,
    UNSETTLED_SOURCES,
    complete_with_sources,
    finish_if_settled,
    hand_on,
    lock_submission,
    release_sources,
    settle_cancelled,
    settle_source,
)

SUBMITTER_GONE_AFTER_S: Final = 120
QUEUE_OF: Final = {SourceState.IN_INTAKE: Queue.INTAKE, SourceState.BEING_WRITTEN: Queue.ASSEMBLE}


class PoolRepair:
    def __init__(self, database: Database) -> None:
        self._database = database

    def reclaim(
        self, is_alive: Callable[[str], bool], *, max_losses: int, price_book: PriceBook
    ) -> Reclaimed:
        """Take what is leased to owners that ``is_alive`` denies, or whose lease has run out. Of each owner and reading
        the first page is charged with the loss, and given up after ``max_losses``; so is a source. Calls that nobody
        will close are booked as abandoned."""
        lost = _Lost(self._dead_owners(is_alive))
        with self._database.write() as session:
            pages = reclaim_pages(
                session,
                lost.leases(PageRow.lease_owner, PageRow.lease_expires_at_s),
                max_losses=max_losses,
                price_book=price_book,
            )
        read_sources = sum(self._complete(reading_id) for reading_id in pages.ended_readings)
        refused_sources = self._refuse_lost_sources(lost, max_losses)
        freed_sources = {state: self._free_lost_sources(lost, state) for state in TAKEN_FROM}
        queues = {QUEUE_OF[state] for state, count in freed_sources.items() if count}
        return Reclaimed(
            freed_pages=pages.freed,
            charged_pages=pages.charged,
            given_up_pages=pages.given_up,
            closed_calls=pages.closed_calls,
            freed_sources=sum(freed_sources.values()),
            refused_sources=refused_sources,
            freed_slots=self._free_lost_slots(lost),
            queues=frozenset({*pages.queues, *queues, *([Queue.ASSEMBLE] if read_sources else [])}),
        )

    def lose_page(
        self, reading_id: int, page_number: int, *, owner: str, max_losses: int, price_book: PriceBook
    ) -> None:
        """As though its owner were gone; nothing where it is not the owner's any more."""
        is_page = and_(
            PageRow.reading_id == reading_id, PageRow.page_number == page_number, PageRow.lease_owner == owner
        )
        with self._database.write() as session:
            lost = reclaim_pages(session, is_page, max_losses=max_losses, price_book=price_book)
        for ended in lost.ended_readings:
            self._complete(ended)

    def repair(self) -> Repaired:
        """Set going what a worker, or a submitter, left half-way."""
        sealed = self._seal_left_submissions()
        cancelled = sum(self._settle_cancelled(one) for one in self._ids(_cancelled_with_sources()))
        handed_on = self._hand_on(self._ids(_unwanted_readings()))
        ended = self._ids(_ended_readings())
        read_sources = sum(self._complete(one) for one in (*ended, *self._ids(_untold_readings())))
        finished = sum(self._finish(one) for one in self._ids(_settled_submissions()))
        queues = {Queue.ASSEMBLE: read_sources, Queue.OCR: handed_on, Queue.VLM: handed_on}
        return Repaired(
            sealed_submissions=sealed,
            finished_submissions=finished,
            completed_readings=len(ended),
            read_sources=read_sources,
            cancelled_sources=cancelled,
            handed_on_readings=handed_on,
            queues=frozenset(queue for queue, count in queues.items() if count),
        )

    def _dead_owners(self, is_alive: Callable[[str], bool]) -> tuple[str, ...]:
        owners = union(
            select(PageRow.lease_owner).where(PageRow.state.in_(HELD)),
            select(SourceRow.lease_owner).where(SourceRow.state.in_(tuple(TAKEN_FROM))),
            select(VlmSlotRow.owner).where(VlmSlotRow.owner.is_not(None)),
        )
        with self._database.read() as session:
            names = session.execute(owners).scalars().all()
        return tuple(name for name in names if name is not None and not is_alive(name))

    def _complete(self, reading_id: int) -> int:
        with self._database.write() as session:
            return complete_with_sources(session, reading_id)

    def _refuse_lost_sources(self, lost: _Lost, max_losses: int) -> int:
        """Those that cost another worker each time that they were tried."""
        is_lost = lost.leases(SourceRow.lease_owner, SourceRow.lease_expires_at_s)
        given_up = and_(SourceRow.state.in_(tuple(TAKEN_FROM)), is_lost, SourceRow.losses + 1 >= max_losses)
        message = (
            f"a worker was lost over it, {max_losses} times; look at what the workers say of it, and at their "
            "memory, and submit it again"
        )
        refused = 0
        for source_id in self._ids(select(SourceRow.source_id).where(given_up)):
            with self._database.write() as session:
                refused += settle_source(
                    session,
                    source_id,
                    given_up,
                    losses=SourceRow.losses + 1,
                    error_code=WorkerLost.code,
                    error_message=message,
                )
        return refused

    def _free_lost_sources(self, lost: _Lost, state: SourceState) -> int:
        is_lost = lost.leases(SourceRow.lease_owner, SourceRow.lease_expires_at_s)
        with self._database.write() as session:
            return release_sources(
                session, and_(SourceRow.state == state, is_lost), losses=SourceRow.losses + 1
            )

    def _free_lost_slots(self, lost: _Lost) -> int:
        is_lost = lost.leases(VlmSlotRow.owner, VlmSlotRow.expires_at_s)
        free = update(VlmSlotRow).where(in_key_order(VlmSlotRow, is_lost))
        with self._database.write() as session:
            return rows_changed(session, free.values(owner=None, expires_at_s=None))

    def _seal_left_submissions(self) -> int:
        """Whose submitter went away before it had sent all: what arrived is read."""
        seal = (
            update(SubmissionRow)
            .where(
                in_key_order(
                    SubmissionRow,
                    and_(
                        SubmissionRow.state == SubmissionState.OPEN,
                        SubmissionRow.is_sealed.is_(False),
                        SubmissionRow.submitter_seen_at_s < time.time() - SUBMITTER_GONE_AFTER_S,
                    ),
                )
            )
            .values(is_sealed=True)
        )
        with self._database.write() as session:
            return rows_changed(session, seal)

    def _settle_cancelled(self, submission_id: int) -> int:
        with self._database.write() as session:
            lock_submission(session, submission_id)
            return settle_cancelled(session, submission_id)

    def _hand_on(self, reading_ids: Sequence[int]) -> int:
        handed_on = 0
        for reading_id in reading_ids:
            with self._database.write() as session:
                handed_on += hand_on(session, [reading_id])
        return handed_on

    def _finish(self, submission_id: int) -> bool:
        with self._database.write() as session:
            lock_submission(session, submission_id)
            return finish_if_settled(session, submission_id)

    def _ids(self, query: Select[int]) -> Sequence[int]:
        with self._database.read() as session:
            return session.scalars(query).all()


class _Lost:
    """Leases of owners that are dead, and those that have run out by now."""

    def __init__(self, dead: Sequence[str]) -> None:
        self._dead = dead
        self._now_s = time.time()

    def leases(
        self, owner: InstrumentedAttribute[Any], expires_at_s: InstrumentedAttribute[Any]
    ) -> ColumnElement[bool]:
        return or_(expires_at_s < self._now_s, owner.in_(self._dead))


def _ended_readings() -> Select[int]:
    """Of the pool, with all pages settled, which nobody completed."""
    return (
        select(ReadingRow.reading_id)
        .where(
            ReadingRow.state == ReadingState.OPEN,
            ReadingRow.submission_id.is_not(None),
            ~has_unsettled(ReadingRow.reading_id),
        )
        .order_by(ReadingRow.reading_id)
    )


def _untold_readings() -> Select[int]:
    """Complete ones that sources wait for."""
    return (
        select(ReadingRow.reading_id)
        .join(SourceRow, SourceRow.reading_id == ReadingRow.reading_id)
        .where(SourceRow.state == SourceState.READING, ReadingRow.state == ReadingState.COMPLETE)
        .distinct()
        .order_by(ReadingRow.reading_id)
    )


def _unwanted_readings() -> Select[int]:
    """Open ones whose own submission is over or has no source that waits for it, while another has."""
    own = exists().where(
        SubmissionRow.submission_id == ReadingRow.submission_id,
        SubmissionRow.state == SubmissionState.OPEN,
        SourceRow.submission_id == SubmissionRow.submission_id,
        SourceRow.reading_id == ReadingRow.reading_id,
        SourceRow.state == SourceState.READING,
    )
    waited_for = select(SourceRow.reading_id).where(SourceRow.state == SourceState.READING)
    return (
        select(ReadingRow.reading_id)
        .where(ReadingRow.state == ReadingState.OPEN, ReadingRow.reading_id.in_(waited_for), ~own)
        .order_by(ReadingRow.reading_id)
    )


def _cancelled_with_sources() -> Select[int]:
    return (
        select(SubmissionRow.submission_id)
        .join(SourceRow, SourceRow.submission_id == SubmissionRow.submission_id)
        .where(SourceRow.state.in_(UNSETTLED_SOURCES), SubmissionRow.state == SubmissionState.CANCELLED)
        .distinct()
        .order_by(SubmissionRow.submission_id)
    )


def _settled_submissions() -> Select[int]:
    has_unsettled = exists().where(
        SourceRow.submission_id == SubmissionRow.submission_id, SourceRow.state.in_(UNSETTLED_SOURCES)
    )
    return select(SubmissionRow.submission_id).where(
        SubmissionRow.state == SubmissionState.OPEN, SubmissionRow.is_sealed.is_(True), ~has_unsettled
    )
