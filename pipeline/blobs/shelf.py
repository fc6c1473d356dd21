"""Where bytes lie under names such as ``blobs/ab/abcd…``: a folder, or a store on the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol


class Shelf(Protocol):
    """One contract suite runs against every implementation. A name holds all of its bytes or is not there. Every call
    raises ``StoreUnavailable`` where the place refuses, ``StoreUnreachable`` where it does not answer. ``place`` is
    what messages call it."""

    place: str

    def put(self, copy: Path, name: str) -> None:
        """Give the bytes of a file of ours their name, in the place of what had it. The file may be gone then."""
        ...

    def byte_count(self, name: str) -> int | None:
        """None where there is no such name."""
        ...

    def chunks(self, name: str) -> Iterator[bytes]:
        """Raises FileNotFoundError with the first chunk."""
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        """What lies in a folder itself, in order, without the folder; empty where there is none."""
        ...

    def move(self, name: str, new_name: str) -> None:
        """Nothing happens where there is no such name."""
        ...

    def remove(self, names: Sequence[str]) -> int:
        """Every version of them that the place keeps; how many names were there."""
        ...
