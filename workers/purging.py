"""Documents that are to be erased everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.errors import PageNotFound, SourceUnreadable
from pipeline.blobs import BlobStore, open_blobs, sha256_of
from pipeline.chargeback.price_book import load_price_book
from pipeline.settings import Settings
from pipeline.store import HeldDocument, Store, open_store
from workers.owner import is_alive
from workers.references import MIN_ID_DIGITS
from workers.scratch import remove_abandoned_scratch

IDS_AT_A_TIME: Final = 500
FRESH_COPY_S: Final = 3_600.0
"""A copy may be here for so long before the database knows its document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedDocument:
    """What there was of it, or is. ``byte_count`` is that of our copy, None where there was none; ``outputs`` are
    those kept in the blob store."""

    reference: str
    held: HeldDocument
    byte_count: int | None
    outputs: int


@dataclass(frozen=True, slots=True)
class Purge:
    store: Store
    blobs: BlobStore

    def find(self, references: Sequence[str]) -> tuple[ErasedDocument, ...]:
        """What would be erased; each document once. Raises ``PageNotFound`` and ``DocumentInUse``."""
        ids = {self._document_id(reference): reference for reference in references}
        return tuple(self._found(reference, document_id) for document_id, reference in ids.items())

    def erase(self, found: Sequence[ErasedDocument]) -> tuple[ErasedDocument, ...]:
        """None of them where one is in use, as far as that is known before. Raises ``DocumentInUse``."""
        for one in found:
            self.store.purge.held(one.held.document_id, is_alive)
        return tuple(map(self._erased, found))

    def _erased(self, found: ErasedDocument) -> ErasedDocument:
        """The bytes first, so that one that is cut short can be done again."""
        document_id = found.held.document_id
        byte_count = self.blobs.byte_count(document_id)
        self.blobs.erase(document_id)
        outputs = sum(self.blobs.delete_results(source_id) for source_id in found.held.result_sources)
        held = self.store.purge.purge(document_id, is_alive)
        return ErasedDocument(reference=found.reference, held=held, byte_count=byte_count, outputs=outputs)

    def end(self) -> bool:
        """Submissions that waited for nothing else are over. False where another program keeps what was erased in the
        database's log for now."""
        self.store.pool.repair()
        return self.store.purge.empty_log()

    def _found(self, reference: str, document_id: str) -> ErasedDocument:
        held = self.store.purge.held(document_id, is_alive)
        return ErasedDocument(
            reference=reference,
            held=held,
            byte_count=self.blobs.byte_count(document_id),
            outputs=sum(len(self.blobs.results(source_id)) for source_id in held.result_sources),
        )

    def _document_id(self, reference: str) -> str:
        """Stricter than where a document is only shown: a name that several documents had is none of them."""
        known = self._of_file(Path(reference)) or self.store.purge.documents_named(reference)
        is_id = set(reference) <= set("0123456789abcdef") and len(reference) >= MIN_ID_DIGITS
        if not known and is_id:
            known = self.store.purge.documents_starting(reference)
        if not known:
            raise PageNotFound(
                f"{reference}: no such document; name a source, its file, or at least {MIN_ID_DIGITS} digits of "
                "its document id"
            )
        if len(known) > 1:
            ids = ", ".join(document_id[:12] for document_id in known)
            raise PageNotFound(
                f"{reference}: {len(known)} documents answer to that ({ids}); give one of those ids"
            )
        return known[0]

    def _of_file(self, path: Path) -> tuple[str, ...]:
        """The document of these bytes, where there is something of it, if only a copy that the database has lost."""
        if not path.is_file():
            return ()
        try:
            document_id = sha256_of(path)
        except SourceUnreadable as error:
            raise PageNotFound(f"{path}: {error}") from error
        is_known = not self.store.purge.unknown([document_id])
        return (document_id,) if is_known or self.blobs.byte_count(document_id) is not None else ()


@contextmanager
def opened_purge(settings: Settings) -> Iterator[Purge]:
    """With calls that nobody will close booked, and files that runs left when they died gone. Raises
    ``StoreUnavailable``."""
    home = settings.home.absolute()
    blobs = open_blobs(home, settings.blobs)
    price_book = load_price_book(settings.chargeback.price_book_file)
    with closing(open_store(home, settings.database_url)) as store:
        store.transcriptions.close_abandoned(price_book)
        blobs.remove_abandoned()
        remove_abandoned_scratch(home)
        yield Purge(store, blobs)


def drop_purged_copies(store: Store, blobs: BlobStore) -> int:
    """Drop this machine's copies of documents that were erased on another; how many. Raises ``StoreUnavailable``."""
    cached = blobs.cached(older_than_s=FRESH_COPY_S)
    dropped = 0
    for start in range(0, len(cached), IDS_AT_A_TIME):
        purged = store.purge.unknown(cached[start : start + IDS_AT_A_TIME])
        dropped += sum(blobs.forget(document_id) for document_id in purged)
    return dropped
