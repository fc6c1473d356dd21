"""The ledger's entries, made from what is known of an attempt. ``docs/chargeback.md`` says what is booked when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from models.budget import Charge, Reservation
from models.page import Route
from models.tables import LedgerKind
from models.transcription import Call, CallOutcome, TokenUsage, Verdict
from pipeline.answers.prompt import estimated_prompt_tokens
from pipeline.answers.token_estimates import estimated_answer_tokens
from pipeline.chargeback.cost_centres import Payer, cost_centre_name
from pipeline.chargeback.months import month_of
from pipeline.chargeback.price_book import PriceBook, UnitPrices, cost_of, price_at
from pipeline.signals.names import SignalName

__all__ = [
    "Account",
    "LedgerEntry",
    "Payer",
    "cache_hit_entry",
    "call_entry",
    "cost_centre_name",
    "failed_page_entry",
    "read_page_entry",
    "reversal_entry",
]

READ: Final = "read"
CACHE_HIT: Final = "cache_hit"

ACCEPTED_ROUTES: Final = frozenset({Route.TEXT_LAYER, Route.OCR})
"""Of pages that triage kept from the VLM. A blank one is never sent, so it avoids nothing."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays, and at which prices. ``model_id`` is the model that pages kept from the VLM would have gone to."""

    payer: Payer
    price_book: PriceBook
    model_id: str

    def reservation(
        self, model_id: str, *, prompt_tokens: int, answer_tokens: int, at_s: float
    ) -> Reservation:
        """What a call that starts at ``at_s`` may take of the budgets at most, with no token cached."""
        prices = price_at(self.price_book, model_id, datetime.fromtimestamp(at_s, UTC))
        usage = TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=answer_tokens)
        return Reservation(
            cost_centre=self.payer.cost_centre,
            month=month_of(at_s),
            most=Charge(tokens=prompt_tokens + answer_tokens, micro=cost_of(prices, usage)),
            currency=prices.currency,
            model_id=model_id,
        )

    def of_submission(self, submission_id: int) -> Account:
        return replace(self, payer=replace(self.payer, submission_id=submission_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """An entry before it is booked; ``LedgerRow`` says what the fields mean. ``attempt`` is None for an attempt on the
    CPU: the ledger counts those when it books them."""

    kind: LedgerKind
    booked_at: datetime
    payer: Payer
    document_id: str
    reading_id: int
    page_number: int | None = None
    attempt: int | None = None
    model_id: str | None = None
    route: Route | None = None
    outcome: str
    reason: str | None = None
    is_forced: bool = False
    is_audit: bool = False
    is_wasted: bool = False
    pages: int = 0
    vlm_pages: int = 0
    cached_pages: int = 0
    cpu_pages: int = 0
    predicted_visual_tokens: int = 0
    predicted_prompt_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    usage_is_estimated: bool = False
    cpu_s: float | None = None
    avoided_tokens: int = 0
    avoided_micro: int | None = 0
    prices: UnitPrices
    cost_micro: int | None
    reverses_entry_id: int | None = None

    @property
    def day(self) -> str:
        return self.booked_at.astimezone(UTC).date().isoformat()

    @property
    def entry_key(self) -> str:
        """The attempt's name: no two entries have the same."""
        match self.kind:
            case LedgerKind.REVERSAL:
                return f"reversal/{self.reverses_entry_id}"
            case LedgerKind.CACHE_HIT:
                return f"cache/{self.payer.submission_id}/{self.reading_id}"
            case LedgerKind.CPU_PAGE | LedgerKind.VLM_CALL:
                return f"{self.kind.value}/{self.reading_id}/{self.page_number}/{self.attempt}"

    def without_page(self) -> LedgerEntry:
        """The call whose page is not settled with it after all: somebody else answers for the page."""
        return replace(self, route=None, vlm_pages=0, is_wasted=True)


def read_page_entry(
    account: Account,
    page: Json,
    *,
    document_id: str,
    reading_id: int,
    is_final: bool,
    cpu_s: float | None,
    when: datetime,
) -> LedgerEntry:
    """An attempt on the CPU that gave the page its result. ``page`` is its JSON; ``is_final`` unless it awaits the
    VLM."""
    route = Route(page["route"])
    is_kept = is_final and route in ACCEPTED_ROUTES
    avoided_tokens, avoided_micro = _avoided(account, page, when) if is_kept else (0, 0)
    return replace(
        _cpu_entry(account, document_id, reading_id, page["page_number"], cpu_s, when),
        outcome=READ,
        pages=1,
        route=route if is_final else None,
        avoided_tokens=avoided_tokens,
        avoided_micro=avoided_micro,
        **_triaged(page["triage"]["reasons"]),
    )


def failed_page_entry(
    account: Account,
    *,
    document_id: str,
    reading_id: int,
    page_number: int,
    code: str,
    is_final: bool,
    cpu_s: float | None,
    when: datetime,
) -> LedgerEntry:
    """An attempt on the CPU that came to nothing; ``is_final`` where the page is given up."""
    return replace(
        _cpu_entry(account, document_id, reading_id, page_number, cpu_s, when),
        outcome=code,
        is_wasted=True,
        pages=int(is_final),
    )


def call_entry(
    payer: Payer,
    price_book: PriceBook,
    call: Call,
    outcome: CallOutcome,
    *,
    document_id: str,
    reasons: Sequence[Json],
    route: Route | None,
    when: datetime,
) -> LedgerEntry:
    """A call to the VLM, at what the server billed. ``reasons`` are those of the page's triage, as its JSON has them.
    ``route`` is the page's where it is settled with this call, else None."""
    prices = price_at(price_book, call.model_id, datetime.fromtimestamp(call.started_at_s, UTC))
    usage = outcome.usage
    gave_the_text = outcome.verdict is Verdict.ACCEPTED and route is Route.VLM
    return LedgerEntry(
        kind=LedgerKind.VLM_CALL,
        booked_at=when,
        payer=payer,
        document_id=document_id,
        reading_id=call.reading_id,
        page_number=call.page_number,
        attempt=call.attempt,
        model_id=call.model_id,
        route=route,
        outcome=outcome.verdict.value,
        is_wasted=not gave_the_text,
        vlm_pages=int(gave_the_text),
        predicted_visual_tokens=call.predicted_visual_tokens,
        predicted_prompt_tokens=call.predicted_prompt_tokens,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=min(usage.cached_tokens or 0, usage.prompt_tokens),
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=min(usage.reasoning_tokens or 0, usage.completion_tokens),
        usage_is_estimated=usage.is_estimated,
        prices=prices,
        cost_micro=cost_of(prices, usage),
        **_triaged(reasons),
    )


def cache_hit_entry(
    account: Account, *, document_id: str, reading_id: int, cached_pages: int, when: datetime
) -> LedgerEntry:
    """So many pages of a document were there already: they cost this run nothing."""
    return LedgerEntry(
        kind=LedgerKind.CACHE_HIT,
        booked_at=when,
        payer=account.payer,
        document_id=document_id,
        reading_id=reading_id,
        outcome=CACHE_HIT,
        cached_pages=cached_pages,
        prices=price_at(account.price_book, None, when),
        cost_micro=0,
    )


def reversal_entry(entry: LedgerEntry, entry_id: int, *, when: datetime) -> LedgerEntry:
    """The entry taken back: its numbers with the opposite sign, so that every sum is as if it had not been booked."""
    negated: dict[str, Any] = {name: _negated(getattr(entry, name)) for name in _SUMMED}
    return replace(entry, kind=LedgerKind.REVERSAL, booked_at=when, reverses_entry_id=entry_id, **negated)


_SUMMED: Final = (
    "pages",
    "vlm_pages",
    "cached_pages",
    "cpu_pages",
    "predicted_visual_tokens",
    "predicted_prompt_tokens",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cpu_s",
    "avoided_tokens",
    "avoided_micro",
    "cost_micro",
)


def _negated(value: float | None) -> float | None:
    return None if value is None else -value


def _cpu_entry(
    account: Account,
    document_id: str,
    reading_id: int,
    page_number: int,
    cpu_s: float | None,
    when: datetime,
) -> LedgerEntry:
    prices = price_at(account.price_book, None, when)
    return LedgerEntry(
        kind=LedgerKind.CPU_PAGE,
        booked_at=when,
        payer=account.payer,
        document_id=document_id,
        reading_id=reading_id,
        page_number=page_number,
        outcome="",
        cpu_pages=1,
        cpu_s=cpu_s,
        prices=prices,
        cost_micro=cost_of(prices, cpu_pages=1),
    )


def _triaged(reasons: Sequence[Json]) -> dict[str, Any]:
    """What triage said of the page. That the VLM was forbidden is no reason for it."""
    signals = [reason["signal"] for reason in reasons if reason["signal"] != SignalName.FORCED_OCR]
    return {
        "reason": signals[0] if signals else None,
        "is_forced": SignalName.FORCED_VLM in signals,
        "is_audit": SignalName.AUDIT in signals,
    }


def _avoided(account: Account, page: Json, when: datetime) -> tuple[int, int | None]:
    """Prompt tokens, and what they and the transcript would have cost; None where a price is missing."""
    prompt_tokens = page["visual_tokens_if_vlm"] + estimated_prompt_tokens(1)
    usage = TokenUsage(
        prompt_tokens=prompt_tokens,
        completion_tokens=estimated_answer_tokens(len(page["text"])),
        is_estimated=True,
    )
    return prompt_tokens, cost_of(price_at(account.price_book, account.model_id, when), usage)
