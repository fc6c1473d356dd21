"""Files as they are delivered, and the SHA-256 that names their bytes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from models.errors import SourceUnreadable, TooManyBytes

CHUNK_BYTES: Final = 2**20


def sha256_of(path: Path) -> str:
    """The id of the document these bytes would be. Raises ``SourceUnreadable``."""
    digest = hashlib.sha256()
    with opened_source(path, None) as reader:
        for chunk in chunks_of(reader):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def opened_source(source: Path, max_bytes: int | None) -> Iterator[BinaryIO]:
    """Opened without waiting, as a pipe without a writer would have us do for ever. Raises ``SourceUnreadable`` and
    ``TooManyBytes``."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SourceUnreadable("not a file but a folder, device or pipe; name a regular file")
        if max_bytes is not None and status.st_size > max_bytes:
            raise too_many_bytes(status.st_size, max_bytes)
        with open(descriptor, "rb", closefd=False) as reader:
            yield reader
    finally:
        os.close(descriptor)


def chunks_of(reader: BinaryIO) -> Iterator[bytes]:
    """Raises ``SourceUnreadable``."""
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


def too_many_bytes(byte_count: int, max_bytes: int) -> TooManyBytes:
    return TooManyBytes(
        f"{byte_count:,} bytes are more than the limit of {max_bytes:,}; "
        "split it or raise DOCTRIAGE_INTAKE__MAX_BYTES"
    )
