"""Keys of the API. What is kept of a secret is its SHA-256: it is random, so nobody can guess what has that sum."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from models.api_tables import ApiKeyRow, UploadRow
from models.errors import ApiKeyNotFound, TooManyOpenDocuments
from models.pool import DEFAULT_PRIORITY, SubmissionState
from models.tables import SubmissionRow
from pipeline.store.database import Database, rows_changed

USE_NOTED_EVERY_S: Final = 60.0
QUOTA_RETRY_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyTerms:
    """For whom a key acts, how far, and until when; None is no end, and the deployment's own limits. ``max_priority``
    is the highest that it may name."""

    name: str
    cost_centre: str
    scopes: tuple[str, ...]
    requests_per_min: int | None = None
    max_open_documents: int | None = None
    max_priority: int = DEFAULT_PRIORITY
    expires_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """``prefix`` is the part of the key that is shown."""

    key_id: int
    prefix: str
    secret_sha256: str = field(repr=False)
    terms: ApiKeyTerms
    created_at_s: float
    revoked_at_s: float | None
    last_used_at_s: float | None

    def holds_at(self, now_s: float) -> bool:
        expires_at_s = self.terms.expires_at_s
        return self.revoked_at_s is None and (expires_at_s is None or now_s < expires_at_s)


class ApiKeyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, terms: ApiKeyTerms, *, prefix: str, secret_sha256: str) -> int:
        with self._database.write() as session:
            return _add(session, terms, prefix, secret_sha256, time.time())

    def find(self, prefix: str) -> ApiKeyRecord | None:
        """Also one that does not hold any more."""
        with self._database.read() as session:
            row = session.scalar(select(ApiKeyRow).where(ApiKeyRow.prefix == prefix))
            return None if row is None else _record(row)

    def keys(self) -> tuple[ApiKeyRecord, ...]:
        """All there ever were, by cost centre, name and age."""
        order = (ApiKeyRow.cost_centre, ApiKeyRow.name, ApiKeyRow.key_id)
        with self._database.read() as session:
            return tuple(map(_record, session.scalars(select(ApiKeyRow).order_by(*order))))

    def revoke(self, prefix: str) -> ApiKeyRecord:
        """From now on. Raises ``ApiKeyNotFound`` where none of that prefix holds."""
        now_s = time.time()
        with self._database.write() as session:
            row = _held(session, prefix, now_s)
            row.revoked_at_s = now_s
            return _record(row)

    def replace(self, old_prefix: str, *, prefix: str, secret_sha256: str, grace_s: float) -> ApiKeyRecord:
        """A new key on the terms of the old one, which ends after ``grace_s``; the new one. One that was to hold for so
        long holds for as long again. Raises ``ApiKeyNotFound`` where none of the old prefix holds."""
        now_s = time.time()
        with self._database.write() as session:
            old = _held(session, old_prefix, now_s)
            ends_at_s = now_s + grace_s
            terms = _terms(old, expires_at_s=_as_long_again(old, now_s))
            old.expires_at_s = ends_at_s if old.expires_at_s is None else min(old.expires_at_s, ends_at_s)
            key_id = _add(session, terms, prefix, secret_sha256, now_s)
            return _record(session.get_one(ApiKeyRow, key_id))

    def note_use(self, key: ApiKeyRecord) -> None:
        """Writes at most once in ``USE_NOTED_EVERY_S``."""
        now_s = time.time()
        before_s = now_s - USE_NOTED_EVERY_S
        if key.last_used_at_s is not None and key.last_used_at_s > before_s:
            return
        is_due = or_(ApiKeyRow.last_used_at_s.is_(None), ApiKeyRow.last_used_at_s <= before_s)
        noted = update(ApiKeyRow).where(ApiKeyRow.key_id == key.key_id, is_due).values(last_used_at_s=now_s)
        with self._database.write() as session:
            rows_changed(session, noted)

    def require_room(self, *, key_id: int | None, cost_centre: str, max_open_documents: int) -> None:
        """Raises ``TooManyOpenDocuments`` where as many documents as may are being read."""
        with self._database.read() as session:
            _refuse_beyond(session, key_id, cost_centre, max_open_documents)


def refuse_beyond_quota(
    session: Session, *, key_id: int | None, cost_centre: str, max_open_documents: int
) -> None:
    """For the transaction that takes a document on: others of the same key wait for its end, so that together they take
    no more. Those who come without a key are counted by cost centre. Raises ``TooManyOpenDocuments``."""
    session.execute(
        select(ApiKeyRow.key_id).where(ApiKeyRow.key_id == key_id).with_for_update(key_share=True)
    )
    _refuse_beyond(session, key_id, cost_centre, max_open_documents)


def _refuse_beyond(session: Session, key_id: int | None, cost_centre: str, max_open_documents: int) -> None:
    query = (
        select(func.count())
        .select_from(UploadRow)
        .join(SubmissionRow, SubmissionRow.submission_id == UploadRow.submission_id)
        .where(SubmissionRow.state == SubmissionState.OPEN, _is_of(key_id, cost_centre))
    )
    open_documents = session.scalar(query) or 0
    if open_documents >= max_open_documents:
        raise TooManyOpenDocuments(
            f"{open_documents:,} of your documents are being read, and at most {max_open_documents:,} may be; "
            f"wait until some are finished, or cancel some, and try again in {QUOTA_RETRY_S} s",
            retry_after_s=QUOTA_RETRY_S,
        )


def _is_of(key_id: int | None, cost_centre: str) -> ColumnElement[bool]:
    if key_id is None:
        return and_(UploadRow.key_id.is_(None), UploadRow.cost_centre == cost_centre)
    return UploadRow.key_id == key_id


def _add(session: Session, terms: ApiKeyTerms, prefix: str, secret_sha256: str, now_s: float) -> int:
    row = ApiKeyRow(
        prefix=prefix,
        secret_sha256=secret_sha256,
        name=terms.name,
        cost_centre=terms.cost_centre,
        scopes=" ".join(terms.scopes),
        requests_per_min=terms.requests_per_min,
        max_open_documents=terms.max_open_documents,
        max_priority=terms.max_priority,
        created_at_s=now_s,
        expires_at_s=terms.expires_at_s,
    )
    session.add(row)
    session.flush()
    return row.key_id


def _held(session: Session, prefix: str, now_s: float) -> ApiKeyRow:
    row = session.scalar(select(ApiKeyRow).where(ApiKeyRow.prefix == prefix).with_for_update())
    if row is None or not _record(row).holds_at(now_s):
        raise ApiKeyNotFound(
            f"{prefix}: no key that holds has this prefix; `doctriage keys list` shows those there are"
        )
    return row


def _as_long_again(row: ApiKeyRow, now_s: float) -> float | None:
    return None if row.expires_at_s is None else now_s + row.expires_at_s - row.created_at_s


def _record(row: ApiKeyRow) -> ApiKeyRecord:
    return ApiKeyRecord(
        key_id=row.key_id,
        prefix=row.prefix,
        secret_sha256=row.secret_sha256,
        terms=_terms(row, expires_at_s=row.expires_at_s),
        created_at_s=row.created_at_s,
        revoked_at_s=row.revoked_at_s,
        last_used_at_s=row.last_used_at_s,
    )


def _terms(row: ApiKeyRow, *, expires_at_s: float | None) -> ApiKeyTerms:
    return ApiKeyTerms(
        name=row.name,
        cost_centre=row.cost_centre,
        scopes=tuple(row.scopes.split()),
        requests_per_min=row.requests_per_min,
        max_open_documents=row.max_open_documents,
        max_priority=row.max_priority,
        expires_at_s=expires_at_s,
    )
