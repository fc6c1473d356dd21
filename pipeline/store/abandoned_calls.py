"""Calls to the VLM that nobody will close any more: their process ended under them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sqlalchemy import and_, exists, func, select, update
from sqlalchemy.orm import Session

from models.tables import PageRow, PageState, ReadingRow, SubmissionRow, VlmAttemptRow
from models.transcription import Call, CallOutcome, TokenUsage, Verdict
from pipeline.chargeback.cost_centres import DEFAULT_COST_CENTRE, Payer
from pipeline.chargeback.entries import LedgerEntry, call_entry
from pipeline.chargeback.price_book import PriceBook
from pipeline.store.budgets import settle, settlement_of
from pipeline.store.database import in_key_order
from pipeline.store.ledger import insert_entries


def close_abandoned(session: Session, price_book: PriceBook) -> int:
    is_held = exists().where(
        PageRow.reading_id == VlmAttemptRow.reading_id,
        PageRow.page_number == VlmAttemptRow.page_number,
        PageRow.state == PageState.TRANSCRIBING,
    )
    closing = (
        update(VlmAttemptRow)
        .where(in_key_order(VlmAttemptRow, and_(VlmAttemptRow.verdict.is_(None), ~is_held)))
        .values(
            verdict=Verdict.ABANDONED.value,
            evidence=[],
            prompt_tokens=func.coalesce(
                VlmAttemptRow.predicted_prompt_tokens, VlmAttemptRow.predicted_visual_tokens
            ),
            completion_tokens=0,
            usage_is_estimated=True,
        )
        .returning(VlmAttemptRow.vlm_attempt_id)
    )
    closed = session.scalars(closing, execution_options={"synchronize_session": False}).all()
    booked = tuple(_booked(session, closed, price_book))
    insert_entries(session, (entry for _, entry in booked))
    settle(session, (settlement_of(call, entry) for call, entry in booked))
    return len(closed)


def _booked(
    session: Session, attempt_ids: Sequence[int], price_book: PriceBook
) -> Iterator[tuple[Call, LedgerEntry]]:
    """Each call with its entry, on the account that it was made for."""
    when = datetime.now(UTC)
    page_of_call = and_(
        PageRow.reading_id == VlmAttemptRow.reading_id, PageRow.page_number == VlmAttemptRow.page_number
    )
    query = (
        select(VlmAttemptRow, ReadingRow.document_id, PageRow.summary, SubmissionRow)
        .join(ReadingRow, ReadingRow.reading_id == VlmAttemptRow.reading_id)
        .join(PageRow, page_of_call)
        .outerjoin(SubmissionRow, SubmissionRow.submission_id == VlmAttemptRow.submission_id)
        .where(VlmAttemptRow.vlm_attempt_id.in_(attempt_ids))
        .order_by(VlmAttemptRow.vlm_attempt_id)
    )
    for row, document_id, summary, submission in session.execute(query):
        usage = TokenUsage(prompt_tokens=row.prompt_tokens, completion_tokens=0, is_estimated=True)
        call = _call(row, submission)
        entry = call_entry(
            Payer(
                cost_centre=call.cost_centre,
                submitter=None if submission is None else submission.submitter,
                submission_id=row.submission_id,
            ),
            price_book,
            call,
            CallOutcome(verdict=Verdict.ABANDONED, usage=usage, elapsed_s=0.0),
            document_id=document_id,
            reasons=(summary or {}).get("reasons", ()),
            route=None,
            when=when,
        )
        yield call, entry


def _call(row: VlmAttemptRow, submission: SubmissionRow | None) -> Call:
    """A call that was opened before calls had a cost centre is its submission's, and reserved nothing."""
    named = row.cost_centre or (None if submission is None else submission.cost_centre)
    predicted = row.predicted_prompt_tokens
    return Call(
        reading_id=row.reading_id,
        page_number=row.page_number,
        attempt=row.attempt,
        submission_id=row.submission_id,
        cost_centre=named or DEFAULT_COST_CENTRE,
        request_id=row.request_id,
        model_id=row.model_id,
        tier=row.tier,
        width_px=row.width_px,
        height_px=row.height_px,
        predicted_visual_tokens=row.predicted_visual_tokens,
        predicted_prompt_tokens=row.predicted_visual_tokens if predicted is None else predicted,
        temperature=row.temperature,
        started_at_s=row.started_at_s,
        reserved_tokens=row.reserved_tokens or 0,
        reserved_micro=row.reserved_micro,
    )
