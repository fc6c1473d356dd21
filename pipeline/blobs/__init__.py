"""The blob store: documents' bytes and the outputs that are kept, in a folder or in an S3-compatible store."""

from __future__ import annotations

from pipeline.blobs.copies import Snapshot
from pipeline.blobs.sources import sha256_of
from pipeline.blobs.store import BlobStore, open_blobs

__all__ = ["BlobStore", "Snapshot", "open_blobs", "sha256_of"]
