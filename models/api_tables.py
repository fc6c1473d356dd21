"""The rows that the API keeps, beside those of ``models.tables``, whose rules hold here too."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, ForeignKey, ForeignKeyConstraint, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.pool import HIGHEST_PRIORITY
from models.tables import SORTED_TEXT, Base, enum_column


class ApiKeyRow(Base):
    """Whoever shows the secret whose SHA-256 this is acts for ``cost_centre``, as far as ``scopes`` go (words with a
    blank between, of ``submit``, ``read`` and ``admin``). ``prefix`` is the part of the key that is shown and looked
    up; the secret itself is kept nowhere. ``requests_per_min`` and ``max_open_documents`` are None where the
    deployment's own limits hold. ``max_priority`` is the highest priority that it may name."""

    __tablename__ = "api_keys"

    key_id: Mapped[int] = mapped_column(primary_key=True)
    prefix: Mapped[str] = mapped_column(String(16), unique=True)
    secret_sha256: Mapped[str] = mapped_column(String(64))
    name: Mapped[str]
    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT, index=True)
    scopes: Mapped[str] = mapped_column(String(40))
    requests_per_min: Mapped[int | None]
    max_open_documents: Mapped[int | None]
    max_priority: Mapped[int] = mapped_column(server_default=str(HIGHEST_PRIORITY))
    created_at_s: Mapped[float]
    expires_at_s: Mapped[float | None]
    revoked_at_s: Mapped[float | None]
    last_used_at_s: Mapped[float | None]


class UploadRow(Base):
    """A document that came through the API: a submission with one source. ``upload_id`` is what its address ends with,
    and cannot be guessed. ``request_sha256`` is that of all that was sent with the ``idempotency_key``, by which a
    request that comes again is known. ``details`` are the sender's own words about it, given back as they came. Nothing
    of the document but this row is left after ``erased_at_s``."""

    __tablename__ = "uploads"
    __table_args__ = (
        UniqueConstraint("cost_centre", "idempotency_key"),
        Index(None, "cost_centre", "created_at_s", "upload_id"),
    )

    upload_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.submission_id"), unique=True)
    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT)
    key_id: Mapped[int | None] = mapped_column(ForeignKey("api_keys.key_id"))
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    request_sha256: Mapped[str | None] = mapped_column(String(64))
    details: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    callback_url: Mapped[str | None]
    created_at_s: Mapped[float] = mapped_column(index=True)
    erased_at_s: Mapped[float | None]


class ArrivingBlobRow(Base):
    """Bytes that ``owner`` is about to give their name in the blob store. The row goes with the transaction that enters
    a source for them; one whose owner is dead tells that nobody may have."""

    __tablename__ = "arriving_blobs"

    arriving_blob_id: Mapped[int] = mapped_column(primary_key=True)
    blob_id: Mapped[str] = mapped_column(String(64), index=True)
    owner: Mapped[str]
    noted_at_s: Mapped[float]


class CallbackState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class CallbackRow(Base):
    """A message about an upload to the address that its sender named, and what came of it so far. ``message_id`` is
    that of every attempt, so that a receiver knows one that comes again."""

    __tablename__ = "callbacks"
    __table_args__ = (
        UniqueConstraint("upload_id", "event"),
        Index(None, "state", "next_attempt_at_s"),
    )

    callback_id: Mapped[int] = mapped_column(primary_key=True)
    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.upload_id"))
    message_id: Mapped[str] = mapped_column(String(64), unique=True)
    event: Mapped[str] = mapped_column(String(40))
    url: Mapped[str]
    state: Mapped[CallbackState] = mapped_column(enum_column(CallbackState))
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at_s: Mapped[float]
    last_status: Mapped[int | None]
    last_error: Mapped[str | None]
    created_at_s: Mapped[float]
    delivered_at_s: Mapped[float | None]


class ReviewRow(Base):
    """What a person said of a page: whether it needs the VLM, and of what classes it is, as the labels of a corpus say
    it."""

    __tablename__ = "reviews"
    __table_args__ = (
        ForeignKeyConstraint(["reading_id", "page_number"], ["pages.reading_id", "pages.page_number"]),
        UniqueConstraint("reading_id", "page_number", "reviewer"),
    )

    review_id: Mapped[int] = mapped_column(primary_key=True)
    reading_id: Mapped[int]
    page_number: Mapped[int]
    cost_centre: Mapped[str] = mapped_column(SORTED_TEXT, index=True)
    reviewer: Mapped[str]
    needs_vlm: Mapped[bool]
    classes: Mapped[list[str]] = mapped_column(JSON)
    remark: Mapped[str | None]
    reviewed_at_s: Mapped[float]
