"""Whose turn it is: the most urgent submissions first, among them the cost centre that has had least, in it the
submission that has waited longest.

Cost centres take turns as packets do under start-time fair queuing (Goyal, Vin and Cheng, 1996): a lane advances by the
pages it was served, divided by its weight, and the lane that is least far is served next. A lane that had nothing to be
served does not save that up: it starts where the queue's clock stands.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from models.pool import Queue, SourceState, SubmissionState
from models.tables import (
    LaneRow,
    PageRow,
    PageState,
    ReadingRow,
    ReadingState,
    SourceRow,
    SubmissionRow,
    TurnRow,
)
from pipeline.chargeback.cost_centres import team_of
from pipeline.store.database import insert_missing, rows_changed
from pipeline.store.page_statements import page_is

SUBMISSIONS_AT_A_TIME: Final = 16
"""More than one, for those whose work is all being claimed by others at this moment."""

CLOCK: Final = ""
"""The name of the lane that is none."""

WAITING_PAGES: Final[Mapping[Queue, PageState]] = {
    Queue.OCR: PageState.PENDING,
    Queue.VLM: PageState.AWAITING_VLM,
}
WAITING_SOURCES: Final[Mapping[Queue, SourceState]] = {
    Queue.INTAKE: SourceState.RECEIVED,
    Queue.ASSEMBLE: SourceState.READ,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A submission that has something to be served in the queue, and how far its lane is (``start``). ``clock``: that
    of the queue, None where nothing was ever served."""

    queue: Queue
    submission_id: int
    cost_centre: str
    start: float
    clock: float | None


def turns(session: Session, queue: Queue) -> Sequence[Turn]:
    """The next ones, in order."""
    return tuple(Turn(queue=queue, **row._mapping) for row in session.execute(_turns(queue)))


def _turns(queue: Queue) -> Select[int, str, float, float | None]:
    """Open submissions are put in order first and looked into one after the other until enough have something waiting:
    OFFSET keeps PostgreSQL from doing it the other way round."""
    clock = (
        select(LaneRow.passed).where(LaneRow.stage == queue, LaneRow.cost_centre == CLOCK).scalar_subquery()
    )
    lane = aliased(LaneRow)
    start = case((lane.passed > clock, lane.passed), else_=func.coalesce(clock, 0.0))
    urgency = (
        SubmissionRow.priority.desc(),
        start,
        func.coalesce(TurnRow.served_at_ns, 0),
        SubmissionRow.submission_id,
    )
    in_order = (
        select(
            SubmissionRow.submission_id,
            func.coalesce(SubmissionRow.cost_centre, CLOCK).label("cost_centre"),
            start.label("start"),
            clock.label("clock"),
            func.row_number().over(order_by=urgency).label("place"),
        )
        .outerjoin(lane, and_(lane.stage == queue, lane.cost_centre == SubmissionRow.cost_centre))
        .outerjoin(
            TurnRow, and_(TurnRow.stage == queue, TurnRow.submission_id == SubmissionRow.submission_id)
        )
        .where(SubmissionRow.state == SubmissionState.OPEN)
        .offset(0)
        .subquery()
    )
    columns = in_order.c
    return (
        select(columns.submission_id, columns.cost_centre, columns.start, columns.clock)
        .where(_something_waits(queue, columns.submission_id))
        .order_by(columns.place)
        .limit(SUBMISSIONS_AT_A_TIME)
    )


def _something_waits(queue: Queue, submission_id: ColumnElement[int]) -> ColumnElement[bool]:
    if queue in WAITING_PAGES:
        return readings_with(WAITING_PAGES[queue], submission_id).limit(1).scalar_subquery().is_not(None)
    return waiting_sources(queue, submission_id).limit(1).scalar_subquery().is_not(None)


def readings_with(state: PageState, submission_id: ColumnElement[int] | int) -> Select[int]:
    """The submission's readings that have such a page, in order."""
    first_page = (
        select(PageRow.page_number)
        .where(PageRow.reading_id == ReadingRow.reading_id, page_is(state))
        .order_by(PageRow.page_number)
        .limit(1)
        .correlate(ReadingRow)
        .scalar_subquery()
    )
    return (
        select(ReadingRow.reading_id)
        .where(
            ReadingRow.state == ReadingState.OPEN,
            ReadingRow.submission_id == submission_id,
            first_page.is_not(None),
        )
        .order_by(ReadingRow.reading_id)
    )


def waiting_sources(queue: Queue, submission_id: ColumnElement[int] | int) -> Select[int]:
    """A reading may have been opened again since it was read: then its sources wait for it."""
    query = select(SourceRow.source_id).where(
        SourceRow.state == WAITING_SOURCES[queue], SourceRow.submission_id == submission_id
    )
    if queue is Queue.ASSEMBLE:
        is_complete = exists().where(
            ReadingRow.reading_id == SourceRow.reading_id, ReadingRow.state == ReadingState.COMPLETE
        )
        query = query.where(is_complete)
    return query.order_by(SourceRow.source_id)


def note_served(session: Session, turn: Turn, pages: int, weights: Mapping[str, float]) -> None:
    """The lane's row is the last that a claim locks, and the only one that it waits for."""
    _note_turn(session, turn)
    _set_clock(session, turn)
    advanced = case((LaneRow.passed < turn.start, turn.start), else_=LaneRow.passed)
    share = pages / weight_of(turn.cost_centre, weights)
    lane = update(LaneRow).where(LaneRow.stage == turn.queue, LaneRow.cost_centre == turn.cost_centre)
    if rows_changed(session, lane.values(passed=advanced + share)) == 0:
        fresh = {"stage": turn.queue, "cost_centre": turn.cost_centre, "passed": turn.start}
        insert_missing(session, LaneRow, [fresh])
        session.execute(lane.values(passed=advanced + share))


def note_given_back(
    session: Session, queue: Queue, cost_centre: str, pages: int, weights: Mapping[str, float]
) -> None:
    """They were not served after all."""
    lane = update(LaneRow).where(LaneRow.stage == queue, LaneRow.cost_centre == cost_centre)
    session.execute(lane.values(passed=LaneRow.passed - pages / weight_of(cost_centre, weights)))


def weight_of(cost_centre: str, weights: Mapping[str, float]) -> float:
    """Its own, or its team's, or 1."""
    return weights.get(cost_centre, weights.get(team_of(cost_centre), 1.0))


def _note_turn(session: Session, turn: Turn) -> None:
    """Where another claim is just noting the same, that is as good."""
    row = and_(TurnRow.stage == turn.queue, TurnRow.submission_id == turn.submission_id)
    free = select(TurnRow.submission_id).where(row).with_for_update(skip_locked=True)
    noted = {"served_at_ns": time.time_ns()}
    if rows_changed(session, update(TurnRow).where(row, TurnRow.submission_id.in_(free)).values(noted)) == 0:
        key = {"stage": turn.queue, "submission_id": turn.submission_id}
        insert_missing(session, TurnRow, [{**key, **noted}])


def _set_clock(session: Session, turn: Turn) -> None:
    """It never goes back. Another claim that is just setting it sets it to about the same."""
    if turn.clock is None:
        row = {"stage": turn.queue, "cost_centre": CLOCK, "passed": turn.start}
        insert_missing(session, LaneRow, [row])
    elif turn.clock < turn.start:
        is_clock = and_(LaneRow.stage == turn.queue, LaneRow.cost_centre == CLOCK)
        behind = select(LaneRow.cost_centre).where(is_clock, LaneRow.passed < turn.start)
        free = LaneRow.cost_centre.in_(behind.with_for_update(skip_locked=True))
        session.execute(update(LaneRow).where(is_clock, free).values(passed=turn.start))
