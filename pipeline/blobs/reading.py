"""Chunks as a stream."""

from __future__ import annotations

import io
from collections.abc import Iterator


class ChunkReader(io.RawIOBase):
    """What ``io.BufferedReader`` reads from: ``first``, then the rest."""

    def __init__(self, first: bytes, rest: Iterator[bytes]) -> None:
        super().__init__()
        self._chunk = memoryview(first)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """RawIOBase's contract: how many bytes were put into the buffer, 0 at the end."""
        if not self._chunk:
            self._chunk = memoryview(next(self._rest, b""))
        taken = self._chunk[: len(buffer)]
        buffer[: len(taken)] = taken
        self._chunk = self._chunk[len(taken) :]
        return len(taken)
