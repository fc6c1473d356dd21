"""What a watch remembers of the files that it has read, beyond its own life."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from pipeline.store import Store, WatchStore, open_store
from workers.watch_files import FileVersion, Outcome, RememberedFile


class WatchMemory(Protocol):
    """Of one watched folder and one output folder. All raise ``StoreUnavailable``."""

    def load(self) -> Mapping[str, RememberedFile]: ...

    def note(self, name: str, file: RememberedFile, *, submission_id: int | None) -> None: ...

    def forget(self, name: str) -> None: ...


class StoreMemory:
    """In the database. Of each output folder of its own: one that is new is given what another has had."""

    def __init__(self, home: Path, database_url: SecretStr | None, *, folder: Path, out_dir: Path) -> None:
        self._home = home
        self._database_url = database_url
        self._key = f"{_text(folder)} → {_text(out_dir)}"
        self._store: Store | None = None

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def load(self) -> Mapping[str, RememberedFile]:
        return {
            name: RememberedFile(
                version=FileVersion(byte_count=file.byte_count, mtime_ns=file.mtime_ns),
                outcome=Outcome(file.outcome),
            )
            for name, file in self._watched.seen(self._key).items()
        }

    def note(self, name: str, file: RememberedFile, *, submission_id: int | None) -> None:
        self._watched.note(
            self._key,
            name,
            byte_count=file.version.byte_count,
            mtime_ns=file.version.mtime_ns,
            outcome=file.outcome.value,
            submission_id=submission_id,
        )

    def forget(self, name: str) -> None:
        self._watched.forget(self._key, name)

    @property
    def _watched(self) -> WatchStore:
        """Opened when it is first needed, so that a database that is away can be waited for."""
        if self._store is None:
            self._store = open_store(self._home, self._database_url)
        return self._store.watched


def _text(path: Path) -> str:
    """A name that is not UTF-8 is kept in escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
