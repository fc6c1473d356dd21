"""Pictures of pages, drawn in processes that a hostile document may bring down without harm."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final

from models.document import Document
from models.errors import DoctriageError, PageFailed, PageNotFound
from pipeline.blobs import BlobStore
from pipeline.settings import Settings
from workers.api.child import START_S, Children
from workers.child_process import begin_child
from workers.logs import set_up_service_logs

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
        self._painters = Children(
            _paint, settings, name="doctriage-painter", count=settings.api.drawing_processes
        )
        self._limit_s = 2 * settings.rasterise.timeout_s + START_S

    def draw(self, order: PictureOrder) -> bytes:
        """A PNG or JPEG file. Raises ``PageFailed``, ``BlobMissing``, ``StoreUnavailable`` and others as the stages
        do."""
        drawn: bytes = self._painters.answer(order, what=f"page {order.page_number}", limit_s=self._limit_s)
        return drawn

    def close(self) -> None:
        self._painters.close()


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
