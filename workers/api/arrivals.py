"""An upload as it arrives: its file goes straight into the blob store's folder for what is not whole yet, hashed on the
way, never in memory as a whole and never twice on the disk."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request

from models.errors import BodyMalformed, UploadTooSlow
from pipeline.blobs import BlobStore, Snapshot
from pipeline.intake import HEAD_BYTES, sniffed_media_type
from workers.api.form import FormParser, boundary_of, too_many_bytes

CHUNK_BYTES: Final = 256 * 1024
FORM_BYTES: Final = 2**20
"""What a form may have beside its file."""

LEAST_BYTES_PER_S: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    snapshot: Snapshot
    file_name: str
    fields: dict[str, str]


async def received(
    request: Request, blobs: BlobStore, *, max_bytes: int, idle_s: float, threads: CapacityLimiter
) -> Arrival:
    """The caller keeps or discards its snapshot. Raises BodyMalformed, BodyUnsupported, RequestInvalid, TooManyBytes,
    UploadTooSlow, StoreUnavailable, and EmptyFile and UnsupportedMediaType for a file that cannot be a document;
    nothing is left of it then."""
    chunks = aiter(request.stream())
    try:
        parser = FormParser(boundary_of(request.headers.get("content-type")), max_bytes)
        if _announced_bytes(request) > max_bytes + FORM_BYTES:
            raise too_many_bytes(max_bytes)
        return await _received(_bounded(chunks, max_bytes), parser, blobs, idle_s, threads)
    except ClientDisconnect as error:
        raise BodyMalformed("the connection ended before the document was there; send it again") from error


def _announced_bytes(request: Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


async def _bounded(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """What stands around the file counts too, as what follows the last boundary. Raises TooManyBytes."""
    left = max_bytes + FORM_BYTES
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise too_many_bytes(max_bytes)
        yield chunk


async def _received(
    chunks: AsyncIterator[bytes],
    parser: FormParser,
    blobs: BlobStore,
    idle_s: float,
    threads: CapacityLimiter,
) -> Arrival:
    with ExitStack() as stack:
        writer, path = await run_sync(stack.enter_context, blobs.incoming(), limiter=threads)
        file = _File(writer, path)
        pace = _Pace(idle_s)
        while (chunk := await _next(chunks, idle_s)) is not None:
            pace.require(len(chunk))
            parser.feed(chunk)
            if parser.pending_bytes >= CHUNK_BYTES:
                await run_sync(file.write, parser.taken(), limiter=threads)
        parser.end()
        await run_sync(file.write, parser.taken(), limiter=threads)
        await run_sync(writer.flush, limiter=threads)
    return Arrival(snapshot=file.snapshot(), file_name=parser.file_name or "", fields=parser.fields)


class _File:
    def __init__(self, writer: BinaryIO, path: Path) -> None:
        self._writer = writer
        self._path = path
        self._digest = hashlib.sha256()
        self._byte_count = 0

    def write(self, chunk: bytearray) -> None:
        """The first chunk is large, or it is all. Raises EmptyFile and UnsupportedMediaType for it."""
        if not self._byte_count:
            sniffed_media_type(bytes(chunk[:HEAD_BYTES]))
        self._digest.update(chunk)
        self._byte_count += len(chunk)
        self._writer.write(chunk)

    def snapshot(self) -> Snapshot:
        return Snapshot(path=self._path, document_id=self._digest.hexdigest(), byte_count=self._byte_count)


class _Pace:
    """Whoever sends a byte a minute keeps a place as well as whoever sends nothing."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._began_s = time.monotonic()
        self._byte_count = 0

    def require(self, more_bytes: int) -> None:
        """Raises UploadTooSlow."""
        self._byte_count += more_bytes
        elapsed_s = time.monotonic() - self._began_s
        if elapsed_s > self._idle_s + self._byte_count / LEAST_BYTES_PER_S:
            raise UploadTooSlow(
                f"less than {LEAST_BYTES_PER_S:,} bytes a second came; send it again over a faster line"
            )


async def _next(chunks: AsyncIterator[bytes], idle_s: float) -> bytes | None:
    """None at the end."""
    try:
        async with asyncio.timeout(idle_s):
            return await anext(chunks, None)
    except TimeoutError as error:
        raise UploadTooSlow(f"nothing more came for {idle_s:g} s; send it again") from error
