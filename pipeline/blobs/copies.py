"""Documents as files of this machine, which is what poppler and the image readers take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from models.errors import BlobDamaged, BlobMissing
from pipeline.blobs.cache import BlobCache, CopyDamaged
from pipeline.blobs.checksums import Checksums
from pipeline.blobs.folder import DOCUMENTS, FolderShelf
from pipeline.blobs.shelf import Shelf
from pipeline.blobs.writing import remove_abandoned_files, writing

DIGITS: Final = 12
"""Of a document's id, in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A finished copy that has no name yet: the store's ``keep`` gives it one, ``discard`` removes it."""

    path: Path
    document_id: str
    byte_count: int


class Copies(Protocol):
    """``incoming`` is where new copies are made, in folders of ``folder_mode``."""

    incoming: Path

    @property
    def folder_mode(self) -> int: ...

    def keep(self, snapshot: Snapshot) -> None: ...

    def lent(self, document_id: str) -> AbstractContextManager[Path]:
        """The file, whose bytes are those of the document, for as long as the block runs. Raises ``BlobMissing`` and
        ``BlobDamaged``."""
        ...

    def forget(self, document_id: str) -> bool:
        """Drop the copy that is kept beside the store's own; whether there was one."""
        ...

    def cached(self, older_than_s: float) -> tuple[str, ...]:
        """Ids of copies beside the store's own that are older than that."""
        ...

    def remove_abandoned(self, is_alive: Callable[[str], bool] | None = None) -> None: ...


def blob_name(document_id: str) -> str:
    return f"{DOCUMENTS}/{document_id[:2]}/{document_id}"


def damaged_name(document_id: str) -> str:
    """Of what was found in the place of a document, and is not its bytes."""
    return f"damaged/{document_id}"


class FolderCopies:
    """The files of a folder themselves."""

    def __init__(self, shelf: FolderShelf) -> None:
        self.incoming = shelf.incoming
        self._shelf = shelf
        self._checksums = Checksums()

    @property
    def folder_mode(self) -> int:
        return self._shelf.folder_mode

    def keep(self, snapshot: Snapshot) -> None:
        """One that is there is replaced: were it damaged by a power cut, the next run over the document would mend it,
        so nobody need wait for the disk here."""
        name = blob_name(snapshot.document_id)
        self._shelf.put(snapshot.path, name)
        with writing(self.incoming):
            self._checksums.note(self._shelf.path(name))

    @contextmanager
    def lent(self, document_id: str) -> Iterator[Path]:
        """One file that cannot be read is the document's own fault; a folder that cannot is the store's."""
        path = self._shelf.path(blob_name(document_id))
        try:
            is_sound = self._checksums.agree(path, document_id)
        except FileNotFoundError as error:
            self._shelf.require_documents()
            raise _missing(document_id, self._shelf.place) from error
        except OSError as error:
            if self._shelf.can_list(path.parent):
                raise _unreadable(document_id, self._shelf.place, error) from error
            raise self._shelf.unreadable(error) from error
        if not is_sound:
            raise _damaged(document_id, self._shelf.place)
        yield path

    def forget(self, document_id: str) -> bool:
        return False

    def cached(self, older_than_s: float) -> tuple[str, ...]:
        return ()

    def remove_abandoned(self, is_alive: Callable[[str], bool] | None = None) -> None:
        remove_abandoned_files(self.incoming, is_alive)


class CachedCopies:
    """Copies of what lies in a store on the network."""

    folder_mode = 0o700

    def __init__(self, shelf: Shelf, home: Path, *, cache_bytes: int) -> None:
        self.incoming = home / "incoming"
        self._shelf = shelf
        self.cache = BlobCache(home / "cache" / "blobs", max_bytes=cache_bytes, fetch=self._chunks)

    def keep(self, snapshot: Snapshot) -> None:
        """What is there with the same size is not sent again."""
        name = blob_name(snapshot.document_id)
        if self._shelf.byte_count(name) != snapshot.byte_count:
            self._shelf.put(snapshot.path, name)
        self.cache.adopt(snapshot.path, snapshot.document_id, snapshot.byte_count)

    @contextmanager
    def lent(self, document_id: str) -> Iterator[Path]:
        """A stored blob that is damaged is set aside, so that the document can be stored again."""
        with ExitStack() as stack:
            try:
                copy = self.cache.lent(document_id, byte_count=partial(self._byte_count, document_id))
                path = stack.enter_context(copy)
            except CopyDamaged as error:
                self._shelf.move(blob_name(document_id), damaged_name(document_id))
                raise _damaged(document_id, self._shelf.place) from error
            yield path

    def forget(self, document_id: str) -> bool:
        return self.cache.forget(document_id)

    def cached(self, older_than_s: float) -> tuple[str, ...]:
        return self.cache.document_ids(older_than_s=older_than_s)

    def remove_abandoned(self, is_alive: Callable[[str], bool] | None = None) -> None:
        remove_abandoned_files(self.incoming, is_alive)
        self.cache.remove_abandoned()

    def _byte_count(self, document_id: str) -> int:
        byte_count = self._shelf.byte_count(blob_name(document_id))
        if byte_count is None:
            raise _missing(document_id, self._shelf.place)
        return byte_count

    def _chunks(self, document_id: str) -> Iterator[bytes]:
        try:
            yield from self._shelf.chunks(blob_name(document_id))
        except FileNotFoundError as error:
            raise _missing(document_id, self._shelf.place) from error


def _missing(document_id: str, place: str) -> BlobMissing:
    return BlobMissing(
        f"our copy of the document ({document_id[:DIGITS]}…) is not in {place}; submit the file again; if that does "
        "not help, see that its submitter's DOCTRIAGE_BLOBS__URL names the same place"
    )


def _unreadable(document_id: str, place: str, error: OSError) -> BlobDamaged:
    return BlobDamaged(
        f"our copy of the document ({document_id[:DIGITS]}…) in {place} cannot be read ({error.strerror}); check that "
        "the workers may read it, or submit the file again"
    )


def _damaged(document_id: str, place: str) -> BlobDamaged:
    return BlobDamaged(
        f"our copy of the document ({document_id[:DIGITS]}…) in {place} is damaged; submit the file again, "
        "which mends it"
    )
