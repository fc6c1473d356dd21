"""Places for calls in flight to a VLM service, shared by the workers of all machines."""

from __future__ import annotations

import time

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from models.tables import VlmSlotRow
from pipeline.store.database import Database, insert_missing, rows_changed


class SlotStore:
    """Places are renewed with their owner's other leases (``PoolStore.heartbeat``)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, service: str, capacity: int, owner: str, lease_s: float) -> int | None:
        """The number of a place that is the owner's now, from 1 to ``capacity``; None where all are taken. An owner may
        have many."""
        with self._database.write() as session:
            now_s = time.time()
            free = select(VlmSlotRow.slot).where(
                VlmSlotRow.service == service,
                VlmSlotRow.slot <= capacity,
                or_(VlmSlotRow.owner.is_(None), VlmSlotRow.expires_at_s < now_s),
            )
            first = free.order_by(VlmSlotRow.slot).limit(1).with_for_update(key_share=True, skip_locked=True)
            slot = session.scalar(first)
            if slot is None and _make_places(session, service, capacity):
                slot = session.scalar(first)
            if slot is None:
                return None
            session.execute(
                update(VlmSlotRow)
                .where(VlmSlotRow.service == service, VlmSlotRow.slot == slot)
                .values(owner=owner, expires_at_s=now_s + lease_s)
            )
            return slot

    def release(self, service: str, slot: int, owner: str) -> None:
        """Changes nothing where it is not the owner's any more."""
        free = (
            update(VlmSlotRow)
            .where(VlmSlotRow.service == service, VlmSlotRow.slot == slot, VlmSlotRow.owner == owner)
            .values(owner=None, expires_at_s=None)
        )
        with self._database.write() as session:
            rows_changed(session, free)


def _make_places(session: Session, service: str, capacity: int) -> bool:
    """False where they are there."""
    count = select(func.count()).where(VlmSlotRow.service == service, VlmSlotRow.slot <= capacity)
    if session.scalar(count) == capacity:
        return False
    rows = [{"service": service, "slot": slot} for slot in range(1, capacity + 1)]
    insert_missing(session, VlmSlotRow, rows)
    return True
