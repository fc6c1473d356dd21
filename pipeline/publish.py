"""The files of a run, written whole or not at all, a page in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from models.document import Document
from models.errors import DocumentFailed, DocumentRejected, OutputImpossible
from models.tables import PageState
from pipeline import outputs
from pipeline.exports.formats import FORMATS, OutputFormat
from pipeline.store import PageRecord, PageStore
from pipeline.whole_files import (
    DiskFull,
    not_writable,
    prepare_folder,
    replacement,
    write_rows,
    written_whole,
)

if TYPE_CHECKING:
    from pipeline.exports.original import Original

__all__ = [
    "DiskFull",
    "DocumentOutput",
    "Published",
    "ReadingUnfinished",
    "document_outputs",
    "not_writable",
    "prepare_folder",
    "publish_document",
    "replacement",
    "write_rows",
    "written_whole",
]


class ReadingUnfinished(Exception):
    """Pages of the reading are being read (again): nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    outputs: tuple[Path, ...]
    failed_pages: int


def publish_document(
    pages: PageStore,
    *,
    reading_id: int,
    document: Document,
    source: str,
    stem: Path,
    formats: Sequence[str],
    original: Callable[[], Original],
) -> Published:
    """Write ``stem`` plus the suffix of each format. Raises ``OutputNotWritable``, ``ReadingUnfinished``, and
    ``DocumentFailed`` when there is no page to write, or a format cannot be made of the document."""
    written: list[Path] = []
    failed_pages = 0
    for output in document_outputs(
        pages, reading_id=reading_id, document=document, source=source, formats=formats, original=original
    ):
        path = stem.with_name(stem.name + output.suffix)
        with written_whole(path) as stream:
            failed_pages = output.write(stream.buffer)
        written.append(path)
    return Published(outputs=tuple(written), failed_pages=failed_pages)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOutput:
    """One of a document's files. ``write`` puts its bytes on a stream and tells how many of its pages failed; it raises
    ``ReadingUnfinished`` and ``OutputImpossible``."""

    suffix: str
    write: Callable[[BinaryIO], int]


def document_outputs(
    pages: PageStore,
    *,
    reading_id: int,
    document: Document,
    source: str,
    formats: Sequence[str],
    original: Callable[[], Original],
) -> Iterator[DocumentOutput]:
    """``original`` is asked for where a format needs it. Raises ``DocumentFailed`` when there is no page to write, and
    ``OutputImpossible`` for a format that is not known."""
    failure = pages.failure_of_all_pages(reading_id)
    if failure is not None:
        raise DocumentFailed(f"{source}: {failure}")
    header = outputs.document_header(document, source)
    for name in formats:
        if name not in FORMATS:
            raise OutputImpossible(
                f"{source}: there is no format {name} here; update doctriage on this machine"
            )

        def written(stream: BinaryIO, output: OutputFormat = FORMATS[name]) -> int:
            tally = _Tally(pages.stream_pages(reading_id))
            try:
                output.writer()(stream, header, tally, original() if output.needs_original else None)
            except DocumentRejected as error:
                raise OutputImpossible(f"{source}: no {output.name} output: {error}") from error
            return tally.failed_pages

        yield DocumentOutput(suffix=FORMATS[name].suffix, write=written)


@dataclass(slots=True)
class _Tally:
    """The pages as they are written out, counting those that failed."""

    records: Iterator[PageRecord]
    failed_pages: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for record in self.records:
            if record.state is PageState.DONE and record.content is not None:
                yield record.content
            elif record.state is PageState.FAILED:
                self.failed_pages += 1
                yield outputs.failed_page_json(
                    record.page_number, code=record.error_code or "", message=record.error_message or ""
                )
            else:
                raise ReadingUnfinished
