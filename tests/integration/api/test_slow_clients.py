"""Clients that keep a connection, and send or take nothing, or next to nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress

import httpx2
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.fakes.asgi_host import AsgiHost
from workers.api import app as bounds
from workers.api import connections
from workers.api.app import BoundedBodies
from workers.api.connections import BoundedConnection

PATIENCE_S = 60


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await Response("hello")(scope, receive, send)


async def poured(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})


def trickled_to_the_end(host: AsgiHost, first: bytes) -> None:
    """A byte now and then, until the server has had enough."""
    with socket.create_connection(("127.0.0.1", host.port), timeout=0.02) as connection:
        connection.sendall(first)
        for _ in range(PATIENCE_S * 50):
            with suppress(TimeoutError):
                if connection.recv(1_000) == b"":
                    return
            try:
                connection.sendall(b"x")
            except OSError:
                return
    raise AssertionError("it is still taken")


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"])
def test_a_head_that_does_not_come_to_an_end_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    with AsgiHost(hello, http=BoundedConnection) as host:
        trickled_to_the_end(host, first)


def test_a_connection_that_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    with (
        AsgiHost(hello, http=BoundedConnection) as host,
        socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE_S) as connection,
    ):
        assert connection.recv(1_000) == b""


def test_an_answer_that_takes_longer_than_a_head_may_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.5)
        await Response("late")(scope, receive, send)

    with AsgiHost(late, http=BoundedConnection) as host, httpx2.Client(trust_env=False) as client:
        assert client.get(f"http://127.0.0.1:{host.port}/").text == "late"


def test_a_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALLED_S", 0.3)
    monkeypatch.setattr(connections, "LEAST_BYTES_PER_S", 2**40)
    is_over = threading.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        pouring = asyncio.ensure_future(poured(send))
        while (await receive())["type"] != "http.disconnect":
            pass
        pouring.cancel()
        is_over.set()

    with (
        AsgiHost(endless, http=BoundedConnection) as host,
        socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert is_over.wait(PATIENCE_S)


def test_a_body_that_does_not_come_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_S", 0.3)
    is_given_up = threading.Event()

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await Request(scope, receive).body()
        except ClientDisconnect:
            is_given_up.set()
        await Response("no", status_code=400)(scope, receive, send)

    with (
        AsgiHost(BoundedBodies(reading)) as host,
        socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome")
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")
    assert is_given_up.is_set()
