"""What the API answers, as values. ``docs/client.md`` describes them; keys that a newer server adds are passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from models.budget import BudgetMonth, Level, WhenSpent
from models.document_state import DocumentState
from models.errors import ServerError
from pipeline.chargeback.amounts import money_micro
from pipeline.chargeback.bills import SubmissionBill

Json = Mapping[str, Any]
Record = TypeVar("Record")

OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a document or a page failed: a stable code, and what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as the server has it. ``id`` is the server's name for it, ``document_id`` the SHA-256 of its bytes.
    ``pages`` counts them by state, ``routes`` those that are done; of those ``degraded_pages`` went without the VLM.
    ``page_count`` is None until it was looked into. ``is_replayed``: the server had it already, from an earlier
    request with the same key; known of what ``submit`` gives alone."""

    id: str
    name: str
    state: DocumentState
    document_id: str | None
    media_type: str | None
    byte_count: int | None
    page_count: int | None
    pages: Mapping[str, int]
    routes: Mapping[str, int]
    degraded_pages: int
    cost_centre: str
    priority: int
    outputs: tuple[str, ...]
    metadata: Mapping[str, Any]
    created_at: datetime
    finished_at: datetime | None
    error: Fault | None
    is_replayed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSummary:
    """A page in the list of a document's pages. ``state`` is ``pending``, ``reading``, ``awaiting_vlm``,
    ``transcribing``, ``done`` or ``failed``. What does not apply is None; ``reasons`` and ``degraded`` are as in
    ``docs/output.md``."""

    page_number: int
    state: str
    route: str | None
    escalate: bool | None
    reasons: tuple[Json, ...]
    text_chars: int
    visual_tokens_if_vlm: int | None
    degraded: Json | None
    vlm_calls: int
    prompt_tokens: int
    completion_tokens: int
    elapsed_s: float | None
    error: Fault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChanged:
    """The document has another state."""

    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettled:
    """A page is ``done`` or ``failed``. ``elapsed_s`` is what reading it took, also where it was read before."""

    page_number: int
    state: str
    route: str | None
    attempts: int
    elapsed_s: float | None
    from_earlier_run: bool
    error: Fault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEnded:
    """The last event: nothing more will happen to the document."""

    document: Document


DocumentEvent = DocumentChanged | PageSettled | DocumentEnded


def parsed(make: Callable[[Any], Record], content: object) -> Record:
    """Raises ServerError for an answer that is not what this program knows."""
    try:
        return make(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServerError(
            f"the server answers with something that this program does not know ({error!r}); check that the address is "
            "that of a doctriage server, and that both have the same version",
            status=OK,
        ) from error


def document_of(content: Json) -> Document:
    return Document(
        id=str(content["id"]),
        name=str(content["name"]),
        state=DocumentState(content["state"]),
        document_id=content["document_id"],
        media_type=content["media_type"],
        byte_count=content["byte_count"],
        page_count=content["page_count"],
        pages=dict(content["pages"]),
        routes=dict(content["routes"]),
        degraded_pages=int(content["degraded_pages"]),
        cost_centre=str(content["cost_centre"]),
        priority=int(content["priority"]),
        outputs=tuple(content["outputs"]),
        metadata=dict(content["metadata"]),
        created_at=datetime.fromisoformat(content["created_at"]),
        finished_at=_moment_of(content["finished_at"]),
        error=_fault_of(content["error"]),
    )


def page_summary_of(content: Json) -> PageSummary:
    return PageSummary(
        page_number=int(content["page_number"]),
        state=str(content["state"]),
        route=content["route"],
        escalate=content["escalate"],
        reasons=tuple(content["reasons"] or ()),
        text_chars=int(content["text_chars"] or 0),
        visual_tokens_if_vlm=content["visual_tokens_if_vlm"],
        degraded=content["degraded"],
        vlm_calls=int(content["vlm_calls"] or 0),
        prompt_tokens=int(content["prompt_tokens"] or 0),
        completion_tokens=int(content["completion_tokens"] or 0),
        elapsed_s=content["elapsed_s"],
        error=_fault_of(content["error"]),
    )


def page_settled_of(content: Json) -> PageSettled:
    return PageSettled(
        page_number=int(content["page_number"]),
        state=str(content["state"]),
        route=content["route"],
        attempts=int(content["attempts"] or 0),
        elapsed_s=content["elapsed_s"],
        from_earlier_run=bool(content["from_earlier_run"]),
        error=_fault_of(content["error"]),
    )


def budgets_of(content: Json) -> tuple[BudgetMonth, ...]:
    month = str(content["month"])
    return tuple(_budget_of(one, month) for one in content["budgets"])


def bills_of(content: Json, cost_centre: str) -> tuple[SubmissionBill, ...]:
    """Of a statement, whose amounts without a price are counted and not summed."""
    return tuple(
        SubmissionBill(
            cost_centre=cost_centre,
            currency=str(total["currency"]),
            prompt_tokens=int(total["prompt_tokens"]),
            completion_tokens=int(total["completion_tokens"]),
            cost_micro=0 if total["cost"] is None else money_micro(total["cost"]),
            unpriced_entries=int(total["unpriced_entries"]),
        )
        for total in content["totals"]
    )


def _budget_of(content: Json, month: str) -> BudgetMonth:
    money, tokens = content["money"], content["tokens"]
    return BudgetMonth(
        cost_centre=str(content["cost_centre"]),
        month=month,
        money=None if money is None else _level_of({name: money_micro(money[name]) for name in LEVEL}),
        currency=None if money is None else money["currency"],
        tokens=None if tokens is None else _level_of(tokens),
        warn_percent=int(content["warn_percent"]),
        when_spent=WhenSpent(content["when_spent"]),
    )


LEVEL: Final = ("limit", "spent", "reserved")


def _level_of(amounts: Mapping[str, int]) -> Level:
    return Level(limit=amounts["limit"], spent=amounts["spent"], reserved=amounts["reserved"])


def _fault_of(content: Json | None) -> Fault | None:
    if content is None:
        return None
    return Fault(code=str(content["code"]), message=str(content["message"]))


def _moment_of(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
