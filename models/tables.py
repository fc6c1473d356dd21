"""The rows of the database, SQLite's and PostgreSQL's alike.

A length stands only where values have it by nature: PostgreSQL refuses longer ones, SQLite stores them.

Times are Unix seconds (``…_at_s``). A page is worked on by whoever changed its row from pending to
running, or from awaiting_vlm to transcribing; it stays theirs until it is settled or given back, or its
lease runs out, or its owner is dead.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Dialect,
    Enum,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from models.budget import WhenSpent
from models.pool import DEFAULT_PRIORITY, Queue, SourceState, SubmissionState
from models.text import writable


class PageState(StrEnum):
    """``awaiting_vlm``: read on the CPU, and the VLM is to see it; its result so far is the CPU's."""

    PENDING = "pending"
    RUNNING = "running"
    AWAITING_VLM = "awaiting_vlm"
    TRANSCRIBING = "transcribing"
    DONE = "done"
    FAILED = "failed"


class ReadingState(StrEnum):
    """``complete``: every page is done or failed."""

    OPEN = "open"
    COMPLETE = "complete"


def enum_column(enum: type[StrEnum]) -> Enum:
    return Enum(
        enum,
        native_enum=False,
        length=20,
        values_callable=lambda members: [member.value for member in members],
    )


class Text(TypeDecorator[str]):
    """Text from outside. What a database cannot hold is replaced, so that both hold the same."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else writable(value)


SORTED_TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""In the order of its bytes, as SQLite sorts all text, whatever language the server was set up in."""


class Base(DeclarativeBase):
    type_annotation_map: ClassVar = {str: Text()}
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class DocumentRow(Base):
    """One file's bytes, named by their SHA-256; the bytes themselves are in the blob folder."""

    __tablename__ = "documents"

    document_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    media_type: Mapped[str] = mapped_column(String(80))
    byte_count: Mapped[int] = mapped_column(BigInteger)
    page_count: Mapped[int]
    attachments: Mapped[list[str]] = mapped_column(JSON)
    created_at_s: Mapped[float]


class ReadingRow(Base):
    """One document read with one set of settings; ``fingerprint`` names all that can change the result,
    ``cpu_fingerprint`` all that can change what the CPU reads. ``submission_id`` is the pool's submission that its
    pages are read for, and that pays; the embedded executor names none."""

    __tablename__ = "readings"
    __table_args__ = (
        UniqueConstraint("document_id", "fingerprint"),
        Index(None, "document_id", "cpu_fingerprint"),
        Index(None, "state", "submission_id", "reading_id"),
    )

    reading_id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.document_id"))
    fingerprint: Mapped[str] = mapped_column(String(64))
    cpu_fingerprint: Mapped[str | None] = mapped_column(String(64))
    state: Mapped[ReadingState] = mapped_column(enum_column(ReadingState))
    created_at_s: Mapped[float]
    completed_at_s: Mapped[float | None]
    submission_id: Mapped[int | None]


WAITING: Final = (PageState.PENDING, PageState.AWAITING_VLM)
"""States of a page that somebody is to claim."""

UNSETTLED: Final = (PageState.PENDING, PageState.RUNNING, PageState.AWAITING_VLM, PageState.TRANSCRIBING)


def _index_of_pages(state: PageState) -> Index:
    """Those in that state, in their order: the next one is found as fast in a long document as in a short one."""
    is_in_state = text(f"state = '{state}'")
    return Index(
        f"ix_pages_{state}",
        "reading_id",
        "page_number",
        sqlite_where=is_in_state,
        postgresql_where=is_in_state,
    )


class PageRow(Base):
    """``attempts`` counts those that came to an end on the CPU: its success, its errors and the crashes
    and time-outs charged to it. ``losses`` counts those that ended because their worker in the pool was lost.
    ``degraded_code`` says why a page that needed the VLM has the CPU's text.
    ``settled_at_s`` is when it was last done or failed.
    ``result`` is the page's JSON as it is written out, ``summary`` its row of
    ``pages.jsonl``; they are the last columns, so that SQLite reads the others without them."""

    __tablename__ = "pages"
    __table_args__ = (
        *map(_index_of_pages, UNSETTLED),
        Index(None, "state", "lease_owner"),
        Index(None, "settled_at_s"),
    )

    reading_id: Mapped[int] = mapped_column(ForeignKey("readings.reading_id"), primary_key=True)
    page_number: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[PageState] = mapped_column(enum_column(PageState))
    attempts: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str | None]
    lease_expires_at_s: Mapped[float | None]
    route: Mapped[str | None] = mapped_column(String(20))
    elapsed_s: Mapped[float | None]
    error_code: Mapped[str | None] = mapped_column(String(80))
    error_message: Mapped[str | None]
    degraded_code: Mapped[str | None] = mapped_column(String(80))
    losses: Mapped[int] = mapped_column(default=0, server_default="0")
    settled_at_s: Mapped[float | None]
    summary: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class SubmissionRow(Base):
    """One run: which folder it wrote into, who pays (``cost_centre``), who started it (``submitter``), with which
    settings.

    One that was submitted to the pool has a ``state``. Its ``wishes`` are what the submitter chose, ``is_sealed`` says
    that all its sources are there, ``submitter_seen_at_s`` when its submitter last was. ``sealed_passwords`` are
    encrypted, and gone once it is finished. ``traceparent`` is the W3C trace context that it came with."""

    __tablename__ = "submissions"

    submission_id: Mapped[int] = mapped_column(primary_key=True)
    out_dir: Mapped[str]
    cost_centre: Mapped[str | None]
    submitter: Mapped[str | None]
    fingerprint: Mapped[str] = mapped_column(String(64))
    created_at_s: Mapped[float]
    finished_at_s: Mapped[float | None]
    state: Mapped[SubmissionState | None] = mapped_column(enum_column(SubmissionState), index=True)
    priority: Mapped[int] = mapped_column(default=DEFAULT_PRIORITY, server_default=str(DEFAULT_PRIORITY))
    wishes: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    sealed_passwords: Mapped[str | None]
    is_sealed: Mapped[bool] = mapped_column(default=False, server_default=false())
    submitter_seen_at_s: Mapped[float | None]
    traceparent: Mapped[str | None] = mapped_column(String(55))


class SourceRow(Base):
    """One file a submission named: either a document with its reading, or the error that refused it.

    ``name`` is what it is called in the outputs; ``output_stem`` is their path below ``out_dir`` without the
    format's suffix (the same as ``name`` unless that is too long for a file name).

    One that was submitted to the pool has a ``state``, and a lease while it is taken in or its outputs are written;
    ``losses`` counts workers lost over it. ``blob_id`` is the SHA-256 of its bytes. ``taken_in_at_s`` is when it got
    its reading, ``settled_at_s`` when nothing more was to be done for it; ``failed_pages`` are missing in its outputs.
    """

    __tablename__ = "sources"
    __table_args__ = (
        UniqueConstraint("submission_id", "name"),
        Index(None, "state", "submission_id", "source_id"),
    )

    source_id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.submission_id"))
    name: Mapped[str] = mapped_column(SORTED_TEXT, index=True)
    output_stem: Mapped[str]
    reading_id: Mapped[int | None] = mapped_column(ForeignKey("readings.reading_id"), index=True)
    error_code: Mapped[str | None] = mapped_column(String(80))
    error_message: Mapped[str | None]
    written_at_s: Mapped[float | None]
    state: Mapped[SourceState | None] = mapped_column(enum_column(SourceState))
    blob_id: Mapped[str | None] = mapped_column(String(64))
    byte_count: Mapped[int | None] = mapped_column(BigInteger)
    lease_owner: Mapped[str | None]
    lease_expires_at_s: Mapped[float | None]
    losses: Mapped[int] = mapped_column(default=0, server_default="0")
    taken_in_at_s: Mapped[float | None]
    settled_at_s: Mapped[float | None]
    failed_pages: Mapped[int | None]


class LaneRow(Base):
    """How much of a queue's service a cost centre has had, in pages divided by its weight: the one that has had least
    is served next. The lane without a name is the queue's clock: where the lane that was served last stood before. A
    lane that is behind it had nothing to be served, and starts from there."""

    __tablename__ = "lanes"

    stage: Mapped[Queue] = mapped_column(enum_column(Queue), primary_key=True)
    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT, primary_key=True)
    passed: Mapped[float]


class TurnRow(Base):
    """When a submission was served last in a queue, in nanoseconds: of a cost centre's submissions, the one that has
    waited longest is served next."""

    __tablename__ = "turns"

    stage: Mapped[Queue] = mapped_column(enum_column(Queue), primary_key=True)
    submission_id: Mapped[int] = mapped_column(
        ForeignKey("submissions.submission_id", ondelete="CASCADE"), primary_key=True
    )
    served_at_ns: Mapped[int] = mapped_column(BigInteger)


class VlmSlotRow(Base):
    """A place for one call in flight to a VLM service, shared by all workers that call it."""

    __tablename__ = "vlm_slots"

    service: Mapped[str] = mapped_column(String(200), primary_key=True)
    slot: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str | None]
    expires_at_s: Mapped[float | None]


class WatchedFileRow(Base):
    """A file of a watched folder as it was when it was read last, and what came of it."""

    __tablename__ = "watched_files"

    folder: Mapped[str] = mapped_column(SORTED_TEXT, primary_key=True)
    name: Mapped[str] = mapped_column(SORTED_TEXT, primary_key=True)
    byte_count: Mapped[int] = mapped_column(BigInteger)
    mtime_ns: Mapped[int] = mapped_column(BigInteger)
    outcome: Mapped[str] = mapped_column(String(20))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.submission_id"))
    seen_at_s: Mapped[float]


class VlmAttemptRow(Base):
    """One call to the VLM about one page, written before the call and closed with what came of it; an open one
    (no ``verdict``) whose page is not being transcribed was abandoned by its process. ``usage_is_estimated``:
    the server did not say what it billed.

    An open call is also the reservation of what it may cost at most, in the budgets of ``cost_centre`` for ``month``
    (UTC, ``2026-11``). The database refuses to change or delete a closed one; its ``evidence`` and ``message``, where
    words of the page may be, may be erased."""

    __tablename__ = "vlm_attempts"
    __table_args__ = (
        ForeignKeyConstraint(["reading_id", "page_number"], ["pages.reading_id", "pages.page_number"]),
        UniqueConstraint("reading_id", "page_number", "attempt"),
    )

    vlm_attempt_id: Mapped[int] = mapped_column(primary_key=True)
    reading_id: Mapped[int]
    page_number: Mapped[int]
    attempt: Mapped[int]
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.submission_id"))
    request_id: Mapped[str]
    model_id: Mapped[str]
    tier: Mapped[str]
    width_px: Mapped[int]
    height_px: Mapped[int]
    predicted_visual_tokens: Mapped[int]
    temperature: Mapped[float]
    started_at_s: Mapped[float]
    verdict: Mapped[str | None] = mapped_column(String(40), index=True)
    evidence: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    message: Mapped[str | None]
    prompt_tokens: Mapped[int | None]
    cached_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    reasoning_tokens: Mapped[int | None]
    usage_is_estimated: Mapped[bool | None]
    elapsed_s: Mapped[float | None]
    cost_centre: Mapped[str | None]
    month: Mapped[str | None] = mapped_column(String(7))
    predicted_prompt_tokens: Mapped[int | None]
    reserved_tokens: Mapped[int | None]
    reserved_micro: Mapped[int | None] = mapped_column(BigInteger)


class LedgerKind(StrEnum):
    CPU_PAGE = "cpu_page"
    """An attempt to read a page on the CPU."""
    VLM_CALL = "vlm_call"
    """An attempt to have the VLM transcribe it."""
    CACHE_HIT = "cache_hit"
    """Pages of one document that a run took as an earlier one had finished them, for nothing."""
    REVERSAL = "reversal"
    """Another entry, taken back: its numbers with the opposite sign."""


ENTRY_ID = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up by itself in an INTEGER alone."""


class LedgerRow(Base):
    """One entry of the ledger, with all that a bill says of it. Entries are only ever added: the database refuses to
    change or delete one, and a correction is a ``reversal`` (of ``reverses_entry_id``) and a new entry.

    ``entry_key`` names the attempt, so that none is booked twice. ``day`` is that of ``booked_at_s`` in UTC,
    ``2026-11-30``. ``cost_centre`` is a team, or ``team/project``. ``reason`` is the first one that triage had for the
    VLM. ``is_wasted``: nothing of the attempt is in the page's text.

    ``pages``, ``vlm_pages`` and ``cached_pages`` are summed for bills: 1 where the entry finished the page's reading on
    the CPU, where it gave the page the VLM's text, and the number of pages taken from an earlier run. ``cpu_pages`` is
    1 for each attempt on the CPU, which is what its price is for.

    Tokens are whole, and 0 where there are none or the server does not tell them apart: cached ones are part of the
    prompt's, reasoning ones of the completion's. ``predicted_prompt_tokens`` are those expected of the call, text and
    all. ``avoided_tokens`` and ``avoided_micro`` are what the VLM would have cost for a page that triage kept from it.

    Prices are micro-units of ``currency`` for a million, as ``price_book_version`` had them; None: it had none. Costs
    are whole micro-units, None where a price was missing.

    ``ix_ledger_statement`` begins with what statements group by and goes on with what they sum: in its order they are
    summed without looking at an entry, and what other months hold costs nothing.
    """

    __tablename__ = "ledger"
    __table_args__ = (
        Index(
            "ix_ledger_statement",
            *("day", "team", "cost_centre", "currency", "kind", "model_id", "reason"),
            *("is_forced", "is_wasted", "usage_is_estimated"),
            *("pages", "vlm_pages", "cached_pages", "cpu_pages", "cpu_s"),
            *("predicted_prompt_tokens", "prompt_tokens", "cached_tokens"),
            *("completion_tokens", "reasoning_tokens", "avoided_tokens"),
            *("cost_micro", "avoided_micro"),
        ),
        Index(None, "document_id", "page_number"),
    )

    entry_id: Mapped[int] = mapped_column(ENTRY_ID, primary_key=True)
    entry_key: Mapped[str] = mapped_column(String(160), unique=True)
    kind: Mapped[LedgerKind] = mapped_column(enum_column(LedgerKind))
    booked_at_s: Mapped[float]
    day: Mapped[str] = mapped_column(String(10))
    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT)
    team: Mapped[str] = mapped_column(SORTED_TEXT)
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.submission_id"))
    submitter: Mapped[str | None]
    document_id: Mapped[str] = mapped_column(String(64))
    reading_id: Mapped[int]
    page_number: Mapped[int | None]
    attempt: Mapped[int | None]
    model_id: Mapped[str | None]
    route: Mapped[str | None] = mapped_column(String(20))
    outcome: Mapped[str] = mapped_column(String(80))
    reason: Mapped[str | None] = mapped_column(String(80))
    is_forced: Mapped[bool]
    is_audit: Mapped[bool]
    is_wasted: Mapped[bool]
    pages: Mapped[int] = mapped_column(default=0)
    vlm_pages: Mapped[int] = mapped_column(default=0)
    cached_pages: Mapped[int] = mapped_column(default=0)
    cpu_pages: Mapped[int] = mapped_column(default=0)
    predicted_visual_tokens: Mapped[int] = mapped_column(default=0)
    predicted_prompt_tokens: Mapped[int] = mapped_column(default=0)
    prompt_tokens: Mapped[int] = mapped_column(default=0)
    cached_tokens: Mapped[int] = mapped_column(default=0)
    completion_tokens: Mapped[int] = mapped_column(default=0)
    reasoning_tokens: Mapped[int] = mapped_column(default=0)
    usage_is_estimated: Mapped[bool] = mapped_column(default=False)
    cpu_s: Mapped[float | None]
    avoided_tokens: Mapped[int] = mapped_column(default=0)
    currency: Mapped[str] = mapped_column(String(3))
    price_book_version: Mapped[str]
    prompt_price_micro: Mapped[int | None] = mapped_column(BigInteger)
    cached_price_micro: Mapped[int | None] = mapped_column(BigInteger)
    completion_price_micro: Mapped[int | None] = mapped_column(BigInteger)
    cpu_page_price_micro: Mapped[int | None] = mapped_column(BigInteger)
    cost_micro: Mapped[int | None] = mapped_column(BigInteger)
    avoided_micro: Mapped[int | None] = mapped_column(BigInteger)
    reverses_entry_id: Mapped[int | None] = mapped_column(ForeignKey("ledger.entry_id"), unique=True)


class BudgetRow(Base):
    """What a cost centre may spend on the VLM in a calendar month (UTC), in micro-units of ``currency``, in tokens, or
    both; None is no limit. A team's budget holds for all its projects together."""

    __tablename__ = "budgets"

    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT, primary_key=True)
    limit_micro: Mapped[int | None] = mapped_column(BigInteger)
    currency: Mapped[str | None] = mapped_column(String(3))
    limit_tokens: Mapped[int | None] = mapped_column(BigInteger)
    warn_percent: Mapped[int]
    when_spent: Mapped[WhenSpent] = mapped_column(enum_column(WhenSpent))
    updated_at_s: Mapped[float]


class BudgetMonthRow(Base):
    """Where a budget stands in one month. The limits are copied from the budget, so that one conditional UPDATE of one
    row reserves: ``spent + reserved`` never exceeds them."""

    __tablename__ = "budget_months"

    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT, primary_key=True)
    month: Mapped[str] = mapped_column(String(7), primary_key=True)
    limit_micro: Mapped[int | None] = mapped_column(BigInteger)
    limit_tokens: Mapped[int | None] = mapped_column(BigInteger)
    reserved_micro: Mapped[int] = mapped_column(BigInteger, default=0)
    reserved_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_micro: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_tokens: Mapped[int] = mapped_column(BigInteger, default=0)
