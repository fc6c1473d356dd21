"""Who is refused whatever he sends is told so before he sends it: instead of ``100 Continue``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.pool.house import write_register
from tests.keyed_server import KeyedServer, keyed_server

MOST_UPLOAD_BYTES = 2**20
FORM = "multipart/form-data; boundary=b"
BODY = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.4\r\n--b--\r\n'


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    folder = tmp_path_factory.mktemp("house")
    with keyed_server(folder, DOCTRIAGE_API__MAX_UPLOAD_BYTES=str(MOST_UPLOAD_BYTES)) as running:
        yield running


def said_first(house: KeyedServer, key: str, path: str = "/v1/documents", **headers: str) -> str:
    """The first line that the server says to somebody who sends no body until he is told to."""
    named = {
        "Host": "localhost",
        "Authorization": f"Bearer {key}",
        "Content-Type": FORM,
        "Content-Length": str(len(BODY)),
        "Expect": "100-continue",
        "Connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    parts = urlsplit(house.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
        return connection.makefile("rb").readline().decode().strip()


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/quotes"])
def test_a_body_that_will_be_looked_at_is_asked_for(house: KeyedServer, path: str) -> None:
    assert said_first(house, house.key, path) == "HTTP/1.1 100 Continue"


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/quotes"])
def test_who_may_not_send_is_told_before_he_does(house: KeyedServer, path: str) -> None:
    reader = house.new_key(scopes=("read",))
    hasty = house.new_key(requests_per_min=1)
    said_first(house, hasty, path, Content_Type="text/plain")
    assert [
        said_first(house, "dt_nonsense", path).split()[1],
        said_first(house, reader, path).split()[1],
        said_first(house, hasty, path).split()[1],
        said_first(house, house.key, path, Content_Length=str(MOST_UPLOAD_BYTES + 2**21)).split()[1],
        said_first(house, house.key, path, Content_Type="text/plain").split()[1],
    ] == ["401", "403", "429", "413", "415"]


def test_who_has_as_many_open_documents_as_he_may_is_told_before_the_next(
    house: KeyedServer, tmp_path: Path
) -> None:
    key = house.new_key(max_open_documents=1)
    with house.client(key) as client:
        sent = client.submit(write_register(tmp_path / "long.pdf", 200))
        assert said_first(house, key).split()[1] == "429"
        assert said_first(house, key, Idempotency_Key="it-may-be-that-one") == "HTTP/1.1 100 Continue"
        client.cancel(sent.id)


def test_an_idempotency_key_that_is_none_is_refused_before_the_body(house: KeyedServer) -> None:
    assert said_first(house, house.key, Idempotency_Key="two words").split()[1] == "422"
