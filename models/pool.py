"""What the pool of workers calls its queues and the states of what waits in them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DEFAULT_PRIORITY: Final = 5
"""Of 0, the last, to 9, the first."""

HIGHEST_PRIORITY: Final = 9


class Queue(StrEnum):
    INTAKE = "intake"
    OCR = "ocr"
    VLM = "vlm"
    ASSEMBLE = "assemble"


class SubmissionState(StrEnum):
    """Of a submission to the pool; a run of the embedded executor has none."""

    OPEN = "open"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class SourceState(StrEnum):
    """``received``: its bytes are in the blob store. ``read``: its pages are, and its outputs are to be written.
    ``settled``: they are, or it was refused or cancelled."""

    RECEIVED = "received"
    IN_INTAKE = "in_intake"
    READING = "reading"
    READ = "read"
    BEING_WRITTEN = "being_written"
    SETTLED = "settled"
