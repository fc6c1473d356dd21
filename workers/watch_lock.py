"""One watch at a time writes into an output folder."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.errors import SettingsError
from pipeline.publish import not_writable

LOCK_NAME = ".doctriage-watch.lock"


@contextmanager
def only_watch(out_dir: Path) -> Iterator[None]:
    """Raises ``SettingsError`` where another watch writes into the folder, which is there, and ``OutputNotWritable``.
    On a file system that knows no locks nobody is kept out."""
    try:
        descriptor = os.open(out_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise not_writable(out_dir / LOCK_NAME, error) from error
    try:
        _lock(descriptor, out_dir)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, out_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise SettingsError(
                f"{out_dir}: another `doctriage watch` writes there; end it, or choose another --out"
            ) from error
