"""An upload that has arrived whole is entered, or leaves nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from models.pool import Queue
from pipeline.blobs import Snapshot
from pipeline.store.upload_records import Accepted, NewUpload
from workers.api.access import Caller
from workers.api.arrivals import Arrival
from workers.api.parts import Parts
from workers.api.upload_order import UploadOrder, upload_order
from workers.cluster.sealed_passwords import sealed
from workers.cluster.tracing import submission_span
from workers.tickets import send_if_possible


@dataclass(frozen=True, slots=True, kw_only=True)
class Entering:
    """Blocks: for a thread of its own."""

    parts: Parts
    asking: Caller
    idempotency_key: str | None

    def require_room(self) -> None:
        """Before anything is read of a request that cannot have come before. Raises ``PoolBusy`` and
        ``TooManyOpenDocuments``."""
        if self.idempotency_key is None:
            self.parts.access.require_room(self.asking)
            payer = None if self.asking.is_admin else self.asking.cost_centre
            self.parts.store.uploads.require_room(self.parts.limits, payer)

    def enter(self, arrival: Arrival) -> Accepted:
        """Raises what ``upload_order`` and ``UploadStore.accept`` raise, ``TooManyOpenDocuments`` and
        ``StoreUnavailable``."""
        try:
            return self._entered(arrival)
        finally:
            self.parts.blobs.discard(arrival.snapshot)

    def _entered(self, arrival: Arrival) -> Accepted:
        order = upload_order(
            arrival.fields,
            file_name=arrival.file_name,
            document_id=arrival.snapshot.document_id,
            asking=self.asking,
            settings=self.parts.settings,
        )
        earlier = self.parts.store.uploads.same_request(
            order.cost_centre, self.idempotency_key, order.request_sha256
        )
        if earlier is not None:
            return earlier
        with submission_span({"doctriage.cost_centre": order.cost_centre, "doctriage.sources": 1}) as trace:
            accepted = self._kept(self._upload(order, arrival.snapshot, trace), arrival.snapshot)
        send_if_possible(self.parts.tickets, Queue.INTAKE)
        return accepted

    def _kept(self, new: NewUpload, snapshot: Snapshot) -> Accepted:
        """Whoever is killed in here leaves a note whose owner is dead."""
        store, blobs = self.parts.store, self.parts.blobs
        note = store.uploads.note_arriving(new.blob_id, self.parts.owner)
        is_entered = False
        try:
            blobs.keep(snapshot)
            accepted = store.uploads.accept(new, arriving_blob_id=note, limits=self.parts.limits)
            is_entered = accepted.is_new
            return accepted
        finally:
            if not is_entered:
                store.uploads.forget_arriving(note, blobs.drop)

    def _upload(self, order: UploadOrder, snapshot: Snapshot, traceparent: str | None) -> NewUpload:
        passwords = () if order.password is None else (order.password,)
        return NewUpload(
            upload_id=secrets.token_hex(16),
            name=order.name,
            output_stem=order.name,
            blob_id=snapshot.document_id,
            byte_count=snapshot.byte_count,
            cost_centre=order.cost_centre,
            key_id=self.asking.key_id,
            submitter=None if self.asking.key_id is None else self.asking.name,
            priority=order.priority,
            wishes=order.wishes.as_json(),
            sealed_passwords=sealed(passwords, self.parts.settings.pool.secret_key),
            traceparent=traceparent,
            idempotency_key=self.idempotency_key,
            request_sha256=order.request_sha256,
            details=order.metadata,
            callback_url=order.callback_url,
            max_open_documents=self.parts.access.most_open_documents(self.asking),
        )
