"""What came of a call to the VLM, and how it is booked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from models.errors import VlmError
from models.page import Route
from models.transcription import Call, CallOutcome, Judgement, TokenUsage, Verdict, VlmReply
from pipeline.answers.token_estimates import estimated_answer_tokens
from pipeline.chargeback.entries import Account, Json, call_entry
from pipeline.store import ClosedCall
from workers.retry import verdict_of


def closed_call(
    account: Account,
    call: Call,
    outcome: CallOutcome,
    *,
    document_id: str,
    reasons: Sequence[Json],
    route: Route | None,
) -> ClosedCall:
    """``route`` is that of the page where it is settled with this call."""
    entry = call_entry(
        account.payer,
        account.price_book,
        call,
        outcome,
        document_id=document_id,
        reasons=reasons,
        route=route,
        when=datetime.now(UTC),
    )
    return ClosedCall(call=call, outcome=outcome, entry=entry)


def outcome_of_reply(call: Call, reply: VlmReply, judgement: Judgement) -> CallOutcome:
    """An answer costs, so a bill of nothing is no bill."""
    usage = reply.usage
    if usage is None or usage.prompt_tokens == 0:
        usage = TokenUsage(
            prompt_tokens=call.predicted_prompt_tokens,
            completion_tokens=min(estimated_answer_tokens(len(reply.text)), _most_answer_tokens(call)),
            is_estimated=True,
        )
    return CallOutcome(
        verdict=judgement.verdict, usage=usage, evidence=judgement.evidence, elapsed_s=reply.elapsed_s
    )


def _most_answer_tokens(call: Call) -> int:
    return max(0, call.reserved_tokens - call.predicted_prompt_tokens)


def outcome_of_unjudged(call: Call, reply: VlmReply, error: Exception) -> CallOutcome:
    outcome = outcome_of_reply(call, reply, Judgement(verdict=Verdict.BAD_RESPONSE))
    return replace(outcome, message=f"the answer could not be judged ({type(error).__name__}: {error})")


def outcome_of_error(call: Call, error: VlmError, elapsed_s: float) -> CallOutcome:
    prompt_tokens = call.predicted_prompt_tokens if error.may_have_cost else 0
    usage = TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=0, is_estimated=error.may_have_cost)
    return CallOutcome(verdict=verdict_of(error), usage=usage, message=str(error), elapsed_s=elapsed_s)
