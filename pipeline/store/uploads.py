"""Documents that come through the API: each is entered in one transaction, with its submission and its source.

Their bytes get their name in the blob store before that. ``arriving_blobs`` tells whose bytes those are until then, so
that what is left by a server that was killed in between is found and erased. Whoever notes bytes and whoever erases
them hold the same lock (``lock_bytes``): bytes that arrive again at that moment come after, and stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from models.api_tables import ArrivingBlobRow, UploadRow
from models.errors import IdempotencyKeyReused
from pipeline.store.api_keys import refuse_beyond_quota
from pipeline.store.database import Database, insert_missing
from pipeline.store.pool_bounds import WaitingRoom
from pipeline.store.pool_records import PoolLimits
from pipeline.store.purge import purge_in, refuse_in_use
from pipeline.store.purge_statements import erase_source_alone, forget_uploads
from pipeline.store.upload_pages import UploadPages
from pipeline.store.upload_records import Accepted, NewUpload, UploadFilter, UploadPlace, UploadRecord
from pipeline.store.upload_statements import (
    add_submission,
    arriving,
    conditions,
    has_other_sources,
    lock_bytes,
    records_query,
    upload_columns,
    with_pages,
)

Erase = Callable[[str], object]
"""Takes the bytes of that name out of the blob store; nothing happens where there are none."""


class UploadStore(UploadPages):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._room = WaitingRoom()

    def require_room(self, limits: PoolLimits, cost_centre: str | None) -> None:
        """Before anything is sent; None where the document may be of any team. Raises PoolBusy."""
        with self._database.read() as session:
            self._room.refuse_beyond(session, limits, cost_centre)

    def note_arriving(self, blob_id: str, owner: str) -> int:
        """``owner`` is about to give these bytes their name; the number of the note. Waits while the same bytes are
        being erased."""
        row = ArrivingBlobRow(blob_id=blob_id, owner=owner, noted_at_s=time.time())
        with self._database.write() as session:
            lock_bytes(session, blob_id)
            session.add(row)
            session.flush()
            return row.arriving_blob_id

    def accept(self, new: NewUpload, *, arriving_blob_id: int, limits: PoolLimits) -> Accepted:
        """Enter it whole: whoever sees it sees its submission, sealed, and its source, and the note about its bytes is
        gone. A request that came before, by its idempotency key, gives the upload that it made, also when both come at
        once, and the note stays for ``forget_arriving``. Raises PoolBusy, TooManyOpenDocuments and
        IdempotencyKeyReused."""
        try:
            with self._database.write() as session:
                return _earlier(session, new) or self._entered(session, new, arriving_blob_id, limits)
        except _CameSecond:
            with self._database.read() as session:
                earlier = _earlier(session, new)
            assert earlier is not None
            return earlier

    def same_request(
        self, cost_centre: str, idempotency_key: str | None, request_sha256: str | None
    ) -> Accepted | None:
        """The upload that this request made when it came before. Raises IdempotencyKeyReused where another request
        came with the key."""
        with self._database.read() as session:
            return _made_by(session, cost_centre, idempotency_key, request_sha256)

    def forget_arriving(self, arriving_blob_id: int, erase: Erase) -> None:
        """The bytes were not accepted: they go, unless they are somebody else's too."""
        with self._database.write() as session:
            row = session.get(ArrivingBlobRow, arriving_blob_id)
            if row is None:
                return
            blob_id = row.blob_id
            lock_bytes(session, blob_id)
            session.delete(row)
            session.flush()
            _erase_unnamed(session, blob_id, erase)

    def erase_orphans(
        self, is_alive: Callable[[str], bool], erase: Erase, *, older_than_s: float, limit: int = 100
    ) -> int:
        """Erase bytes which nobody entered a source for, and whose owner is dead, or noted them longer ago than that:
        nothing is known of another machine's processes. Of how many notes."""
        is_gone = _Gone(is_alive, time.time() - older_than_s)
        with self._database.read() as session:
            notes = session.execute(select(ArrivingBlobRow).order_by(ArrivingBlobRow.noted_at_s)).scalars()
            blob_ids = dict.fromkeys(note.blob_id for note in notes if is_gone(note.owner, note.noted_at_s))
        return sum(self._erase_of_gone(blob_id, is_gone, erase) for blob_id in [*blob_ids][:limit])

    def find(self, upload_id: str) -> UploadRecord | None:
        """Also one that was erased."""
        with self._database.read() as session:
            rows = session.execute(records_query().where(UploadRow.upload_id == upload_id)).all()
            found = with_pages(session, rows)
            return found[0] if found else None

    def list(
        self, wanted: UploadFilter, *, limit: int, after: UploadPlace | None = None
    ) -> Sequence[UploadRecord]:
        """The newest first, without those that were erased."""
        query = (
            records_query()
            .where(*conditions(wanted, after))
            .order_by(UploadRow.created_at_s.desc(), UploadRow.upload_id.desc())
            .limit(limit)
        )
        with self._database.read() as session:
            return with_pages(session, session.execute(query).all())

    def erase(self, upload_id: str, is_alive: Callable[[str], bool], erase: Erase) -> None:
        """Erase the document of an upload that is over; of the upload its row stays, without the sender's words. What
        others have brought too, bytes and pages, stays theirs. Raises DocumentInUse."""
        record = self.find(upload_id)
        if record is None or record.erased_at_s is not None:
            return
        document_id = record.document_id or record.blob_id
        with self._database.write() as session:
            if document_id is not None:
                lock_bytes(session, document_id)
                _erase_document(session, record, document_id, is_alive, erase)
            forget_uploads(session, UploadRow.upload_id == upload_id)

    def _entered(
        self, session: Session, new: NewUpload, arriving_blob_id: int, limits: PoolLimits
    ) -> Accepted:
        """Whoever enters the same key at the same time is waited for. Raises ``_CameSecond`` where that one was
        entered, and nothing of this may stay."""
        if new.max_open_documents is not None:
            refuse_beyond_quota(
                session,
                key_id=new.key_id,
                cost_centre=new.cost_centre,
                max_open_documents=new.max_open_documents,
            )
        self._room.refuse_beyond(session, limits, new.cost_centre)
        submission_id = add_submission(session, new)
        insert_missing(session, UploadRow, [upload_columns(new, submission_id)])
        if session.get(UploadRow, new.upload_id) is None:
            raise _CameSecond
        session.execute(delete(ArrivingBlobRow).where(ArrivingBlobRow.arriving_blob_id == arriving_blob_id))
        return Accepted(upload_id=new.upload_id, is_new=True)

    def _erase_of_gone(self, blob_id: str, is_gone: _Gone, erase: Erase) -> int:
        with self._database.write() as session:
            lock_bytes(session, blob_id)
            notes, _ = arriving(session, blob_id)
            left = [note.arriving_blob_id for note in notes if is_gone(note.owner, note.noted_at_s)]
            session.execute(delete(ArrivingBlobRow).where(ArrivingBlobRow.arriving_blob_id.in_(left)))
            _erase_unnamed(session, blob_id, erase)
            return len(left)


@dataclass(frozen=True, slots=True)
class _Gone:
    is_alive: Callable[[str], bool]
    before_s: float

    def __call__(self, owner: str, noted_at_s: float) -> bool:
        return noted_at_s < self.before_s or not self.is_alive(owner)


class _CameSecond(Exception):
    """Another request with the same key was entered meanwhile."""


def _earlier(session: Session, new: NewUpload) -> Accepted | None:
    return _made_by(session, new.cost_centre, new.idempotency_key, new.request_sha256)


def _made_by(
    session: Session, cost_centre: str, idempotency_key: str | None, request_sha256: str | None
) -> Accepted | None:
    if idempotency_key is None:
        return None
    row = session.execute(
        select(UploadRow.upload_id, UploadRow.request_sha256).where(
            UploadRow.cost_centre == cost_centre, UploadRow.idempotency_key == idempotency_key
        )
    ).one_or_none()
    if row is None:
        return None
    if row.request_sha256 != request_sha256:
        raise IdempotencyKeyReused(
            "another request came with this Idempotency-Key before; use a new key for a new request"
        )
    return Accepted(upload_id=row.upload_id, is_new=False)


def _erase_document(
    session: Session, record: UploadRecord, document_id: str, is_alive: Callable[[str], bool], erase: Erase
) -> None:
    """The bytes are locked by the caller."""
    notes, _ = arriving(session, document_id)
    if notes or has_other_sources(session, document_id, record.source_id):
        erase_source_alone(session, record.source_id)
        return
    refuse_in_use(session, document_id, is_alive)
    erase(document_id)
    purge_in(session, document_id, is_alive)


def _erase_unnamed(session: Session, blob_id: str, erase: Erase) -> None:
    """The bytes are locked by the caller."""
    notes, has_name = arriving(session, blob_id)
    if not notes and not has_name:
        erase(blob_id)
