"""The files of a run, written whole or not at all, a page in memory at a time."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from models.document import Document
from models.errors import DocumentFailed, DocumentRejected, OutputImpossible, OutputNotWritable
from models.tables import PageState
from pipeline import outputs
from pipeline.exports.formats import FORMATS, OutputFormat
from pipeline.store import PageRecord, PageStore

if TYPE_CHECKING:
    from pipeline.exports.original import Original


class DiskFull(OutputNotWritable):
    """Nothing more can be written at all, so there is no use in going on."""

    code = "disk_full"


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


def prepare_folder(folder: Path, run_files: Iterable[str]) -> None:
    """Make the output folder and, where they are missing, its ``run_files``, by which it is known as one
    from now on. Raises ``OutputNotWritable``."""
    try:
        _make_folder(folder)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctriage-"):
            pass
        for name in run_files:
            (folder / name).open("a").close()
    except FileExistsError as error:
        raise OutputNotWritable(f"{folder}: is a file, not a folder; choose another --out") from error
    except OSError as error:
        raise not_writable(folder, error) from error


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    with written_whole(path) as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """A stream of text, its ``buffer`` one of bytes, that takes ``path``'s place at the end, or leaves no trace when
    anything is raised."""
    try:
        _make_folder(path.parent)
        with replacement(path) as stream:
            yield stream
    except OSError as error:
        raise not_writable(path, error) from error


@contextlib.contextmanager
def replacement(path: Path, *, like: os.stat_result | None = None) -> Iterator[TextIO]:
    """The same in a folder that is there; raises OSError. The file has the mode, and where that is allowed the owner,
    of ``like``; without it, those of a new file."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".doctriage-", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            if like is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, 0o666 & ~_umask() if like is None else stat.S_IMODE(like.st_mode))
            yield stream
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_folder(folder: Path) -> None:
    """With all that it lies in, which ``Path.mkdir`` makes by a call within a call, and too few for some."""
    missing = itertools.takewhile(lambda place: not place.exists(), folder.parents)
    for place in (*reversed(list(missing)), folder):
        place.mkdir(exist_ok=True)


def not_writable(path: Path, error: OSError) -> OutputNotWritable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{path}: the disk is full; free some space and run again")
    return OutputNotWritable(f"{path}: cannot be written ({error.strerror}); choose another folder")


def _umask() -> int:
    """The mask new files are made with; reading it means setting it for an instant."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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
