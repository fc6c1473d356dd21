"""Connections, and how long a client may keep one waiting. uvicorn waits for ever for the head of a request, and for a
client to take its answer."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 20.0
"""From the beginning of a connection, or the end of an answer, to the whole head of the next request."""

STALLED_S: Final = 60.0
LEAST_BYTES_PER_S: Final = 4_096
"""A client that is sent more than it takes has so long, and as long as what waits for it takes at this pace."""


class BoundedConnection(H11Protocol):
    """Closed where the head of a request does not come in time, cut off where an answer is not taken in time."""

    _awaiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_awaiting()
        self._end_stalled()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        limit_s = STALLED_S + self.transport.get_write_buffer_size() / LEAST_BYTES_PER_S
        self._end_stalled()
        self._stalled = self.loop.call_later(limit_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_stalled()
        super().resume_writing()

    def _await_head(self) -> None:
        """The time runs on while a head is awaited, whatever comes of it."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_awaiting()
        elif self._awaiting is None and not self.transport.is_closing():
            self._awaiting = self.loop.call_later(HEAD_S, self._close)

    def _close(self) -> None:
        self._awaiting = None
        self.transport.close()

    def _end_awaiting(self) -> None:
        if self._awaiting is not None:
            self._awaiting.cancel()
        self._awaiting = None

    def _end_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        self._stalled = None


def allow_many_connections() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
