"""Intake of a source: its bytes are kept, looked at, and its document is known to the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from models.document import Document
from models.errors import DocumentEncrypted
from pipeline.blobs import BlobStore
from pipeline.settings import Settings
from pipeline.store import Store

if TYPE_CHECKING:
    from pipeline.ports import PdfEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentIntake:
    """``pdf`` gives the engine that opens PDFs. With each document comes the password that opened it: none is tried
    first, then each of those given, in order. Every refusal is a ``DocumentRejected``."""

    settings: Settings
    pdf: Callable[[], PdfEngine]
    blobs: BlobStore
    store: Store

    def take_in(self, path: Path, passwords: Sequence[str]) -> tuple[Document, str | None]:
        """Copy a file of this machine and look at the copy; one that is refused is not kept. Raises
        ``DocumentRejected`` and ``StoreUnavailable``."""
        snapshot = self.blobs.take(path, max_bytes=self.settings.intake.max_bytes)
        try:
            document, password = self._inspect(snapshot.path, passwords)
        except BaseException:
            self.blobs.discard(snapshot)
            raise
        self.blobs.keep(snapshot)
        self.store.pages.save_document(document)
        return document, password

    def inspect_blob(self, document_id: str, passwords: Sequence[str]) -> tuple[Document, str | None]:
        """Look at bytes that are in the blob store already, and stay there. Raises ``DocumentRejected`` and
        ``StoreUnavailable``."""
        with self.blobs.lent(document_id) as path:
            document, password = self._inspect(path, passwords)
        self.store.pages.save_document(document)
        return document, password

    def _inspect(self, path: Path, passwords: Sequence[str]) -> tuple[Document, str | None]:
        from pipeline.intake import inspect_source

        refusal: DocumentEncrypted | None = None
        for password in (None, *passwords):
            try:
                document = inspect_source(
                    path, pdf=self.pdf(), limits=self.settings.intake, password=password
                )
            except DocumentEncrypted as error:
                refusal = error
            else:
                return document, password
        assert refusal is not None
        raise refusal
