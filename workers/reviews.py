"""What people said of pages, as labels that ``doctriage calibrate`` and ``doctriage evaluate`` read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from models.document import MediaType
from models.errors import BlobMissing, OutputNotWritable
from pipeline.blobs import BlobStore
from pipeline.store.review_records import ReviewedPage
from workers.labelled import MANIFEST

DOCUMENTS: Final = "documents"
"""The folder of the copies, beside the manifest."""

UNNAMED_CLASS: Final = "page"
ID_DIGITS: Final = 16

SUFFIXES: Final[Mapping[MediaType, str]] = {
    MediaType.PDF: ".pdf",
    MediaType.PNG: ".png",
    MediaType.JPEG: ".jpg",
    MediaType.TIFF: ".tif",
    MediaType.WEBP: ".webp",
    MediaType.BMP: ".bmp",
    MediaType.GIF: ".gif",
    MediaType.JPEG2000: ".jp2",
    MediaType.HEIC: ".heic",
    MediaType.AVIF: ".avif",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCorpus:
    """``missing`` are ids of documents whose bytes are not there any more; their pages were left out."""

    pages: int
    documents: int
    missing: tuple[str, ...]


def label_row(page: ReviewedPage) -> dict[str, Any]:
    """A row of a corpus's manifest. Where reviewers differ the page is borderline."""
    return {
        "id": f"{page.document_id[:ID_DIGITS]}-p{page.page_number}",
        "path": str(document_path(page)),
        "sha256": page.document_id,
        "page_number": page.page_number,
        "needs_vlm": page.needs_vlm,
        "needs_vlm_strength": "borderline" if page.differ else "clear",
        "primary_class": next(iter(page.classes), UNNAMED_CLASS),
        "classes": list(page.classes),
        "source_path": page.name,
        "reviewers": page.reviewers,
        "note": page.remark or "",
    }


def document_path(page: ReviewedPage) -> Path:
    """Below the corpus's folder."""
    return Path(DOCUMENTS) / f"{page.document_id}{SUFFIXES[page.media_type]}"


def label_lines(pages: Iterable[ReviewedPage]) -> Iterator[str]:
    """JSON, a line a page."""
    for page in pages:
        yield json.dumps(label_row(page), ensure_ascii=False) + "\n"


def export_corpus(pages: Iterable[ReviewedPage], blobs: BlobStore, folder: Path) -> ExportedCorpus:
    """Write the labels and copies of the documents they are about. What the folder has of them already stays; its
    manifest is replaced, whole or not at all. Raises ``OutputNotWritable`` and what the blob store raises."""
    try:
        (folder / DOCUMENTS).mkdir(parents=True, exist_ok=True)
        return _exported(pages, blobs, folder)
    except OSError as error:
        raise OutputNotWritable(
            f"{folder}: cannot be written ({error.strerror}); name a folder that can"
        ) from error


def _exported(pages: Iterable[ReviewedPage], blobs: BlobStore, folder: Path) -> ExportedCorpus:
    manifest, unfinished = folder / MANIFEST, folder / f".{MANIFEST}.part"
    there: set[str] = set()
    missing: set[str] = set()
    written = 0
    with unfinished.open("w", encoding="utf-8", newline="\n") as lines:
        for page in pages:
            if page.document_id not in there | missing:
                (there if _copied(page, blobs, folder) else missing).add(page.document_id)
            if page.document_id in there:
                lines.writelines(label_lines([page]))
                written += 1
    unfinished.replace(manifest)
    return ExportedCorpus(pages=written, documents=len(there), missing=tuple(sorted(missing)))


def _copied(page: ReviewedPage, blobs: BlobStore, folder: Path) -> bool:
    """False where the bytes are not there."""
    copy = folder / document_path(page)
    if copy.exists():
        return True
    unfinished = copy.with_name(f".{copy.name}.part")
    try:
        with blobs.lent(page.document_id) as path:
            shutil.copyfile(path, unfinished)
    except BlobMissing:
        return False
    unfinished.replace(copy)
    return True
