"""Our own copy of every document's bytes, named by their SHA-256.

Sources change and vanish while we read and between runs; the copy does not. It is hashed while it is made,
so the bytes read later are the bytes the name stands for.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from models.errors import SourceUnreadable, StoreUnavailable, TooManyBytes

CHUNK_BYTES = 2**20
ABANDONED_AFTER_S = 24 * 3600
"""A copy that is still unfinished after a day belongs to a run that was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A finished copy that has no name yet: ``keep`` gives it one, ``discard`` removes it."""

    path: Path
    document_id: str


class BlobStore:
    """The blob folder below the state folder, private to its owner."""

    def __init__(self, home: Path) -> None:
        self._blobs = home / "blobs"
        self._incoming = home / "incoming"

    def path(self, document_id: str) -> Path:
        return self._blobs / document_id[:2] / document_id

    def take(self, source: Path, *, max_bytes: int) -> Snapshot:
        """Copy ``source``. Raises ``SourceUnreadable``, ``TooManyBytes`` (before copying, where the size is
        known) and ``StoreUnavailable`` when the copy cannot be written."""
        digest = hashlib.sha256()
        copied_bytes = 0
        with _opened_source(source, max_bytes) as reader, self._new_copy() as (writer, path):
            for chunk in _chunks(reader):
                copied_bytes += len(chunk)
                if copied_bytes > max_bytes:
                    raise _too_many_bytes(copied_bytes, max_bytes)
                digest.update(chunk)
                writer.write(chunk)
        return Snapshot(path=path, document_id=digest.hexdigest())

    def keep(self, snapshot: Snapshot) -> Path:
        """Give the copy its name. One that is there is replaced: were it damaged by a power cut, the next run
        over the document would mend it, so nobody need wait for the disk here."""
        path = self.path(snapshot.document_id)
        with _writing(self._blobs):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            snapshot.path.replace(path)
        return path

    def discard(self, snapshot: Snapshot) -> None:
        snapshot.path.unlink(missing_ok=True)

    def remove_abandoned(self) -> None:
        """Drop the half-made copies of runs that were killed."""
        if not self._incoming.is_dir():
            return
        for path in self._incoming.iterdir():
            try:
                if time.time() - path.stat().st_mtime > ABANDONED_AFTER_S:
                    path.unlink()
            except FileNotFoundError:
                continue  # another run was quicker

    @contextmanager
    def _new_copy(self) -> Iterator[tuple[BinaryIO, Path]]:
        with _writing(self._incoming):
            self._blobs.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._incoming.mkdir(mode=0o700, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._incoming)
        path = Path(name)
        try:
            with _writing(self._incoming), os.fdopen(descriptor, "wb") as writer:
                yield writer, path
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def sha256_of(path: Path) -> str:
    """The id of the document these bytes would be. Raises ``SourceUnreadable``."""
    digest = hashlib.sha256()
    with _opened_source(path, None) as reader:
        for chunk in _chunks(reader):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "the disk is full; free some space and run again, finished pages are kept"
        else:
            advice = f"cannot write here ({error.strerror}); make it writable or set DOCTRIAGE_HOME"
        raise StoreUnavailable(f"{folder}: {advice}") from error


@contextmanager
def _opened_source(source: Path, max_bytes: int | None) -> Iterator[BinaryIO]:
    """Opened without waiting, as a pipe without a writer would have us do for ever."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SourceUnreadable("not a file but a folder, device or pipe; name a regular file")
        if max_bytes is not None and status.st_size > max_bytes:
            raise _too_many_bytes(status.st_size, max_bytes)
        with open(descriptor, "rb", closefd=False) as reader:
            yield reader
    finally:
        os.close(descriptor)


def _chunks(reader: BinaryIO) -> Iterator[bytes]:
    while True:
        try:
            chunk = reader.read(CHUNK_BYTES)
        except OSError as error:
            raise _unreadable(error) from error
        if not chunk:
            return
        yield chunk


def _unreadable(error: OSError) -> SourceUnreadable:
    return SourceUnreadable(
        f"cannot be read ({error.strerror}); check that it is there and that you may read it"
    )


def _too_many_bytes(byte_count: int, max_bytes: int) -> TooManyBytes:
    return TooManyBytes(
        f"{byte_count:,} bytes are more than the limit of {max_bytes:,}; "
        "split it or raise DOCTRIAGE_INTAKE__MAX_BYTES"
    )
