"""The end of an escalated page: its final result, with every call about it, in the database."""

from __future__ import annotations

from collections.abc import Sequence

from models.page import Route
from models.transcription import Attempt
from pipeline.chargeback.entries import Account
from pipeline.escalated_page import Json
from pipeline.outputs import page_row, transcribed_page_json, untranscribed_page_json
from pipeline.store import Call, CallOutcome, Store
from workers.call_outcomes import closed_call
from workers.messages import PageNotOurs, PageTranscribed, TranscribeTask
from workers.transcription import Transcribed


def settle_page(
    store: Store,
    task: TranscribeTask,
    page: Json,
    end: Transcribed,
    *,
    owner: str,
    account: Account,
    elapsed_s: float,
) -> PageTranscribed | PageNotOurs:
    """``page`` is its JSON as read on the CPU. The last call is closed in the same transaction."""
    attempts = store.transcriptions.attempts(task.reading_id, task.page_number)
    if end.last is not None:
        attempts = (*attempts, _attempt_of(*end.last))
    result = _result(page, end, attempts, elapsed_s)
    route = Route(result["route"])
    last_call = None
    if end.last is not None:
        last_call = closed_call(
            account,
            *end.last,
            document_id=task.document.document_id,
            reasons=page["triage"]["reasons"],
            route=route,
        )
    is_ours = store.transcriptions.finish_page(
        task.reading_id,
        task.page_number,
        owner=owner,
        page=result,
        summary=page_row("", task.document.document_id, result),
        route=route,
        degraded_code=None if end.degradation is None else str(end.degradation.code),
        elapsed_s=result["elapsed_s"],
        last_call=last_call,
    )
    if not is_ours:
        return PageNotOurs(reading_id=task.reading_id, page_number=task.page_number)
    store.pages.complete_reading(task.reading_id)
    return PageTranscribed(
        reading_id=task.reading_id,
        page_number=task.page_number,
        route=route,
        elapsed_s=result["elapsed_s"],
    )


def _attempt_of(call: Call, outcome: CallOutcome) -> Attempt:
    """The call as it stands in the outputs once it is closed."""
    return Attempt(
        attempt=call.attempt,
        request_id=call.request_id,
        model_id=call.model_id,
        tier=call.tier,
        width_px=call.width_px,
        height_px=call.height_px,
        predicted_visual_tokens=call.predicted_visual_tokens,
        usage=outcome.usage,
        verdict=outcome.verdict,
        evidence=outcome.evidence,
        temperature=call.temperature,
        elapsed_s=outcome.elapsed_s,
        message=outcome.message,
    )


def _result(page: Json, end: Transcribed, attempts: Sequence[Attempt], elapsed_s: float) -> Json:
    if end.answer is not None:
        return transcribed_page_json(
            page, end.answer, model_id=attempts[-1].model_id, attempts=attempts, elapsed_s=elapsed_s
        )
    assert end.degradation is not None
    return untranscribed_page_json(page, end.degradation, attempts=attempts, elapsed_s=elapsed_s)
