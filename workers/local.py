"""The embedded executor: one machine, one database file, a pool of processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from models.document import MediaType
from pipeline.settings import Settings
from workers.events import Event, IngestReport, IngestRequest

__all__ = ["IngestReport", "IngestRequest", "StoredPage", "find_page", "ingest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A finished page as the database keeps it: ``page`` is one entry of the JSON's ``pages``,
    ``blob_path`` our copy of the document's bytes."""

    source: str
    document_id: str
    media_type: MediaType
    page_number: int
    page: Mapping[str, object]
    blob_path: Path


def ingest(request: IngestRequest, *, settings: Settings, on_event: Callable[[Event], None]) -> IngestReport:
    """Read every document under ``request.paths`` and write its files into ``request.out_dir``.

    A rejected document or a failed page is in the report, not an exception. Ctrl-C (KeyboardInterrupt) is
    caught: the report says ``is_interrupted``. ``on_event`` is called on the caller's thread.
    Raises ``OutputNotWritable`` before anything is read, ``EngineUnavailable`` for a missing engine or
    language, ``StoreUnavailable`` when the state folder cannot be used.
    Call it from a module that can be imported anew (worker processes are spawned), on the main thread.
    """
    raise NotImplementedError


def find_page(reference: str, page_number: int, *, settings: Settings) -> StoredPage:
    """The newest finished reading of a page. ``reference`` is a source name, a path to a file with the same
    bytes, or at least eight digits of the document id. Raises ``PageNotFound``."""
    raise NotImplementedError
