"""An ASGI application on a real socket, in a thread, that can die and come back."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

PATIENCE_S = 20


class AsgiHost:
    """Serves on a free port of 127.0.0.1 between ``with`` and its end. The application finds the connection of
    a request as ``transport`` in its scope."""

    def __init__(self, app: ASGIApp, *, http: Any = "h11") -> None:
        self._app = app
        self._http = http
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._state = ServerState()
        self._listener: asyncio.Server | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(PATIENCE_S):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)

    @property
    def is_up(self) -> bool:
        return self._listener is not None

    def go_down(self) -> None:
        """Resets every connection and refuses new ones, until ``come_up``."""
        asyncio.run_coroutine_threadsafe(self.crash(), self._loop).result(PATIENCE_S)

    def come_up(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_S)

    async def crash(self, down_s: float | None = None) -> None:
        """``go_down``, on the server's own loop; it comes up by itself after ``down_s``."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await self._accept_no_more(listener)
            listener.close()
        for connection in list(self._state.connections):
            reset(connection.transport)
        await asyncio.sleep(0)
        if down_s is not None:
            self._loop.call_later(down_s, lambda: self._loop.create_task(self._listen()))

    async def _accept_no_more(self, listener: asyncio.Server) -> None:
        """Connections that were accepted are made first: one that is made after its listener was closed is lost, and
        nobody tells the other end."""
        for listening in listener.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(3):
            await asyncio.sleep(0)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._config = uvicorn.Config(
            self._with_transport,
            http=self._http,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
        )
        self._config.load()
        await self._listen()
        self._ready.set()
        await self._stop.wait()
        await self.crash()
        for task in (tasks := list(self._state.tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        if self._listener is not None:
            return
        self._listener = await self._loop.create_server(self._protocol, host="127.0.0.1", port=self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _protocol(self) -> asyncio.Protocol:
        protocol: Any = self._config.http_protocol_class
        made: asyncio.Protocol = protocol(
            config=self._config, server_state=self._state, app_state={}, _loop=self._loop
        )
        return made

    async def _with_transport(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["transport"] = send.__self__.transport  # type: ignore[attr-defined]
        await self._app(scope, receive, send)


def reset(transport: asyncio.Transport) -> None:
    """Ends a connection as a dying process does, with RST."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
