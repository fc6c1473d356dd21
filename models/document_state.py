"""How far the document of an upload is. Importing this is cheap."""

from __future__ import annotations

from enum import StrEnum


class DocumentState(StrEnum):
    """``queued``: nobody has looked into it yet. ``failed``: it was refused, or not one of its pages could be read."""

    QUEUED = "queued"
    READING = "reading"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        return self in (DocumentState.QUEUED, DocumentState.READING)
