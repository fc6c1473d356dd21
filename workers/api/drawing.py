"""Pictures of pages, drawn in processes that a hostile document may bring down without harm."""

from __future__ import annotations

import io
import multiprocessing
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from models.document import Document
from models.errors import DoctriageError, PageFailed, PageNotFound, PageTimedOut, WorkerCrashed
from pipeline.blobs import BlobStore
from pipeline.settings import Settings
from workers.child_process import begin_child
from workers.logs import set_up_service_logs
from workers.pool import interrupts_held_back, kill_group

DRAWN_BY_ONE: Final = 500
"""Pictures, before a process is replaced by a fresh one."""

START_S: Final = 30.0
JPEG_QUALITY: Final = 85


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureOrder:
    """A page of a document, no wider than ``width_px``. With ``page``, its JSON, its boxes are drawn over it."""

    document: Document
    page_number: int
    password: str | None = field(repr=False)
    width_px: int | None
    is_jpeg: bool
    page: Mapping[str, Any] | None = field(default=None, repr=False)


class Drawing:
    """``draw`` from any thread: as many at a time as there are processes, and the others wait."""

    def __init__(self, settings: Settings) -> None:
        self._idle: queue.SimpleQueue[_Painter] = queue.SimpleQueue()
        for _ in range(settings.api.drawing_processes):
            self._idle.put(_Painter(settings))
        self._count = settings.api.drawing_processes
        self._limit_s = 2 * settings.rasterise.timeout_s + START_S

    def draw(self, order: PictureOrder) -> bytes:
        """A PNG or JPEG file. Raises ``PageFailed``, ``BlobMissing``, ``StoreUnavailable`` and others as the stages
        do."""
        try:
            painter = self._idle.get(timeout=self._limit_s)
        except queue.Empty as error:
            raise PageTimedOut("too many pages are being drawn; try again") from error
        try:
            return painter.draw(order, limit_s=self._limit_s)
        finally:
            self._idle.put(painter)

    def close(self) -> None:
        for _ in range(self._count):
            with suppress(queue.Empty):
                self._idle.get(timeout=1.0).end()


class _Painter:
    """One place for a process, which is started with the first picture."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._drawn = 0
        self._lock = threading.Lock()

    def draw(self, order: PictureOrder, *, limit_s: float) -> bytes:
        with self._lock:
            connection = self._connected()
            try:
                connection.send(order)
                if not connection.poll(limit_s):
                    self.end()
                    raise PageTimedOut(f"page {order.page_number}: drawing it takes more than {limit_s:g} s")
                answer: bytes | DoctriageError = connection.recv()
            except (EOFError, BrokenPipeError, ConnectionResetError) as error:
                self.end()
                raise WorkerCrashed(f"page {order.page_number}: whoever drew it died over it") from error
            self._drawn += 1
            if self._drawn >= DRAWN_BY_ONE:
                self.end()
            if isinstance(answer, DoctriageError):
                raise answer
            return answer

    def end(self) -> None:
        if self._process is not None and self._connection is not None:
            kill_group(self._process)
            self._process.join()
            self._connection.close()
        self._process = self._connection = None
        self._drawn = 0

    def _connected(self) -> Connection:
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_paint, args=(theirs, self._settings), name="doctriage-painter", daemon=True
            )
            with interrupts_held_back():
                process.start()
            theirs.close()
            self._process, self._connection = process, ours
        return self._connection


def _paint(connection: Connection, settings: Settings) -> None:
    """The whole life of a process that draws."""
    begin_child(settings)
    set_up_service_logs(settings)
    blobs = BlobStore(settings.home, settings.blobs)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            order: PictureOrder = connection.recv()
            try:
                connection.send(_drawn(order, blobs, settings))
            except DoctriageError as error:
                connection.send(error)


def _drawn(order: PictureOrder, blobs: BlobStore, settings: Settings) -> bytes:
    from PIL import Image

    from pipeline.overlay import draw_overlay

    image = _raster(order, blobs, settings)
    if order.page is not None:
        size = (order.page["width_px"], order.page["height_px"])
        image = draw_overlay(image if image.size == size else image.resize(size), order.page)
    if order.width_px is not None and order.width_px < image.width:
        height_px = max(1, round(image.height * order.width_px / image.width))
        image = image.resize((order.width_px, height_px), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    if order.is_jpeg:
        image.convert("RGB").save(file, format="JPEG", quality=JPEG_QUALITY)
    else:
        image.save(file, format="PNG")
    return file.getvalue()


def _raster(order: PictureOrder, blobs: BlobStore, settings: Settings) -> Any:
    from pipeline.rasterise import rasterise_pages
    from workers.bootstrap import build_pdf_engine

    with blobs.lent(order.document.document_id) as path:
        for _, outcome in rasterise_pages(
            path,
            order.document.media_type,
            [order.page_number],
            pdf=build_pdf_engine(),
            settings=settings.rasterise,
            password=order.password,
        ):
            if isinstance(outcome, PageFailed):
                raise outcome
            return outcome.image
    raise PageNotFound(f"page {order.page_number} could not be drawn")
