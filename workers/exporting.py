"""Documents that were read before, written in another form: from the database and the blob store alone."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from models.document import Document, MediaType
from models.errors import DocumentEncrypted, PageNotFound
from pipeline.blobs import BlobStore
from pipeline.exports.original import Original
from pipeline.named_files import named_file
from pipeline.publish import DocumentOutput, ReadingUnfinished, document_outputs, publish_document
from pipeline.settings import Settings
from pipeline.store import Store, open_store
from workers.bootstrap import build_pdf_engine
from workers.originals import original_of
from workers.references import document_id_of

BEING_READ = "it is being read; wait for that, or run the same ingest again if it was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document whose pages are all there. ``output_stem`` is what its files are called, without their suffixes."""

    document: Document
    reading_id: int
    source: str
    output_stem: str


@dataclass(slots=True)
class Exporter:
    """``passwords`` open encrypted PDFs, for the formats that show their pages."""

    store: Store
    blobs: BlobStore
    settings: Settings
    passwords: Sequence[str] = field(repr=False)
    _stems: dict[str, str] = field(default_factory=dict)

    def find(self, reference: str) -> ReadDocument:
        """``reference`` as ``document_id_of`` takes it. Raises ``PageNotFound``."""
        document_id = document_id_of(self.store, reference)
        document = self.store.pages.document(document_id)
        reading_id = self.store.submissions.newest_complete_reading(document_id)
        if document is None or reading_id is None:
            raise PageNotFound(f"{reference}: {BEING_READ}")
        named = self.store.submissions.newest_source(document_id, name=reference)
        source, stem = (reference, document_id) if named is None else (named.name, named.output_stem)
        return ReadDocument(document=document, reading_id=reading_id, source=source, output_stem=stem)

    def write_files(self, read: ReadDocument, formats: Sequence[str], out_dir: Path) -> tuple[Path, ...]:
        """Below ``out_dir``, each whole or not at all. Two documents of one name get files of their own. Raises
        ``DocumentFailed``, ``OutputNotWritable`` and ``PageNotFound``."""
        document_id = read.document.document_id
        stem = read.output_stem
        if self._stems.setdefault(stem, document_id) != document_id:
            stem = f"{stem}~{document_id[:8]}"
        try:
            published = publish_document(
                self.store.pages,
                reading_id=read.reading_id,
                document=read.document,
                source=read.source,
                stem=out_dir / stem,
                formats=formats,
                original=partial(self.original, read.document),
            )
        except ReadingUnfinished as error:
            raise PageNotFound(f"{read.source}: {BEING_READ}") from error
        return published.outputs

    def write_file(self, read: ReadDocument, name: str, path: Path) -> None:
        """One format into a file or pipe that is named. Raises what ``write_files`` raises."""
        with named_file(path) as stream:
            self.write(read, name, stream.buffer)

    def write_to(self, read: ReadDocument, name: str, stream: BinaryIO) -> None:
        """One format to a stream, which gets nothing when anything is raised."""
        with tempfile.TemporaryFile() as whole:
            self.write(read, name, whole)
            whole.seek(0)
            shutil.copyfileobj(whole, stream)

    def write(self, read: ReadDocument, name: str, stream: BinaryIO) -> None:
        """One format to a stream, which may have got a part of it when anything is raised."""
        try:
            for output in self._outputs(read, name):
                output.write(stream)
        except ReadingUnfinished as error:
            raise PageNotFound(f"{read.source}: {BEING_READ}") from error

    def _outputs(self, read: ReadDocument, name: str) -> Iterator[DocumentOutput]:
        return document_outputs(
            self.store.pages,
            reading_id=read.reading_id,
            document=read.document,
            source=read.source,
            formats=[name],
            original=partial(self.original, read.document),
        )

    def original(self, document: Document) -> Original:
        """With the password that opens it. Raises ``DocumentEncrypted`` where none does, ``BlobMissing``,
        ``BlobDamaged`` and ``StoreUnavailable``."""
        original = original_of(document, self.blobs, self.settings, None)
        if document.media_type is not MediaType.PDF:
            return original
        pdf = build_pdf_engine()
        refusals: list[DocumentEncrypted] = []
        for password in (None, *self.passwords):
            try:
                pdf.inspect(original.path, password)
            except DocumentEncrypted as error:
                refusals.append(error)
            else:
                return original_of(document, self.blobs, self.settings, password)
        raise refusals[-1]


@contextlib.contextmanager
def opened_exporter(settings: Settings, passwords: Sequence[str]) -> Iterator[Exporter]:
    home = settings.home.absolute()
    with contextlib.closing(open_store(home, settings.database_url)) as store:
        yield Exporter(
            store=store, blobs=BlobStore(home, settings.blobs), settings=settings, passwords=passwords
        )
