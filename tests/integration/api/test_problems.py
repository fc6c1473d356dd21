"""Whatever is wrong with a request, the answer is a problem with a stable code and what to do."""

from __future__ import annotations

import hashlib
import math
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api_server import ApiServer, Json, api_server
from tests.integration.api.conftest import MOST_UPLOAD_BYTES
from workers.api.cursors import cursor

FILE = {"file": ("a.pdf", b"%PDF-1.4")}

REQUESTS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "no such path": ("GET", "/v1/nothing", {}, 404, "not_found"),
    "no such document": ("GET", "/v1/documents/" + "0" * 32, {}, 404, "document_not_found"),
    "no such result": ("GET", "/v1/documents/x/result", {}, 404, "document_not_found"),
    "another method": ("PUT", "/v1/documents", {}, 405, "method_not_allowed"),
    "no form": ("POST", "/v1/documents", {"content": b"{}"}, 415, "body_unsupported"),
    "a form of another kind": ("POST", "/v1/documents", {"data": {"file": "a"}}, 415, "body_unsupported"),
    "no file": ("POST", "/v1/documents", {"files": {"priority": (None, "3")}}, 422, "request_invalid"),
    "a second file": ("POST", "/v1/documents", {"files": {**FILE, "b": ("b", b"b")}}, 422, "request_invalid"),
    "an unknown field": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"colour": "red"}},
        422,
        "request_invalid",
    ),
    "a wrong field": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"priority": "12"}},
        422,
        "request_invalid",
    ),
    "no JSON": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"metadata": "[1]"}},
        422,
        "request_invalid",
    ),
    "a number that JSON has not": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"metadata": '{"a": 1e400}'}},
        422,
        "request_invalid",
    ),
    "too much JSON": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"metadata": '{"a": "' + "x" * 17_000 + '"}'}},
        422,
        "request_invalid",
    ),
    "an unknown output": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"outputs": "docx"}},
        422,
        "request_invalid",
    ),
    "no language": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"languages": "$$"}},
        422,
        "request_invalid",
    ),
    "no cost centre": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"cost_centre": "a/b/c"}},
        422,
        "request_invalid",
    ),
    "no key": (
        "POST",
        "/v1/documents",
        {"files": FILE, "headers": {"idempotency-key": "two words"}},
        422,
        "request_invalid",
    ),
    "a file too large": (
        "POST",
        "/v1/documents",
        {"files": {"file": ("a.pdf", b"%PDF-1.7" + bytes(MOST_UPLOAD_BYTES))}},
        413,
        "too_many_bytes",
    ),
    "fields too large": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"languages": "x" * 70_000}},
        422,
        "request_invalid",
    ),
    "a body too large": (
        "PUT",
        "/v1/documents/x/pages/1/review",
        {"content": b" " * 2_000_000, "headers": {"content-type": "application/json"}},
        413,
        "body_too_large",
    ),
    "a cursor that is none": ("GET", "/v1/documents?cursor=!!", {}, 422, "request_invalid"),
    "a cursor without a time": (
        "GET",
        "/v1/documents?cursor=" + cursor(math.nan, "0" * 32),
        {},
        422,
        "request_invalid",
    ),
    "a cursor without a document": (
        "GET",
        "/v1/reviews?cursor=" + cursor(1.0, "x", 1),
        {},
        422,
        "request_invalid",
    ),
    "a cursor behind all pages": (
        "GET",
        "/v1/reviews?cursor=" + cursor(1.0, "0" * 32, 2**63),
        {},
        422,
        "request_invalid",
    ),
    "a NUL": ("GET", "/v1/documents?name=%00", {}, 422, "request_invalid"),
    "a number for a day": ("GET", "/v1/chargeback?from=20261201", {}, 422, "request_invalid"),
    "no number": ("GET", "/v1/documents?limit=many", {}, 422, "request_invalid"),
    "a fraction": ("GET", "/v1/documents?limit=5.0", {}, 422, "request_invalid"),
    "a number of a program": ("GET", "/v1/reviews?after_page=1_0", {}, 422, "request_invalid"),
    "a page that is no whole number": ("GET", "/v1/documents/x/pages/1.0", {}, 422, "request_invalid"),
    "a number in a form": (
        "POST",
        "/v1/documents",
        {"files": FILE, "data": {"priority": "+5"}},
        422,
        "request_invalid",
    ),
    "neither true nor false": ("GET", "/v1/reviews?reviewed=yes", {}, 422, "request_invalid"),
    "a number for true": ("DELETE", "/v1/documents/x?erase=1", {}, 422, "request_invalid"),
    "days that are none": ("GET", "/v1/chargeback?from=2026-02-02&to=2026-02-01", {}, 422, "request_invalid"),
    "no month": ("GET", "/v1/budgets?month=soon", {}, 422, "request_invalid"),
}


def assert_problem(answer: Any, status: int, code: str) -> Json:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: Json = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:doctriage:problem:{code}"
    assert problem["detail"]
    assert problem["advice"]
    assert problem["instance"] == urlsplit(str(answer.url)).path
    return problem


@pytest.mark.parametrize("name", REQUESTS)
def test_every_refusal_is_a_problem(server: ApiServer, name: str) -> None:
    method, path, options, status, code = REQUESTS[name]
    with server.client() as client:
        assert_problem(client.request(method, path, **options), status, code)
    assert server.files("incoming") == []
    assert server.rows("SELECT 1 FROM arriving_blobs") == []


def test_a_field_that_is_wrong_is_named(server: ApiServer) -> None:
    with server.client() as client:
        answer = client.post("/v1/documents", files=FILE, data={"priority": "12", "colour": "red"})
        errors = assert_problem(answer, 422, "request_invalid")["errors"]
        assert {error["field"] for error in errors} == {"priority", "colour"}
        allowed = client.put("/v1/documents").headers["allow"]
        assert set(allowed.replace(" ", "").split(",")) == {"GET", "POST"}


def exchanged(server: ApiServer, head: str, body: bytes = b"", *, closes: bool = False) -> bytes:
    """All that a server says to this, byte by byte."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        if closes:
            connection.shutdown(socket.SHUT_WR)
        said = b""
        while chunk := connection.recv(65_536):
            said += chunk
        return said


def trickled(server: ApiServer, head: str, body: bytes) -> bytes:
    """What a server says to somebody who sends a byte now and then, and never stops by himself."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        while True:
            connection.sendall(b"x")
            with suppress(TimeoutError):
                return connection.recv(65_536)


HEAD = "POST /v1/documents HTTP/1.1\nHost: localhost\nConnection: close\n"
FORM = "Content-Type: multipart/form-data; boundary=b\n"
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.4'


@pytest.mark.parametrize(
    ("form", "body"),
    {
        "ends before its last boundary": (FORM, PART),
        "is no form": (FORM, b"anything at all"),
        "is empty": (FORM, b""),
    }.values(),
    ids=str,
)
def test_a_body_that_is_not_what_it_says_is_a_problem(server: ApiServer, form: str, body: bytes) -> None:
    said = exchanged(server, f"{HEAD}{form}Content-Length: {len(body)}\n\n", body)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b'"code": "body_malformed"' in said
    assert server.files("incoming") == []


def test_an_upload_that_breaks_off_leaves_nothing(server: ApiServer) -> None:
    before = server.rows("SELECT count(*) FROM uploads")
    exchanged(server, f"{HEAD}{FORM}Content-Length: 100000\n\n", PART + b"x" * 5_000, closes=True)
    server.wait_until(lambda: server.files("incoming") == [])
    assert server.rows("SELECT count(*) FROM uploads") == before


def test_a_large_file_is_refused_while_it_is_sent(server: ApiServer) -> None:
    """Nobody said how large it is: it comes in chunks."""
    chunk = b"x" * 2**20
    chunks = f"{len(PART):x}\r\n".encode() + PART + b"\r\n"
    chunks += (f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n") * 8 + b"0\r\n\r\n"
    said = exchanged(server, f"{HEAD}{FORM}Transfer-Encoding: chunked\n\n", chunks)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert server.files("incoming") == []


def test_what_follows_the_last_boundary_does_not_go_on_for_ever(server: ApiServer) -> None:
    whole, more = PART + b"\r\n--b--\r\n", b"x" * 2**20
    chunks = f"{len(whole):x}\r\n".encode() + whole + b"\r\n"
    chunks += (f"{len(more):x}\r\n".encode() + more + b"\r\n") * 8 + b"0\r\n\r\n"
    said = exchanged(server, f"{HEAD}{FORM}Transfer-Encoding: chunked\n\n", chunks)
    assert said.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/quotes"])
@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"just some words\n" * 50, 415, "unsupported_media_type"),
        (b"<!DOCTYPE html><html><body>a page</body></html>", 415, "unsupported_media_type"),
        (b"PK\x05\x06" + bytes(18), 415, "unsupported_media_type"),
        (b"\x7fELF\x02\x01\x01" + bytes(2 * 2**20), 415, "unsupported_media_type"),
        (b"", 422, "empty_file"),
    ],
    ids=["text", "web page", "archive", "program", "empty"],
)
def test_what_is_no_document_is_refused_and_leaves_nothing(
    server: ApiServer, path: str, content: bytes, status: int, code: str
) -> None:
    with server.client() as client:
        before = server.rows("SELECT count(*) FROM uploads")
        problem = assert_problem(client.post(path, files={"file": ("a.pdf", content)}), status, code)
    assert problem["advice"]
    assert server.rows("SELECT count(*) FROM uploads") == before
    assert server.rows("SELECT 1 FROM arriving_blobs") == []
    assert hashlib.sha256(content).hexdigest() not in server.files("blobs")
    assert server.files("incoming") == []


def test_a_document_that_cannot_be_read_fails_with_its_reason(server: ApiServer) -> None:
    upload_id = server.send(("broken.pdf", b"%PDF-1.4\nbroken")).json()["id"]
    document = server.await_end(upload_id)
    assert document["state"] == "failed"
    assert document["error"]["code"] == "document_corrupt"
    with server.client() as client:
        assert_problem(client.get(f"/v1/documents/{upload_id}/result"), 409, "document_failed")
        assert_problem(client.get(f"/v1/documents/{upload_id}/pages/1"), 404, "page_not_found")
        assert_problem(client.get(f"/v1/documents/{upload_id}/pages/0"), 422, "request_invalid")


def test_a_document_that_arrives_slowly_for_a_quote_keeps_no_other_quote_waiting(server: ApiServer) -> None:
    head = f"{HEAD.replace('/v1/documents', '/v1/quotes')}{FORM}Content-Length: 100000\n\n"
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as slow:
        slow.sendall(head.replace("\n", "\r\n").encode() + PART)
        server.wait_until(lambda: server.files("incoming") != [])
        with server.client() as client:
            answer = client.post("/v1/quotes", files={"file": ("a.pdf", b"%PDF-1.4 nonsense")})
        assert answer.json()["refusals"][0]["code"] == "document_corrupt"
    server.wait_until(lambda: server.files("incoming") == [])


def test_uploads_are_bounded_in_number_in_time_and_in_memory(tmp_path: Path) -> None:
    with api_server(
        tmp_path,
        DOCTRIAGE_API__MAX_UPLOADS_AT_ONCE="1",
        DOCTRIAGE_API__UPLOAD_WAIT_S="0.2",
        DOCTRIAGE_API__UPLOAD_IDLE_S="5",
        DOCTRIAGE_API__MAX_UPLOAD_BYTES=str(400 * 2**20),
    ) as server:
        with ThreadPoolExecutor(1) as thread:
            slow = thread.submit(exchanged, server, f"{HEAD}{FORM}Content-Length: 100000\n\n", PART)
            server.wait_until(lambda: server.files("incoming") != [])
            for _ in range(5):  # whoever is still sending sees the answer
                busy = assert_problem(server.send(("a.pdf", bytes(20 * 2**20))), 503, "too_many_at_once")
            assert "try again" in busy["advice"]
            said = slow.result()
        assert said.startswith(b"HTTP/1.1 408 ")
        assert trickled(server, f"{HEAD}{FORM}Content-Length: 100000\n\n", PART).startswith(b"HTTP/1.1 408 ")
        peak_before = _peak_memory_bytes(server)
        assert server.send(("zeros.pdf", b"%PDF-1.4\n" + bytes(200 * 2**20))).status_code == 202
        assert _peak_memory_bytes(server) - peak_before < 64 * 2**20
        assert server.files("incoming") == []


def _peak_memory_bytes(server: ApiServer) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(kilobytes) * 1024
