"""The JSON that the API answers with, as types: what makes an answer is checked against them, and the published schema
is drawn from them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from models.api_tables import CallbackState
from models.budget import WhenSpent
from models.document_state import DocumentState
from models.page import Route
from models.tables import LedgerKind
from pipeline.chargeback.statement_lines import StatementBy

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
UPLOAD_ID: Final = "^[0-9a-f]{32}$"
UploadId = Annotated[str, Field(pattern=UPLOAD_ID)]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
MONTH: Final = "^[0-9]{4}-(0[1-9]|1[0-2])$"
Month = Annotated[str, Field(pattern=MONTH)]
Amount = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="Exact, as text.")]
Count = Annotated[int, Field(ge=0)]
PageNumber = Annotated[int, Field(ge=1)]
Priority = Annotated[int, Field(ge=0, le=9)]
PageStateName = Literal["pending", "reading", "awaiting_vlm", "transcribing", "done", "failed"]


class Fault(TypedDict):
    """Why something failed: a stable code, and what to do."""

    code: str
    message: str


class FieldFault(TypedDict):
    field: str
    message: str


class Problem(TypedDict):
    """RFC 9457. ``code`` is stable, ``advice`` says what to do, ``errors`` names the fields that are wrong."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    advice: str
    errors: NotRequired[list[FieldFault]]


class PagesByState(TypedDict):
    pending: Count
    reading: Count
    awaiting_vlm: Count
    transcribing: Count
    done: Count
    failed: Count


class DocumentLinks(TypedDict):
    self: str
    result: str
    pages: str
    events: str
    cost: str


class Document(TypedDict):
    """``id`` is its address, ``document_id`` the SHA-256 of its bytes. ``error`` is that of one that failed."""

    id: UploadId
    name: str
    state: DocumentState
    document_id: Sha256 | None
    media_type: str | None
    byte_count: Count | None
    page_count: Count | None
    pages: PagesByState
    routes: dict[Route, Count]
    degraded_pages: Count
    cost_centre: str
    priority: Priority
    outputs: list[str]
    metadata: dict[str, Any]
    created_at: Moment
    finished_at: Moment | None
    error: Fault | None
    links: DocumentLinks


class DocumentList(TypedDict):
    documents: list[Document]
    next_cursor: str | None


class Reason(TypedDict):
    """A signal that speaks for the VLM."""

    signal: str
    measured: float
    threshold: float


class PageSummary(TypedDict):
    """What follows ``route`` is null for a page that was not read yet."""

    page_number: PageNumber
    state: PageStateName
    route: Route | None
    escalate: bool | None
    reasons: list[Reason] | None
    text_chars: Count | None
    visual_tokens_if_vlm: Count | None
    degraded: Fault | None
    vlm_calls: Count | None
    prompt_tokens: Count | None
    completion_tokens: Count | None
    elapsed_s: float | None
    error: Fault | None


class PageList(TypedDict):
    pages: list[PageSummary]
    next_after: PageNumber | None


class Booked(TypedDict):
    """An entry of the ledger. ``cost`` is null where there is no price."""

    entry_id: int
    kind: LedgerKind
    booked_at: Moment
    cost_centre: str
    model_id: str | None
    outcome: str
    prompt_tokens: int
    completion_tokens: int
    cpu_s: float | None
    cost: Amount | None
    currency: str


class UnreadPage(TypedDict):
    """A page that is not done, or failed."""

    page_number: PageNumber
    state: PageStateName
    route: None
    attempts: Annotated[list[Any], Field(max_length=0)]
    error: Fault | None
    booked: list[Booked]


class PageEvent(TypedDict):
    """The ``data`` of an event ``page``."""

    page_number: PageNumber
    state: Literal["done", "failed"]
    route: Route | None
    attempts: Count | None
    elapsed_s: float | None
    from_earlier_run: bool
    error: Fault | None


class Callback(TypedDict):
    id: str
    event: str
    url: str
    state: CallbackState
    attempts: Count
    next_attempt_at: Moment | None
    last_status: int | None
    last_error: str | None
    created_at: Moment
    delivered_at: Moment | None


class CallbackList(TypedDict):
    callbacks: list[Callback]


class Said(TypedDict):
    needs_vlm: bool


class PageToReview(TypedDict):
    """``id`` is the document's. ``review`` is what the caller said, null before."""

    id: UploadId
    page_number: PageNumber
    name: str
    cost_centre: str
    route: Route
    escalate: bool | None
    reasons: list[Reason] | None
    degraded: Fault | None
    review: Said | None


class ReviewProgress(TypedDict):
    pages: Count
    reviewed: Count


class PagesToReview(TypedDict):
    pages: list[PageToReview]
    next_cursor: str | None
    progress: ReviewProgress | None


class Review(TypedDict):
    reviewer: str
    needs_vlm: bool
    classes: list[str]
    remark: str | None
    reviewed_at: Moment


class PageReviews(TypedDict):
    """The caller's own, and those of others."""

    review: Review | None
    others: list[Review]


class Bill(TypedDict):
    """Amounts are null where something in them has no price."""

    pages: int
    vlm_pages: int
    cached_pages: int
    cpu_attempts: int
    vlm_calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    unpriced_entries: int
    avoided_tokens: int
    wasted_attempts: int
    wasted_tokens: int
    predicted_prompt_tokens: int
    billed_prompt_tokens: int
    cpu_s: float
    cost: Amount | None
    avoided_cost: Amount | None
    wasted_cost: Amount | None


class StatementLine(Bill):
    """A line has the keys that it is told by: one, or a document's id and name."""

    cost_centre: NotRequired[str | None]
    team: NotRequired[str | None]
    project: NotRequired[str | None]
    document_id: NotRequired[Sha256 | None]
    document: NotRequired[str | None]
    model: NotRequired[str | None]
    reason: NotRequired[str | None]
    day: NotRequired[Day | None]
    currency: str
    is_forced_vlm: bool


class StatementTotal(Bill):
    currency: str
    forced_vlm: Bill | None
    forced_share: float | None
    prediction_error: float | None


class Unpriced(TypedDict):
    model: str | None
    entries: int


class OpenCalls(TypedDict):
    calls: Count
    reserved_tokens: Count


Statement = TypedDict(
    "Statement",
    {
        "schema_version": Literal[1],
        "from": Day,
        "to": Day,
        "by": StatementBy,
        "lines": list[StatementLine],
        "totals": list[StatementTotal],
        "unpriced": list[Unpriced],
        "open_calls": OpenCalls,
    },
)


class MoneyLevel(TypedDict):
    currency: str | None
    limit: Amount
    spent: Amount
    reserved: Amount
    left: Amount


class TokenLevel(TypedDict):
    limit: int
    spent: int
    reserved: int
    left: int


class Budget(TypedDict):
    cost_centre: str
    money: MoneyLevel | None
    tokens: TokenLevel | None
    warn_percent: int
    when_spent: WhenSpent
    is_warned_of: bool


class BudgetList(TypedDict):
    month: Month
    budgets: list[Budget]


class Tier(TypedDict):
    """A size that pages are sent in."""

    name: str
    visual_tokens: int
    max_pixels: int


class ConfiguredModel(TypedDict):
    is_configured: bool
    model_id: str
    profile: str
    concurrency: int
    tiers: list[Tier]
    max_output_tokens: int


class Profile(TypedDict):
    name: str
    hub_name: str
    family: str
    context_tokens: int


class ModelList(TypedDict):
    configured: ConfiguredModel
    profiles: list[Profile]


class Caller(TypedDict):
    name: str
    cost_centre: str
    scopes: list[Literal["admin", "read", "submit"]]
    is_admin: bool
    max_priority: Priority


class Health(TypedDict):
    status: Literal["ok"]


class Readiness(TypedDict):
    """``checks`` by part: ``ok``, or what is wrong with it."""

    status: Literal["ready", "not ready"]
    checks: dict[str, str]
