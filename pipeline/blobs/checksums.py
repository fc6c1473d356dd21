"""Which files hold the bytes that they are named for, compared once a process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

FILES_REMEMBERED: Final = 10_000

Fingerprint = tuple[int, int, int]
"""Size, time of the last change in nanoseconds, inode: a file with the same ones has not been changed."""


class Checksums:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, Fingerprint] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, path: Path) -> None:
        """The file's bytes were hashed as they were written. Raises OSError."""
        self._remember(path, _fingerprint(path))

    def agree(self, path: Path, document_id: str) -> bool:
        """Whether the file's SHA-256 is ``document_id``. Raises OSError."""
        fingerprint = _fingerprint(path)
        with self._lock:
            if self._known.get(path) == fingerprint:
                self._known.move_to_end(path)
                return True
        with path.open("rb") as reader:
            is_sound = hashlib.file_digest(reader, "sha256").hexdigest() == document_id
        if is_sound:
            self._remember(path, fingerprint)
        return is_sound

    def _remember(self, path: Path, fingerprint: Fingerprint) -> None:
        with self._lock:
            self._known[path] = fingerprint
            self._known.move_to_end(path)
            if len(self._known) > FILES_REMEMBERED:
                self._known.popitem(last=False)


def _fingerprint(path: Path) -> Fingerprint:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
