"""A folder of this machine, or one that machines share."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from models.errors import StoreUnavailable
from pipeline.blobs.sources import CHUNK_BYTES
from pipeline.blobs.writing import PRIVATE_FOLDER_MODE, make_folder, writing

PRIVATE_FILE_MODE: Final = 0o600

DOCUMENTS: Final = "blobs"
"""The folder that has all documents."""

MOUNT_IT: Final = "mount or make the folder that DOCTRIAGE_BLOBS__URL names"


class FolderShelf:
    """The state folder is private. In a shared one, whoever may write the folder may write what is put there."""

    def __init__(self, root: Path, *, is_shared: bool) -> None:
        self.place = str(root)
        self._root = root
        self._is_shared = is_shared

    @property
    def incoming(self) -> Path:
        """Where copies are made, so that a rename gives them their name."""
        return self._root / "incoming"

    @property
    def folder_mode(self) -> int:
        """Raises ``StoreUnavailable`` where a shared folder is missing, as it may be at any time: it would be made
        where it is to be mounted."""
        if not self._is_shared:
            return PRIVATE_FOLDER_MODE
        try:
            return stat.S_IMODE(self._root.stat().st_mode)
        except OSError as error:
            raise StoreUnavailable(f"{self._root}: {error.strerror}; {MOUNT_IT}") from error

    def require_documents(self) -> None:
        """Raises ``StoreUnavailable`` where a shared folder is gone, or is the bare place where it is to be mounted: a
        document that is not there is not missing by itself."""
        if self.folder_mode and self._is_shared and not self.path(DOCUMENTS).is_dir():
            raise StoreUnavailable(f"{self._root}: there is no document in it at all; {MOUNT_IT}")

    def path(self, name: str) -> Path:
        return self._root / name

    def put(self, copy: Path, name: str) -> None:
        path = self.path(name)
        folder_mode = self.folder_mode
        with writing(self._root):
            if self._is_shared:
                copy.chmod(folder_mode & 0o666 | PRIVATE_FILE_MODE)
            make_folder(path.parent, folder_mode)
            copy.replace(path)

    def byte_count(self, name: str) -> int | None:
        try:
            return self.path(name).stat().st_size
        except FileNotFoundError:
            _ = self.folder_mode
            return None
        except OSError as error:
            raise self.unreadable(error) from error

    def chunks(self, name: str) -> Iterator[bytes]:
        try:
            with self.path(name).open("rb") as reader:
                while chunk := reader.read(CHUNK_BYTES):
                    yield chunk
        except FileNotFoundError:
            _ = self.folder_mode
            raise
        except OSError as error:
            raise self.unreadable(error) from error

    def names(self, folder: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(path.name for path in self.path(folder).iterdir() if path.is_file()))
        except FileNotFoundError:
            _ = self.folder_mode
            return ()
        except OSError as error:
            raise self.unreadable(error) from error

    def move(self, name: str, new_name: str) -> None:
        new_path = self.path(new_name)
        with writing(self._root):
            make_folder(new_path.parent, self.folder_mode)
            with contextlib.suppress(FileNotFoundError):
                self.path(name).replace(new_path)

    def remove(self, names: Sequence[str]) -> int:
        removed = 0
        with writing(self._root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self.path(name).unlink()
                    removed += 1
        return removed

    def can_list(self, folder: Path) -> bool:
        try:
            with os.scandir(folder) as entries:
                next(entries, None)
        except OSError:
            return False
        return True

    def unreadable(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.place}: cannot be read ({error.strerror}); check that it is there and that you may read it"
        )
