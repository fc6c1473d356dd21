"""A document's own bytes, for who writes its outputs."""

from __future__ import annotations

from models.document import Document
from pipeline.blobs import BlobStore
from pipeline.exports.original import Original
from pipeline.settings import Settings
from workers.bootstrap import build_pdf_engine


def original_of(document: Document, blobs: BlobStore, settings: Settings, password: str | None) -> Original:
    """Raises ``BlobMissing``, ``BlobDamaged`` and ``StoreUnavailable``."""
    return Original(
        path=blobs.local_path(document.document_id),
        media_type=document.media_type,
        password=password,
        build_pdf=build_pdf_engine,
        rasterise=settings.rasterise,
    )
