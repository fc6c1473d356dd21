"""Files and folders that are written whole or not at all. Importing this is cheap."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from models.errors import OutputNotWritable


class DiskFull(OutputNotWritable):
    """Nothing more can be written at all, so there is no use in going on."""

    code = "disk_full"


def prepare_folder(folder: Path, run_files: Iterable[str]) -> None:
    """Make the output folder and, where they are missing, its ``run_files``, by which it is known as one
    from now on. Raises ``OutputNotWritable``."""
    try:
        _make_folder(folder)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctriage-"):
            pass
        for name in run_files:
            (folder / name).open("a").close()
    except FileExistsError as error:
        raise OutputNotWritable(f"{folder}: is a file, not a folder; choose another --out") from error
    except OSError as error:
        raise not_writable(folder, error) from error


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    with written_whole(path) as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """A stream of text, its ``buffer`` one of bytes, that takes ``path``'s place at the end, or leaves no trace when
    anything is raised."""
    try:
        _make_folder(path.parent)
        with replacement(path) as stream:
            yield stream
    except OSError as error:
        raise not_writable(path, error) from error


@contextlib.contextmanager
def replacement(path: Path, *, like: os.stat_result | None = None) -> Iterator[TextIO]:
    """The same in a folder that is there; raises OSError. The file has the mode, and where that is allowed the owner,
    of ``like``; without it, those of a new file."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".doctriage-", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            if like is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, 0o666 & ~_umask() if like is None else stat.S_IMODE(like.st_mode))
            yield stream
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_folder(folder: Path) -> None:
    """With all that it lies in, which ``Path.mkdir`` makes by a call within a call, and too few for some."""
    missing = itertools.takewhile(lambda place: not place.exists(), folder.parents)
    for place in (*reversed(list(missing)), folder):
        place.mkdir(exist_ok=True)


def not_writable(path: Path, error: OSError) -> OutputNotWritable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{path}: the disk is full; free some space and run again")
    return OutputNotWritable(f"{path}: cannot be written ({error.strerror}); choose another folder")


def _umask() -> int:
    """The mask new files are made with; reading it means setting it for an instant."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
