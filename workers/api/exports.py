"""Outputs that are made when they are asked for, in processes that a hostile document may bring down without harm.

Nothing of them is kept: they are written to files without a name, which end with whoever has them open."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Event
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from models.document import Document
from models.errors import (
    DoctriageError,
    DocumentEncrypted,
    NotReady,
    OutputImpossible,
    PageNotFound,
    PageTimedOut,
    WorkerCrashed,
)
from pipeline.blobs.writing import writing
from pipeline.exports.formats import FORMATS
from pipeline.settings import Settings
from workers.api.child import Children, lent_file
from workers.child_process import begin_child
from workers.logs import set_up_service_logs

if TYPE_CHECKING:
    from workers.exporting import Exporter, ReadDocument

LIMIT_S: Final = 240.0
"""Less than what clients wait for an answer."""

READ_AGAIN_S: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """``output`` is the name of a format; ``source`` is what the output calls the document."""

    document: Document
    reading_id: int
    source: str
    output: str


class Exports:
    """``make`` from any thread: as many at a time as there are processes."""

    def __init__(self, settings: Settings, *, limit_s: float = LIMIT_S) -> None:
        self._exporters = Children(
            _export, settings, name="doctriage-exporter", count=settings.api.export_processes
        )
        self._home = settings.home
        self._limit_s = limit_s

    def make(self, order: ExportOrder, unwanted: Event) -> BinaryIO:
        """The output, from its beginning on. Raises ``OutputImpossible``, ``DocumentEncrypted``, ``BlobMissing``,
        ``NotReady``, ``StoreUnavailable``, and ``NotWanted`` once ``unwanted`` is set."""
        what = f"{order.source}: no {order.output} output"
        again = f"send it again with outputs={order.output}, no page is read again"
        with ExitStack() as failing:
            with writing(self._home):
                file = cast(BinaryIO, failing.enter_context(tempfile.TemporaryFile(dir=self._home)))
            try:
                self._exporters.answer(order, what=what, limit_s=self._limit_s, file=file, unwanted=unwanted)
            except PageTimedOut as error:
                raise OutputImpossible(
                    f"{what}: making it takes more than {self._limit_s:g} s here; {again}"
                ) from error
            except WorkerCrashed as error:
                raise OutputImpossible(
                    f"{what}: whoever made it died over it; take another format"
                ) from error
            except DocumentEncrypted as error:
                raise DocumentEncrypted(
                    f"{what}: it shows the pages of an encrypted PDF, whose password is not kept; {again}, and "
                    "its password"
                ) from error
            file.seek(0)
            failing.pop_all()
        return file

    def close(self) -> None:
        self._exporters.close()


def _export(connection: Connection, settings: Settings) -> None:
    """The whole life of a process that makes outputs."""
    begin_child(settings)
    set_up_service_logs(settings)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            order: ExportOrder = connection.recv()
            with lent_file(connection) as file:
                answer = _made(order, file, settings)
            connection.send(answer)


def _made(order: ExportOrder, file: BinaryIO, settings: Settings) -> DoctriageError | None:
    """None once it is written, or why it is not."""
    from workers.exporting import ReadDocument, opened_exporter

    read = ReadDocument(
        document=order.document, reading_id=order.reading_id, source=order.source, output_stem=order.source
    )
    try:
        with opened_exporter(settings, ()) as exporter, writing(settings.home):
            _write(exporter, read, order.output, file)
    except PageNotFound as error:
        return NotReady(str(error), retry_after_s=READ_AGAIN_S)
    except DoctriageError as error:
        return error
    return None


def _write(exporter: Exporter, read: ReadDocument, output: str, file: BinaryIO) -> None:
    if FORMATS[output].needs_original:
        exporter.original(read.document)
    exporter.write(read, output, file)
    file.flush()
