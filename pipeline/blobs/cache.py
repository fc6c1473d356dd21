"""Copies of a network store's blobs in the state folder, bounded in bytes, shared by all processes of the machine.

A copy in use is open with a shared lock; whoever makes room removes only what can be locked alone. The bytes are
counted in a file, under a lock, before they are fetched.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pipeline.blobs.checksums import Checksums
from pipeline.blobs.writing import make_folder, new_file, remove_abandoned_files, writing

TRIES: Final = 2
"""A blob that arrives damaged is fetched again once."""

SHARE_LEFT: Final = 0.9
"""Room is made for more than the blob at hand, so that not every one looks through the whole cache."""


class CopyDamaged(Exception):
    """What arrives is not what it is named for, however often it is fetched."""


Fetch = Callable[[str], Iterator[bytes]]


class BlobCache:
    """``fetch`` gives the bytes of a document. Safe to use from many threads and processes."""

    def __init__(self, folder: Path, *, max_bytes: int, fetch: Fetch) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._max_bytes = max_bytes
        self._checksums = Checksums()
        self._fetch = fetch

    @contextmanager
    def lent(self, document_id: str, byte_count: Callable[[], int]) -> Iterator[Path]:
        """The copy, fetched where it is missing or damaged; it stays for as long as the block runs. ``byte_count`` is
        asked before a fetch. Raises ``CopyDamaged``, and what ``fetch`` and ``byte_count`` raise."""
        path = self._path(document_id)
        descriptor = self._sound(path, document_id)
        if descriptor is None:
            with self._locked(document_id[:2]):
                descriptor = self._sound(path, document_id)
                if descriptor is None:
                    descriptor = self._fetched(path, document_id, byte_count())
        try:
            yield path
        finally:
            os.close(descriptor)

    def adopt(self, copy: Path, document_id: str, byte_count: int) -> None:
        """Take a sound copy that this machine has already; it moves here."""
        path = self._path(document_id)
        with self._locked(document_id[:2]), writing(self._folder):
            self._make_room(byte_count)
            make_folder(path.parent)
            copy.replace(path)
            self._checksums.note(path)

    def forget(self, document_id: str) -> bool:
        """Whether there was a copy."""
        with writing(self._folder):
            try:
                self._path(document_id).unlink()
            except FileNotFoundError:
                return False
            return True

    def document_ids(self, *, older_than_s: float = 0) -> tuple[str, ...]:
        """Of the copies that came longer ago than that."""
        latest_s = time.time() - older_than_s
        ids = []
        for path in self._copies():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime <= latest_s:
                    ids.append(path.name)
        return tuple(ids)

    def remove_abandoned(self) -> None:
        remove_abandoned_files(self._incoming)

    def _path(self, document_id: str) -> Path:
        return self._folder / document_id[:2] / document_id

    def _copies(self) -> Iterator[Path]:
        return self._folder.glob("[0-9a-f][0-9a-f]/*")

    def _sound(self, path: Path, document_id: str) -> int | None:
        """A descriptor that keeps the copy; None where there is none that is sound."""
        descriptor = _opened_shared(path)
        if descriptor is None:
            return None
        with contextlib.ExitStack() as undone:
            undone.callback(os.close, descriptor)
            with contextlib.suppress(FileNotFoundError):
                if self._checksums.agree(path, document_id):
                    os.utime(descriptor, ns=(time.time_ns(), os.fstat(descriptor).st_mtime_ns))
                    undone.pop_all()
                    return descriptor
        return None

    def _fetched(self, path: Path, document_id: str, byte_count: int) -> int:
        for _ in range(TRIES):
            self._make_room(byte_count)
            with new_file(self._incoming) as (writer, temporary):
                digest = hashlib.sha256()
                for chunk in self._fetch(document_id):
                    digest.update(chunk)
                    writer.write(chunk)
                writer.flush()
                if digest.hexdigest() == document_id:
                    make_folder(path.parent)
                    descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
                    fcntl.flock(descriptor, fcntl.LOCK_SH)
                    temporary.replace(path)
                    self._checksums.note(path)
                    return descriptor
                temporary.unlink()
        raise CopyDamaged

    # Room

    def _make_room(self, byte_count: int) -> None:
        """Count bytes that are to come; the copies used longest ago go first."""
        with writing(self._folder):
            make_folder(self._folder)
            with self._locked("bytes") as descriptor:
                counted = os.pread(descriptor, 20, 0)
                total = int(counted) if counted.isdigit() else self._max_bytes + 1
                if total + byte_count > self._max_bytes:
                    total = self._shrunk(int((self._max_bytes - byte_count) * SHARE_LEFT))
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(total + byte_count).encode(), 0)

    def _shrunk(self, wanted_bytes: int) -> int:
        """What is left, in bytes, when no more than wanted are, or all else is in use."""
        copies = []
        for path in (*self._copies(), *self._incoming.glob("*")):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                copies.append((status.st_atime_ns, status.st_size, path))
        total = sum(size for _, size, _ in copies)
        for _, size, path in sorted(copies):
            if total <= wanted_bytes:
                break
            if path.parent != self._incoming and _removed_unless_used(path):
                total -= size
        return total

    @contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        """One at a time, over all processes. Gives the descriptor of the lock's file."""
        folder = self._folder / "locks"
        with writing(folder):
            make_folder(folder)
            descriptor = os.open(folder / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _opened_shared(path: Path) -> int | None:
    """None where there is no such file, or it was removed meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None


def _removed_unless_used(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)
