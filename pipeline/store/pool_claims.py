"""Claims of work in the pool, and what becomes of what was claimed.

Each claim is one short transaction: it finds whose turn it is, takes the first free rows of that submission, and notes
that it was served. On PostgreSQL it passes over rows that another claim has locked; on SQLite there is no other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from sqlalchemy import Row, and_, exists, select, update
from sqlalchemy.orm import Session

from models.pool import Queue, SourceState
from models.tables import PageRow, PageState, ReadingRow, ReadingState, SourceRow, VlmSlotRow
from pipeline.store.database import Database, in_key_order, rows_changed
from pipeline.store.page_statements import page_is, release
from pipeline.store.pool_claimed import (
    ClaimedPages,
    page_to_transcribe,
    pages_to_read,
    source_to_assemble,
    source_to_take_in,
)
from pipeline.store.pool_records import PagesToRead, PageToTranscribe, SourceToAssemble, SourceToTakeIn
from pipeline.store.pool_statements import (
    TAKEN_FROM,
    held_source,
    read_sources,
    release_sources,
    settle_source,
)
from pipeline.store.pool_turns import (
    WAITING_PAGES,
    WAITING_SOURCES,
    note_given_back,
    note_served,
    readings_with,
    turns,
    waiting_sources,
)

READINGS_AT_A_TIME: Final = 64
"""More than one, for those whose pages are all being claimed by others at this moment."""

CLAIMED_AS: Final = {PageState.PENDING: PageState.RUNNING, PageState.AWAITING_VLM: PageState.TRANSCRIBING}


class PoolClaims:
    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_source(
        self, *, owner: str, lease_s: float, weights: Mapping[str, float]
    ) -> SourceToTakeIn | None:
        """The next one whose bytes have arrived."""
        with self._database.write() as session:
            claimed = _claim_source(session, Queue.INTAKE, owner, lease_s, weights)
            return None if claimed is None else source_to_take_in(session, claimed)

    def source_has_reading(self, source_id: int, *, owner: str, reading_id: int, document_id: str) -> bool:
        """It waits for the reading, or for its outputs to be written where that is complete. False when it is not the
        owner's any more, as when its submission was cancelled."""
        with self._database.write() as session:
            reading = session.execute(
                select(ReadingRow.state)
                .where(ReadingRow.reading_id == reading_id, ReadingRow.document_id == document_id)
                .with_for_update(key_share=True)
            ).one()  # until this ends nobody completes it
            is_complete = reading.state is ReadingState.COMPLETE
            taken_in = (
                update(SourceRow)
                .where(held_source(source_id, owner, SourceState.IN_INTAKE))
                .values(
                    state=SourceState.READ if is_complete else SourceState.READING,
                    reading_id=reading_id,
                    taken_in_at_s=time.time(),
                    lease_owner=None,
                    lease_expires_at_s=None,
                    losses=0,
                )
            )
            return rows_changed(session, taken_in) == 1

    def refuse_source(self, source_id: int, *, owner: str, code: str, message: str) -> bool:
        """It is settled with that error, in intake or where its outputs were to be written. False when it is not the
        owner's any more."""
        with self._database.write() as session:
            return settle_source(
                session,
                source_id,
                held_source(source_id, owner, *TAKEN_FROM),
                error_code=code,
                error_message=message,
            )

    def claim_pages(
        self, *, owner: str, lease_s: float, max_pages: int, weights: Mapping[str, float]
    ) -> PagesToRead | None:
        """The next pending pages, one after the other in one reading; one that was lost before comes alone."""
        with self._database.write() as session:
            claimed = _claim_pages(session, Queue.OCR, owner, lease_s, max_pages, weights)
            return None if claimed is None else pages_to_read(session, claimed)

    def claim_escalated(
        self, *, owner: str, lease_s: float, weights: Mapping[str, float]
    ) -> PageToTranscribe | None:
        """The next page that waits for the VLM."""
        with self._database.write() as session:
            claimed = _claim_pages(session, Queue.VLM, owner, lease_s, 1, weights)
            return None if claimed is None else page_to_transcribe(session, claimed)

    def sources_read(self, reading_id: int) -> int:
        """The sources that waited for the reading may be assembled, if it is complete; how many."""
        with self._database.write() as session:
            return read_sources(session, reading_id)

    def claim_assembly(
        self, *, owner: str, lease_s: float, weights: Mapping[str, float]
    ) -> SourceToAssemble | None:
        """The next source whose outputs are to be written."""
        with self._database.write() as session:
            claimed = _claim_source(session, Queue.ASSEMBLE, owner, lease_s, weights)
            return None if claimed is None else source_to_assemble(session, claimed)

    def source_written(
        self,
        source_id: int,
        *,
        owner: str,
        failed_pages: int,
        error_code: str | None = None,
        error_message: str | None = None,
    ) -> bool:
        """Its outputs are there, without ``failed_pages`` of its pages; or there are none, for that error. It is
        settled, and its submission finished if it was the last. False when it is not the owner's any more."""
        with self._database.write() as session:
            return settle_source(
                session,
                source_id,
                held_source(source_id, owner, SourceState.BEING_WRITTEN),
                failed_pages=failed_pages,
                error_code=error_code,
                error_message=error_message,
                written_at_s=time.time() if error_code is None else None,
            )

    def give_back_page(self, reading_id: int, page_number: int, *, owner: str) -> bool:
        """Uncharged. False when it is not the owner's any more, as when it was settled."""
        page = and_(
            PageRow.reading_id == reading_id,
            PageRow.page_number == page_number,
            PageRow.lease_owner == owner,
        )
        with self._database.write() as session:
            return rows_changed(session, release(page)) == 1

    def give_back_pages(self, claimed: PagesToRead, *, owner: str, weights: Mapping[str, float]) -> int:
        """What is left of a claim, uncharged: neither as an attempt nor as the cost centre's turn; how many pages."""
        left = and_(
            PageRow.reading_id == claimed.reading_id,
            PageRow.page_number.in_(claimed.page_numbers),
            PageRow.lease_owner == owner,
        )
        with self._database.write() as session:
            given_back = rows_changed(session, release(left))
            if given_back:
                note_given_back(session, Queue.OCR, claimed.terms.cost_centre, given_back, weights)
            return given_back

    def give_back(self, owner: str) -> None:
        """Every lease of the owner, uncharged."""
        with self._database.write() as session:
            rows_changed(session, release(PageRow.lease_owner == owner))
        with self._database.write() as session:
            release_sources(session, SourceRow.lease_owner == owner)
        with self._database.write() as session:
            mine = in_key_order(VlmSlotRow, VlmSlotRow.owner == owner)
            rows_changed(session, update(VlmSlotRow).where(mine).values(owner=None, expires_at_s=None))

    def is_taken_in(self, submission_id: int, document_id: str, fingerprint: str) -> bool:
        """Whether another source of the submission has brought this reading before."""
        query = exists().where(
            SourceRow.submission_id == submission_id,
            SourceRow.reading_id == ReadingRow.reading_id,
            ReadingRow.document_id == document_id,
            ReadingRow.fingerprint == fingerprint,
        )
        with self._database.read() as session:
            return bool(session.scalar(select(query)))

    def move_sources(self, reading_id: int, new_reading_id: int) -> int:
        """Sources that wait for the one reading wait for the other instead, and nobody reads the first any more; how
        many."""
        waiting = and_(SourceRow.reading_id == reading_id, SourceRow.state == SourceState.READING)
        with self._database.write() as session:
            moved = rows_changed(
                session,
                update(SourceRow).where(in_key_order(SourceRow, waiting)).values(reading_id=new_reading_id),
            )
            session.execute(
                update(ReadingRow).where(ReadingRow.reading_id == reading_id).values(submission_id=None)
            )
            return moved

    def heartbeat(self, owner: str, *, lease_s: float) -> int:
        """The owner is alive: every lease of it holds for ``lease_s`` from now; how many."""
        until_s = time.time() + lease_s
        held_pages = (PageRow.state.in_(tuple(CLAIMED_AS.values()))) & (PageRow.lease_owner == owner)
        held_sources = (SourceRow.state.in_(tuple(TAKEN_FROM))) & (SourceRow.lease_owner == owner)
        renewals = (
            update(PageRow).where(in_key_order(PageRow, held_pages)).values(lease_expires_at_s=until_s),
            update(SourceRow).where(in_key_order(SourceRow, held_sources)).values(lease_expires_at_s=until_s),
            update(VlmSlotRow)
            .where(in_key_order(VlmSlotRow, VlmSlotRow.owner == owner))
            .values(expires_at_s=until_s),
        )
        renewed = 0
        for renewal in renewals:
            with self._database.write() as session:
                renewed += rows_changed(session, renewal)
        return renewed


def _claim_source(
    session: Session, queue: Queue, owner: str, lease_s: float, weights: Mapping[str, float]
) -> int | None:
    for turn in turns(session, queue):
        first = waiting_sources(queue, turn.submission_id).limit(1)
        source_id = session.scalar(first.with_for_update(of=SourceRow, key_share=True, skip_locked=True))
        if source_id is None:
            continue
        free = WAITING_SOURCES[queue]
        held = next(held for held, from_state in TAKEN_FROM.items() if from_state is free)
        session.execute(
            update(SourceRow)
            .where(SourceRow.source_id == source_id)
            .values(state=held, lease_owner=owner, lease_expires_at_s=time.time() + lease_s)
        )
        note_served(session, turn, 1, weights)
        return source_id
    return None


def _claim_pages(
    session: Session,
    queue: Queue,
    owner: str,
    lease_s: float,
    max_pages: int,
    weights: Mapping[str, float],
) -> ClaimedPages | None:
    waiting = WAITING_PAGES[queue]
    for turn in turns(session, queue):
        readings = readings_with(waiting, turn.submission_id).limit(READINGS_AT_A_TIME)
        for reading_id in session.scalars(readings).all():
            pages = _first_free(session, reading_id, waiting, max_pages)
            if not pages:
                continue
            numbers = tuple(page.page_number for page in pages)
            session.execute(
                update(PageRow)
                .where(PageRow.reading_id == reading_id, PageRow.page_number.in_(numbers))
                .values(
                    state=CLAIMED_AS[waiting],
                    lease_owner=owner,
                    lease_expires_at_s=time.time() + lease_s,
                ),
                execution_options={"synchronize_session": False},
            )
            note_served(session, turn, len(numbers), weights)
            return ClaimedPages(turn.submission_id, reading_id, numbers, losses=pages[0].losses)
    return None


def _first_free(
    session: Session, reading_id: int, state: PageState, max_pages: int
) -> Sequence[Row[int, int]]:
    """The first pages that follow one another, none of which was lost before; or the first one alone. Numbers and
    losses."""
    query = (
        select(PageRow.page_number, PageRow.losses)
        .where(PageRow.reading_id == reading_id, page_is(state))
        .order_by(PageRow.page_number)
        .limit(max_pages)
        .with_for_update(key_share=True, skip_locked=True)
    )
    free = session.execute(query).all()
    in_a_row = (page for place, page in enumerate(free) if page.page_number == free[0].page_number + place)
    return tuple(takewhile(lambda page: page.losses == 0, in_a_row)) or free[:1]
