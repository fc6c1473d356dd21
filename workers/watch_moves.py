"""Moving a file that was read out of the watched folder: to any file system, and never over another file."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from models.errors import DoctriageError
from workers.watch_files import FileVersion
from workers.watch_look import REPORT_SUFFIX, version_of

MAX_NAME_BYTES = 255


class NotMoved(DoctriageError):
    """The file is where it was."""

    code = "not_moved"
    retryable = True


def move_file(path: Path, folder: Path, name: str, version: FileVersion) -> Path:
    """Move ``path``, as long as it is this version, to ``folder / name``, numbered where that name is taken; where to.
    Raises ``NotMoved``."""
    try:
        target = _reserved(folder / name)
    except OSError as error:
        raise NotMoved(
            f"{folder / name}: cannot be made ({error.strerror}); make {folder} writable"
        ) from error
    try:
        _require(path, version)
        _replace(path, target, version)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise NotMoved(f"{name}: cannot be moved to {target.parent} ({error.strerror}); it stays") from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target


def write_report(moved: Path, message: str) -> Path:
    """Say beside a file that failed why it did. Raises ``NotMoved``."""
    name = os.fsencode(moved.name)[: MAX_NAME_BYTES - len(REPORT_SUFFIX)]
    wanted = moved.with_name(os.fsdecode(name) + REPORT_SUFFIX)
    try:
        report = _reserved(wanted)
        report.write_text(message + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise NotMoved(f"{wanted}: cannot be written ({error.strerror}); the file was moved") from error
    return report


def _reserved(wanted: Path) -> Path:
    """An empty file of ours, which holds the name until the real one takes its place."""
    wanted.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = wanted if number == 1 else wanted.with_name(_numbered(wanted.name, number))
        try:
            path.open("x").close()
        except FileExistsError:
            number += 1
        else:
            return path


def _numbered(name: str, number: int) -> str:
    path = PurePosixPath(name)
    return f"{path.stem} ({number}){path.suffix}"


def _replace(path: Path, target: Path, version: FileVersion) -> None:
    try:
        path.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(path, target, version)


def _copy_over(path: Path, target: Path, version: FileVersion) -> None:
    """To another file system: the copy is whole before it bears the name, and before the original goes."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".doctriage-")
    os.close(descriptor)
    copy = Path(name)
    try:
        shutil.copy2(path, copy)
        with copy.open("rb") as stream:
            os.fsync(stream.fileno())
        _require(path, version)
        copy.replace(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    path.unlink()


def _require(path: Path, version: FileVersion) -> None:
    if version_of(path) != version:
        raise NotMoved(f"{path.name}: has changed; it stays and is read again")
