"""What a batch of documents is sent with, and how the server knows that the same is asked again."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from models.document_name import fitted_name
from pipeline.exports.formats import DEFAULT_FORMATS
from workers.client.uploads import SubmitOptions, fields_of

KEY_VERSION: Final = 2
"""Of how a key is made; another one makes all documents new."""

SCRYPT_COST: Final = 2**14
SCRYPT_BLOCKS: Final = 8


class Stopped(Exception):
    """The batch was stopped; what is under way is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOrder:
    """``out_dir`` is absolute. ``options`` are those of every document. The ``passwords`` are tried in turn on every
    PDF that turns out to be encrypted. ``api_key`` is part of what hides a password in a key."""

    out_dir: Path
    formats: tuple[str, ...] = DEFAULT_FORMATS
    options: SubmitOptions = field(default_factory=SubmitOptions)
    passwords: tuple[str, ...] = field(default=(), repr=False)
    api_key: str | None = field(default=None, repr=False)

    def options_of(self, name: str, password: str | None) -> SubmitOptions:
        own: SubmitOptions = {"name": fitted_name(name), "outputs": self.formats, "password": password}
        return {**self.options, **own}

    def idempotency_key(self, name: str, digest: str, password: str | None, again: int) -> str:
        """Of the same bytes, name, options and output folder; ``again`` counts those that failed or are erased."""
        fields = fields_of(self.options_of(name, None))
        hidden = None if password is None else self._hidden(password, digest)
        said = [KEY_VERSION, digest, name, str(self.out_dir), fields, hidden, again]
        return f"ingest-{hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()}"

    def _hidden(self, password: str, digest: str) -> str:
        """A server keeps the key, and not the password: nobody shall find it out from the one."""
        salt = f"{digest} {self.api_key or ''}".encode()
        return hashlib.scrypt(
            password.encode("utf-8", "surrogateescape"), salt=salt, n=SCRYPT_COST, r=SCRYPT_BLOCKS, p=1
        ).hex()


class FirstSources:
    """Which source of a batch was the first with its bytes: the pages that several share are counted under it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()

    def first(self, digest: str, name: str) -> str:
        with self._lock:
            return self._names.setdefault(digest, name)


class Writers:
    """Whoever writes files; once they are told to stop, none begins, and those who have begun come to their end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._writing = 0
        self._is_stopped = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises Stopped."""
        with self._changed:
            if self._is_stopped:
                raise Stopped
            self._writing += 1
        try:
            yield
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()

    def stop(self, limit_s: float) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.wait_for(lambda: self._writing == 0, limit_s)
