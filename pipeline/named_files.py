"""Files that a person names with --out, --save or --chart: written whole where a file goes, straight into a device or a
pipe."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from models.errors import OutputNotWritable
from pipeline.publish import DiskFull, not_writable, replacement


def require_place(path: Path, option: str, *, may_exist: bool = True) -> None:
    """Before anything is read, and not after it. Raises OutputNotWritable for a folder, for a file in a folder that is
    not there or takes no files, and, where ``may_exist`` is false, for a file that is there."""
    try:
        there = _status(path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise OutputNotWritable(f"{path}: is a folder; name a file with {option}")
        if there is not None and not _is_replaced(there):
            return
        if there is not None and not may_exist:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        folder = _target(path).parent
        if not folder.is_dir():
            raise OutputNotWritable(
                f"{path}: there is no folder {folder}; make it, or name another file with {option}"
            )
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctriage-"):
            pass
    except OSError as error:
        raise OutputNotWritable(f"{path}: {error.strerror}; name another file with {option}") from error


@contextlib.contextmanager
def named_file(path: Path) -> Iterator[TextIO]:
    """A stream of text, its ``buffer`` one of bytes. A file is replaced at the end, with its mode and behind its links,
    or left as it was when anything is raised; anything else, such as a pipe, is written into. Raises
    OutputNotWritable; no folder is made."""
    try:
        there = _status(path)
        if there is None or _is_replaced(there):
            with replacement(_target(path), like=there) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
        else:
            with os.fdopen(_opened(path), "w", encoding="utf-8", newline="\n") as stream:
                yield stream
    except OSError as error:
        refusal = not_writable(path, error)
        if isinstance(refusal, DiskFull):
            raise refusal from error
        raise OutputNotWritable(f"{path}: cannot be written ({error.strerror}); name another file") from error


def _status(path: Path) -> os.stat_result | None:
    """Of what the path's links lead to; None where nothing is there."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_replaced(there: os.stat_result) -> bool:
    """A file, but not the one that this program's output goes to: what it prints next would be lost."""
    return stat.S_ISREG(there.st_mode) and not any(
        os.path.samestat(there, stream) for stream in _standard_streams()
    )


def _standard_streams() -> Iterator[os.stat_result]:
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # closed when the program was started
            yield os.fstat(descriptor)


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND)
