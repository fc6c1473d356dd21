"""The submitter's side of the pool: bytes go to the blob store, sources to the database, tickets to the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from models.errors import DocumentRejected, PoolBusy, SourceUnreadable, StoreUnreachable
from models.pool import Queue
from pipeline.blobs import BlobStore
from pipeline.blobs.copies import Snapshot
from pipeline.settings import Settings
from pipeline.store import PoolLimits, PoolStore, UploadStore
from workers.cluster.patience import patiently
from workers.cluster.wishes import Wishes
from workers.owner import current_owner
from workers.sources import Source
from workers.tickets import SparingTickets, Tickets

SEEN_EVERY_S: Final = 30.0
"""A submitter that is not seen for two minutes is taken to be gone."""

PATIENCE_S: Final = 90.0
"""How long, within those two minutes, a database or a blob store that is away is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionOrder:
    """Who submits what to whose cost. ``sealed_passwords`` as ``workers.cluster.sealed_passwords`` seals them."""

    cost_centre: str
    submitter: str | None
    priority: int
    wishes: Wishes
    sealed_passwords: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """``on_busy`` is told why, and for how long, the submitter waits before it sends the next source; the first is
    refused at once where the pool takes on no more."""

    settings: Settings
    pool: PoolStore
    uploads: UploadStore
    blobs: BlobStore
    tickets: Tickets
    on_busy: Callable[[PoolBusy], None]

    def open(self, order: SubmissionOrder) -> int:
        """Raises ``PoolBusy``."""
        return self.pool.open_submission(
            cost_centre=order.cost_centre,
            submitter=order.submitter,
            priority=order.priority,
            wishes=order.wishes.as_json(),
            sealed_passwords=order.sealed_passwords,
            traceparent=order.traceparent,
            limits=self._limits,
        )

    def send(self, submission_id: int, sources: Iterable[Source]) -> None:
        """Everything, and then the submission is sealed. A database or a blob store that is away is waited for, as what
        was done before is not done again. Raises ``StoreUnavailable`` and ``SubmissionNotOpen``."""
        last_seen_s = time.monotonic()
        tickets = SparingTickets(self.tickets)
        wait = partial(patiently, patience_s=PATIENCE_S, away=StoreUnreachable)
        for source in sources:
            if wait(partial(self._sent, submission_id, source)):
                tickets.send_if_possible(Queue.INTAKE)
            if time.monotonic() - last_seen_s > SEEN_EVERY_S:
                wait(partial(self.pool.seen, submission_id))
                last_seen_s = time.monotonic()
        wait(partial(self.pool.seal, submission_id))

    @property
    def _limits(self) -> PoolLimits:
        pool = self.settings.pool
        return PoolLimits(
            max_waiting_pages=pool.max_waiting_pages, max_waiting_sources=pool.max_waiting_sources
        )

    def _sent(self, submission_id: int, source: Source) -> bool:
        """Whether there is something to be taken in; not where it was refused here."""
        try:
            if source.problem is not None:
                raise SourceUnreadable(source.problem)
            snapshot = self.blobs.take(source.path, max_bytes=self.settings.intake.max_bytes)
        except DocumentRejected as error:
            self.pool.add_refused_source(
                submission_id,
                name=source.name,
                output_stem=source.output_stem,
                code=error.code,
                message=f"{source.name}: {error}",
            )
            return False
        self._keep(submission_id, source, snapshot)
        return True

    def _keep(self, submission_id: int, source: Source, snapshot: Snapshot) -> None:
        """The note holds those back who erase equal bytes that a killed server has left."""
        note = self.uploads.note_arriving(snapshot.document_id, current_owner())
        try:
            self.blobs.keep(snapshot)
            self._add(submission_id, source, blob_id=snapshot.document_id, byte_count=snapshot.byte_count)
        finally:
            self.uploads.forget_arriving(note, self.blobs.drop)

    def _add(self, submission_id: int, source: Source, *, blob_id: str, byte_count: int) -> None:
        """Waits for as long as the pool takes on no more."""
        while True:
            try:
                self.pool.add_source(
                    submission_id,
                    name=source.name,
                    output_stem=source.output_stem,
                    blob_id=blob_id,
                    byte_count=byte_count,
                    limits=self._limits,
                )
            except PoolBusy as error:
                self.on_busy(error)
                self.pool.seen(submission_id)
                time.sleep(min(error.retry_after_s, SEEN_EVERY_S))
            else:
                return
