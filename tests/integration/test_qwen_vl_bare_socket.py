"""The engine against servers that answer in ways of their own, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from models.errors import (
    SettingsError,
    VlmBadResponse,
    VlmError,
    VlmRateLimited,
    VlmServerError,
    VlmUnreachable,
)
from models.transcription import VlmReply
from pipeline.engines.qwen_vl import QwenVlEngine, VlmEndpoint
from pipeline.engines.qwen_vl.answer_size import MOST_ANSWER_BYTES
from pipeline.planning.configured import load_plan
from pipeline.settings import VlmSettings
from tests.integration.vlm_calls import KEY, PROMPT, request_for
from workers.bootstrap import vlm_endpoint

COMPLETION = json.dumps({"choices": [{"message": {"content": "seen"}, "finish_reason": "stop"}]}).encode()
MEBIBYTE = b" " * 2**20


class BareServer:
    """Sends ``head`` once it has read ``cue``, and then ``body``, ``times`` over or until the client has gone."""

    def __init__(self, head: bytes, body: bytes = b"", *, times: int = 1, cue: bytes = b"\r\n\r\n") -> None:
        self._cue = cue
        self._head, self._body, self._times = head, body, times
        self.asked = b""
        self.sent_bytes = 0
        self.has_ended = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.asked = await reader.readuntil(self._cue)
            writer.write(self._head + b"\r\n\r\n")
            for _ in range(self._times):
                writer.write(self._body)
                await writer.drain()
                self.sent_bytes += len(self._body)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.has_ended.set()


def answered(server: BareServer, *, scheme: str = "http") -> VlmReply:
    async def call() -> VlmReply:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        address = f"{scheme}://127.0.0.1:{port}/v1"
        endpoint = VlmEndpoint(base_url=address, model_id="m", api_key=KEY, answer_timeout_s=20.0)
        engine = QwenVlEngine(endpoint, PROMPT)
        try:
            return await engine.transcribe(request_for())
        finally:
            await engine.close()
            await server.has_ended.wait()
            listening.close()
            await listening.wait_closed()

    return asyncio.run(call())


def failed(server: BareServer, *, scheme: str = "http") -> VlmError:
    with pytest.raises(VlmError) as caught:
        answered(server, scheme=scheme)
    return caught.value


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d" % len(COMPLETION),
        b"HTTP/1.1 206 Partial Content\r\nContent-Encoding: identity",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK",
    ],
)
def test_an_answer_is_read_however_it_is_framed(head: bytes) -> None:
    assert answered(BareServer(head, COMPLETION)).text == "seen"


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"503 Busy"])
@pytest.mark.parametrize("framing", [b"", b"\r\nContent-Length: 9999999999"])
def test_a_body_without_end_is_given_up(status: bytes, framing: bytes) -> None:
    server = BareServer(b"HTTP/1.1 " + status + framing, MEBIBYTE, times=400)
    tracemalloc.start()
    try:
        error = failed(server)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error, VlmBadResponse)
    assert "longer than 16 MiB" in str(error)
    assert server.sent_bytes < 4 * MOST_ANSWER_BYTES
    assert peak_bytes < 4 * MOST_ANSWER_BYTES


@pytest.mark.parametrize("packing", [b"gzip", b"gzip, gzip", b"deflate", b"br", b"zstd", b"x"])
def test_a_packed_answer_is_not_unpacked(packing: bytes) -> None:
    """A megabyte of it may be a gigabyte."""
    server = BareServer(b"HTTP/1.1 200 OK\r\nContent-Encoding: " + packing, gzip.compress(COMPLETION))
    error = failed(server)
    assert isinstance(error, VlmBadResponse)
    assert "switch compression off" in str(error)
    assert b"accept-encoding: identity" in server.asked.lower()


@pytest.mark.parametrize(
    "when",
    [
        b"Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
        b"Mon, 01 Jan 10000000000000000000000000 00:00:00 GMT",
        b"Mon, 01 Jan 0001 00:00:00 +2359",
        b"Mon, 32 Jan 2024 25:61:61 GMT",
    ],
)
def test_a_pause_until_no_date_at_all_is_still_a_refusal(when: bytes) -> None:
    error = failed(BareServer(b"HTTP/1.1 429 Slow\r\nRetry-After: " + when))
    assert isinstance(error, VlmRateLimited)
    assert error.retry_after_s in (None, 0.0)


def test_a_status_line_is_quoted_without_its_control_characters_and_the_key() -> None:
    error = failed(BareServer(b"HTTP/1.1 500 \x1b[31m" + KEY.encode()))
    assert isinstance(error, VlmServerError)
    assert str(error).isprintable()
    assert KEY not in str(error)


def test_a_redirect_is_told_without_its_password() -> None:
    head = b"HTTP/1.1 307 Moved\r\nLocation: http://name:geheim@host/v1?token=geheim"
    message = str(failed(BareServer(head)))
    assert "it moved to http://host/v1;" in message
    assert "geheim" not in message


def test_a_failed_handshake_is_named_in_the_words_of_tls() -> None:
    """Its error numbers are not the system's: 1 is not "Operation not permitted"."""
    error = failed(BareServer(b"HTTP/1.1 400 Bad Request", cue=b"\x16"), scheme="https")
    assert isinstance(error, VlmUnreachable)
    assert "SSL" in str(error)
    assert "not permitted" not in str(error)


@pytest.mark.parametrize(
    "url", ["http://host/v1?key=secret", "http://host/v1#secret", " http://host/v1", "http://host/v1\n"]
)
def test_an_address_that_nothing_can_be_put_behind_is_refused(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        VlmEndpoint(base_url=url, model_id="m")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("written", [KEY, f"{KEY}\n", f"\ufeff{KEY}\r\n"])
def test_a_key_file_may_come_from_any_editor(written: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(written.encode())
    settings = VlmSettings(url="http://host/v1", api_key_file=file)
    assert vlm_endpoint(settings, load_plan(settings)).api_key == KEY
