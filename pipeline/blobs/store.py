"""Our own copy of every document's bytes, named by their SHA-256, and the outputs kept for whoever sent them.

Sources change and vanish while we read and between runs; the copy does not. It is hashed while it is made,
so the bytes read later are the bytes the name stands for.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from models.errors import ResultExpired, ResultMissing
from pipeline.blobs.copies import CachedCopies, Copies, FolderCopies, Snapshot, blob_name, damaged_name
from pipeline.blobs.folder import FolderShelf
from pipeline.blobs.places import remote_shelf, shared_folder
from pipeline.blobs.reading import ChunkReader
from pipeline.blobs.shelf import Shelf
from pipeline.blobs.sources import chunks_of, opened_source, too_many_bytes
from pipeline.blobs.writing import new_file, remove_files_of
from pipeline.settings import BlobSettings

PATHS_KEPT: Final = 32
"""Of the copies that were asked for by their path, so many of the latest stay."""

DAY_S: Final = 86_400
Content = bytes | BinaryIO | Callable[[BinaryIO], object]
"""Of an output: its bytes, a stream to read them from, or what writes them."""

SUFFIX: Final = re.compile(r"(?:\.[a-z0-9]{1,20}){1,2}")


class BlobStore:
    """``home`` is the state folder. Safe to use from many threads; each process makes its own.

    Every call raises ``StoreUnavailable`` where the place refuses or is full, and ``StoreUnreachable`` where it does
    not answer. Making one asks nothing of it; that raises ``SettingsError`` for an address that is none. What an
    ``owner`` leaves unfinished is dropped as soon as it is dead.
    """

    def __init__(self, home: Path, settings: BlobSettings | None = None, *, owner: str | None = None) -> None:
        settings = settings or BlobSettings()
        self._owner = owner
        self._results_kept_s = settings.results_kept_s
        self._shelf, self._copies = _placed(home, settings)
        self._lent_by_path: deque[ExitStack] = deque()
        self._lock = threading.Lock()

    @property
    def place(self) -> str:
        """What messages call it."""
        return self._shelf.place

    def require(self) -> None:
        """That it is there and takes what is written, before anything is promised."""
        with self._new_copy() as (_, path):
            path.unlink()
        self.require_readable()

    def require_readable(self) -> None:
        """That it is there, for whoever only reads."""
        self._shelf.byte_count(blob_name("0" * 64))

    # Documents

    def take(self, source: Path, *, max_bytes: int) -> Snapshot:
        """Copy ``source``. Raises ``SourceUnreadable`` and ``TooManyBytes`` (before copying, where the size is
        known)."""
        digest = hashlib.sha256()
        copied_bytes = 0
        with opened_source(source, max_bytes) as reader, self._new_copy() as (writer, path):
            for chunk in chunks_of(reader):
                copied_bytes += len(chunk)
                if copied_bytes > max_bytes:
                    raise too_many_bytes(copied_bytes, max_bytes)
                digest.update(chunk)
                writer.write(chunk)
        return Snapshot(path=path, document_id=digest.hexdigest(), byte_count=copied_bytes)

    def incoming(self) -> AbstractContextManager[tuple[BinaryIO, Path]]:
        """A new file for the bytes of a document that arrive bit by bit, for a snapshot; gone when the block raises."""
        return self._new_copy()

    def keep(self, snapshot: Snapshot) -> None:
        """Give the copy its name; the snapshot's own file is gone then."""
        self._copies.keep(snapshot)

    def discard(self, snapshot: Snapshot) -> None:
        snapshot.path.unlink(missing_ok=True)

    def lent(self, document_id: str) -> AbstractContextManager[Path]:
        """A file with the document's bytes, which stays for as long as the block runs. Its checksum is compared once a
        process. Raises ``BlobMissing`` and ``BlobDamaged``."""
        return self._copies.lent(document_id)

    def local_path(self, document_id: str) -> Path:
        """The same without an end: the file stays until this process has asked so for many others."""
        lent = ExitStack()
        path = lent.enter_context(self.lent(document_id))
        with self._lock:
            self._lent_by_path.append(lent)
            oldest = self._lent_by_path.popleft() if len(self._lent_by_path) > PATHS_KEPT else ExitStack()
        oldest.close()
        return path

    def byte_count(self, document_id: str) -> int | None:
        """None where the store has no such document."""
        return self._shelf.byte_count(blob_name(document_id))

    def cached(self, *, older_than_s: float) -> tuple[str, ...]:
        """Ids of the documents whose copies were fetched to this machine longer ago than that."""
        return self._copies.cached(older_than_s)

    def forget(self, document_id: str) -> bool:
        """Drop this machine's copy; whether there was one."""
        return self._copies.forget(document_id)

    def erase(self, document_id: str) -> bool:
        """The document's bytes, this machine's copy of them, and what a run that was killed left of them; whether
        there were any under their name."""
        is_removed = self._shelf.remove([blob_name(document_id), damaged_name(document_id)]) > 0
        remove_files_of(self._copies.incoming, document_id)
        return self._copies.forget(document_id) or is_removed

    def drop(self, document_id: str) -> bool:
        """The document's bytes under their name, and no others that may be the same; whether there were any."""
        is_removed = self._shelf.remove([blob_name(document_id)]) > 0
        return self._copies.forget(document_id) or is_removed

    def remove_abandoned(self, is_alive: Callable[[str], bool] | None = None) -> None:
        """Drop the half-made copies of runs that were killed: of owners that ``is_alive`` denies at once, of others
        after a day."""
        self._copies.remove_abandoned(is_alive)

    # Results

    def write_result(self, source_id: int, suffix: str, content: Content) -> None:
        """Keep an output of the source, whole or not at all. ``suffix`` is that of its file, such as ``.md``."""
        with self._new_copy() as (writer, path):
            _write(content, writer)
        try:
            self._shelf.put(path, _result_name(source_id, suffix))
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def open_result(self, source_id: int, suffix: str) -> Iterator[BinaryIO]:
        """Raises ``ResultExpired`` for one that was kept long enough, and ``ResultMissing``."""
        chunks = self._shelf.chunks(_result_name(source_id, suffix))
        try:
            first = next(chunks, b"")
        except FileNotFoundError as error:
            raise self._no_result(suffix) from error
        with io.BufferedReader(ChunkReader(first, chunks)) as reader:
            yield reader

    def results(self, source_id: int) -> tuple[str, ...]:
        """The suffixes of the outputs that are kept, in order."""
        names = self._shelf.names(_results_folder(source_id))
        return tuple(name.removeprefix("document") for name in names)

    def delete_results(self, source_id: int) -> int:
        """How many outputs there were."""
        folder = _results_folder(source_id)
        return self._shelf.remove([f"{folder}/{name}" for name in self._shelf.names(folder)])

    def _no_result(self, suffix: str) -> ResultMissing:
        if self._results_kept_s is None:
            return ResultMissing(
                f"there is no {suffix} output; it was not asked for, is not written yet, or "
                "DOCTRIAGE_BLOBS__URL names another place here than where the workers write"
            )
        return ResultExpired(
            f"there is no {suffix} output any more: outputs are kept {self._results_kept_s / DAY_S:,.3g} days; "
            "ingest it again, its pages are still there"
        )

    def _new_copy(self) -> AbstractContextManager[tuple[BinaryIO, Path]]:
        return new_file(self._copies.incoming, folder_mode=self._copies.folder_mode, owner=self._owner)


def open_blobs(home: Path, settings: BlobSettings) -> BlobStore:
    """The blob store that the settings name. Raises ``SettingsError``, and ``StoreUnavailable`` where s3fs is
    missing."""
    return BlobStore(home, settings)


def _write(content: Content, writer: BinaryIO) -> None:
    if isinstance(content, bytes):
        writer.write(content)
    elif callable(content):
        content(writer)
    else:
        shutil.copyfileobj(content, writer)


def _placed(home: Path, settings: BlobSettings) -> tuple[Shelf, Copies]:
    remote = remote_shelf(settings)
    if remote is not None:
        return remote, CachedCopies(remote, home, cache_bytes=settings.cache_bytes)
    shared = shared_folder(settings)
    folder = FolderShelf(home if shared is None else shared, is_shared=shared is not None)
    return folder, FolderCopies(folder)


def _results_folder(source_id: int) -> str:
    return f"results/{source_id}"


def _result_name(source_id: int, suffix: str) -> str:
    if not SUFFIX.fullmatch(suffix):
        raise ValueError(f"{suffix!r} is no suffix of an output")
    return f"{_results_folder(source_id)}/document{suffix}"
