"""Files of our own: unfinished under a name of chance, then whole under their own."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from models.errors import StoreUnavailable

ABANDONED_AFTER_S: Final = 24 * 3600
"""A file that is still unfinished after a day belongs to a program that was killed."""

PRIVATE_FOLDER_MODE: Final = 0o700

OWNER_ENDS: Final = "~"
SLASH: Final = "+"
"""An owner's name is host/boot/process/start; no host's name holds either of these."""

OWNER_PARTS: Final = 4


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Refusals of the file system are raised as ``StoreUnavailable``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "the disk is full; free some space and run again, finished pages are kept"
        else:
            advice = (
                f"cannot write here ({error.strerror}); make it writable for this user, or name another folder in "
                "DOCTRIAGE_BLOBS__URL or DOCTRIAGE_HOME"
            )
        raise StoreUnavailable(f"{folder}: {advice}") from error


@contextmanager
def new_file(
    folder: Path, *, folder_mode: int = PRIVATE_FOLDER_MODE, owner: str | None = None
) -> Iterator[tuple[BinaryIO, Path]]:
    """A private file in the folder, which is made where it is missing; gone when the block raises. Its name tells its
    ``owner``, where there is one. Raises ``StoreUnavailable``."""
    prefix = "" if owner is None else owner.replace("/", SLASH) + OWNER_ENDS
    with writing(folder):
        make_folder(folder, folder_mode)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix)
    path = Path(name)
    try:
        with writing(folder), os.fdopen(descriptor, "wb") as writer:
            yield writer, path
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def make_folder(folder: Path, mode: int = PRIVATE_FOLDER_MODE) -> None:
    """With all that it lies in, each of ``mode`` whatever the umask is. Raises OSError."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    folder.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    if mode != PRIVATE_FOLDER_MODE:
        folder.chmod(mode)


def remove_files_of(folder: Path, document_id: str) -> None:
    """Drop copies of the document that have no name yet. Raises ``StoreUnavailable``."""
    with writing(folder):
        for path in folder.iterdir() if folder.is_dir() else ():
            with contextlib.suppress(FileNotFoundError), path.open("rb") as reader:
                if hashlib.file_digest(reader, "sha256").hexdigest() == document_id:
                    path.unlink()


def remove_abandoned_files(folder: Path, is_alive: Callable[[str], bool] | None = None) -> None:
    """Drop what killed programs left unfinished in the folder: at once where ``is_alive`` denies the owner that the
    file's name tells, and after a day."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        try:
            if _has_dead_owner(path, is_alive) or time.time() - path.stat().st_mtime > ABANDONED_AFTER_S:
                path.unlink()
        except FileNotFoundError:
            continue  # another program was quicker


def _has_dead_owner(path: Path, is_alive: Callable[[str], bool] | None) -> bool:
    owner = path.name.rpartition(OWNER_ENDS)[0].replace(SLASH, "/")
    return is_alive is not None and owner.count("/") == OWNER_PARTS - 1 and not is_alive(owner)
