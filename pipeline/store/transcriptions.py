"""Pages that wait for the VLM, and the calls made about them, booked one by one.

A call is opened before it is made and closed with what the server billed, the last one of a page in the
transaction that settles the page: so a crash leaves an open call, never a forgotten one. Whoever closes a call enters
it in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from models.budget import Charge, Reservation
from models.page import Route
from models.tables import PageRow, PageState, VlmAttemptRow
from models.transcription import Attempt, Call, CallOutcome, Evidence, TokenUsage, Verdict
from pipeline.chargeback.entries import LedgerEntry
from pipeline.chargeback.months import month_of
from pipeline.chargeback.price_book import PriceBook
from pipeline.store.abandoned_calls import close_abandoned
from pipeline.store.budgets import reserve, settle, settlement_of
from pipeline.store.database import Database, rows_changed
from pipeline.store.ledger import insert_entries
from pipeline.store.page_statements import result_columns, settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalatedPage:
    """A page that the owner may send to the VLM. ``page`` is its JSON as read on the CPU, ``calls_before`` how
    many calls have been made about it, in earlier runs too."""

    page: Mapping[str, Any]
    calls_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedCall:
    """A call that came to its end, and how it is booked."""

    call: Call
    outcome: CallOutcome
    entry: LedgerEntry


class TranscriptionStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_page(
        self, reading_id: int, page_number: int, *, owner: str, lease_s: float
    ) -> EscalatedPage | None:
        """None when the page does not wait for the VLM, or another owner was faster."""
        claim = (
            update(PageRow)
            .where(
                PageRow.reading_id == reading_id,
                PageRow.page_number == page_number,
                PageRow.state == PageState.AWAITING_VLM,
            )
            .values(state=PageState.TRANSCRIBING, lease_owner=owner, lease_expires_at_s=time.time() + lease_s)
            .returning(PageRow.result)
        )
        with self._database.write() as session:
            page = session.scalars(claim).one_or_none()
            if page is None:
                return None
            return EscalatedPage(page=page, calls_before=last_attempt(session, reading_id, page_number))

    def held_pages(self, owner: str) -> tuple[tuple[int, int], ...]:
        """Reading and number of each page that the owner is transcribing."""
        held = select(PageRow.reading_id, PageRow.page_number).where(
            PageRow.state == PageState.TRANSCRIBING, PageRow.lease_owner == owner
        )
        with self._database.read() as session:
            return tuple((reading_id, number) for reading_id, number in session.execute(held))

    def open_call(self, call: Call, *, owner: str, currency: str) -> bool:
        """Reserve what it may cost at most, in ``currency``, and book that it is made; False, and nothing booked, when
        the page is not the owner's any more. Raises ``BudgetSpent`` and ``BudgetUnusable``."""
        month = month_of(call.started_at_s)
        reservation = Reservation(
            cost_centre=call.cost_centre,
            month=month,
            most=Charge(tokens=call.reserved_tokens, micro=call.reserved_micro),
            currency=currency,
            model_id=call.model_id,
        )
        with self._database.write() as session:
            if not _holds(session, call.reading_id, call.page_number, owner):
                return False
            reserve(session, reservation)
            session.add(VlmAttemptRow(**asdict(call), month=month))
            return True

    def close_call(self, closed: ClosedCall) -> None:
        """Books nothing for a call that is closed already."""
        with self._database.write() as session:
            _close(session, closed)

    def finish_page(
        self,
        reading_id: int,
        page_number: int,
        *,
        owner: str,
        page: Mapping[str, Any],
        summary: Mapping[str, Any],
        route: Route,
        degraded_code: str | None,
        elapsed_s: float,
        last_call: ClosedCall | None,
    ) -> bool:
        """Settle the page with its final result, and close the last call, where there was one; False, and no
        result stored, when the page is not the owner's any more. The call is booked all the same, as wasted."""
        settle = settlement(
            reading_id,
            page_number,
            owner=owner,
            held_as=PageState.TRANSCRIBING,
            state=PageState.DONE,
            **result_columns(
                page=page,
                summary=summary,
                route=route,
                elapsed_s=elapsed_s,
                degraded_code=degraded_code,
            ),
        )
        with self._database.write() as session:
            is_ours = rows_changed(session, settle) == 1
            if last_call is not None:
                entry = last_call.entry if is_ours else last_call.entry.without_page()
                _close(session, replace(last_call, entry=entry))
            return is_ours

    def attempts(self, reading_id: int, page_number: int) -> tuple[Attempt, ...]:
        """Every call about the page that is closed, in order."""
        with self._database.read() as session:
            return closed_attempts(session, reading_id, page_number)

    def close_abandoned(self, price_book: PriceBook) -> int:
        """Book the calls whose process ended before it could, at the tokens that their prompts were predicted to
        take, on the account that they were made for."""
        with self._database.write() as session:
            return close_abandoned(session, price_book)


def closed_attempts(session: Session, reading_id: int, page_number: int) -> tuple[Attempt, ...]:
    query = (
        select(VlmAttemptRow)
        .where(
            VlmAttemptRow.reading_id == reading_id,
            VlmAttemptRow.page_number == page_number,
            VlmAttemptRow.verdict.is_not(None),
        )
        .order_by(VlmAttemptRow.attempt)
    )
    return tuple(_attempt(row) for row in session.scalars(query))


def _holds(session: Session, reading_id: int, page_number: int, owner: str) -> bool:
    """And until the transaction ends nobody else takes the page."""
    held = select(PageRow.page_number).where(
        PageRow.reading_id == reading_id,
        PageRow.page_number == page_number,
        PageRow.state == PageState.TRANSCRIBING,
        PageRow.lease_owner == owner,
    )
    return session.scalar(held.with_for_update(read=True)) is not None


def last_attempt(session: Session, reading_id: int, page_number: int) -> int:
    last = select(func.max(VlmAttemptRow.attempt)).where(
        VlmAttemptRow.reading_id == reading_id, VlmAttemptRow.page_number == page_number
    )
    return session.scalar(last) or 0


def _close(session: Session, closed: ClosedCall) -> None:
    call, outcome = closed.call, closed.outcome
    closing = (
        update(VlmAttemptRow)
        .where(
            VlmAttemptRow.reading_id == call.reading_id,
            VlmAttemptRow.page_number == call.page_number,
            VlmAttemptRow.attempt == call.attempt,
            VlmAttemptRow.verdict.is_(None),
        )
        .values(
            verdict=outcome.verdict.value,
            evidence=[asdict(one) for one in outcome.evidence],
            message=outcome.message,
            prompt_tokens=outcome.usage.prompt_tokens,
            cached_tokens=outcome.usage.cached_tokens,
            completion_tokens=outcome.usage.completion_tokens,
            reasoning_tokens=outcome.usage.reasoning_tokens,
            usage_is_estimated=outcome.usage.is_estimated,
            elapsed_s=outcome.elapsed_s,
        )
    )
    if rows_changed(session, closing) == 1:
        insert_entries(session, [closed.entry])
        settle(session, [settlement_of(call, closed.entry)])


def _attempt(row: VlmAttemptRow) -> Attempt:
    assert row.verdict is not None
    return Attempt(
        attempt=row.attempt,
        request_id=row.request_id,
        model_id=row.model_id,
        tier=row.tier,
        width_px=row.width_px,
        height_px=row.height_px,
        predicted_visual_tokens=row.predicted_visual_tokens,
        usage=TokenUsage(
            prompt_tokens=row.prompt_tokens or 0,
            completion_tokens=row.completion_tokens or 0,
            cached_tokens=row.cached_tokens,
            reasoning_tokens=row.reasoning_tokens,
            is_estimated=bool(row.usage_is_estimated),
        ),
        verdict=Verdict(row.verdict),
        evidence=tuple(Evidence(**one) for one in row.evidence or ()),
        temperature=row.temperature,
        elapsed_s=row.elapsed_s,
        message=row.message,
    )
