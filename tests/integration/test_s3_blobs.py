"""What only a store on the network does: it refuses, is away, keeps versions, and copies of it are kept here."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from models.errors import BlobDamaged, BlobMissing, SettingsError, StoreUnavailable, StoreUnreachable
from pipeline.blobs import BlobStore, open_blobs
from pipeline.settings import BlobSettings
from tests.integration.blob_places import BUCKET, KEY, PREFIX, SECRET, S3Place, blob_name, kept, s3_settings


@pytest.fixture
def blobs(s3_place: S3Place, tmp_path: Path) -> BlobStore:
    return open_blobs(tmp_path / "home", s3_place.settings)


@pytest.fixture
def refusing(s3_place: S3Place) -> Iterator[S3Place]:
    """Its server knows no key from now on."""
    _ask_for_keys(s3_place.client.meta.endpoint_url, after="0")
    yield s3_place
    _ask_for_keys(s3_place.client.meta.endpoint_url, after="inf")


def _ask_for_keys(url: str, *, after: str) -> None:
    plain = {"Content-Type": "text/plain"}
    request = Request(f"{url}/moto-api/reset-auth", data=after.encode(), headers=plain, method="POST")
    with urlopen(request) as answer:
        assert answer.status == 200


@pytest.fixture
def busy_url() -> Iterator[str]:
    """A server that has no time."""

    class Busy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        do_PUT = do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.fixture
def closed_url() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _calls(blobs: BlobStore, folder: Path) -> Iterator[StoreUnavailable]:
    """How each of the store's calls is refused."""
    for call in (
        lambda: kept(blobs, folder, b"one page"),
        lambda: blobs.local_path("ab" * 32),
        lambda: blobs.write_result(1, ".md", b"text"),
        lambda: blobs.open_result(1, ".md").__enter__(),
        lambda: blobs.results(1),
        lambda: blobs.delete_results(1),
        lambda: blobs.erase("ab" * 32),
    ):
        with pytest.raises(StoreUnavailable) as refused:
            call()
        assert SECRET not in str(refused.value)
        assert KEY not in str(refused.value)
        yield refused.value


def test_a_server_that_is_away_is_named_and_may_be_asked_again(closed_url: str, tmp_path: Path) -> None:
    for error in _calls(open_blobs(tmp_path / "home", s3_settings(closed_url)), tmp_path):
        assert isinstance(error, StoreUnreachable)
        assert f"s3://{BUCKET}/{PREFIX}" in str(error)
        assert "DOCTRIAGE_BLOBS__ENDPOINT_URL" in str(error)


def test_a_server_that_has_no_time_may_be_asked_again(busy_url: str, tmp_path: Path) -> None:
    for error in _calls(open_blobs(tmp_path / "home", s3_settings(busy_url)), tmp_path):
        assert isinstance(error, StoreUnreachable)


def test_a_refused_key_is_said_and_not_shown(refusing: S3Place, tmp_path: Path) -> None:
    for error in _calls(open_blobs(tmp_path / "home", refusing.settings), tmp_path):
        assert not isinstance(error, StoreUnreachable)
        assert "correct DOCTRIAGE_BLOBS__KEY" in str(error)


def test_without_a_key_it_is_said_where_one_goes(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    blobs = open_blobs(tmp_path / "home", s3_settings(s3_url, key=None, secret=None))
    with pytest.raises(StoreUnavailable, match="no credentials; set DOCTRIAGE_BLOBS__KEY"):
        kept(blobs, tmp_path, b"one page")


def test_a_missing_bucket_is_to_be_created(s3_url: str, tmp_path: Path) -> None:
    blobs = open_blobs(tmp_path / "home", s3_settings(s3_url, url="s3://nowhere"))
    with pytest.raises(StoreUnavailable, match="no such bucket; create it"):
        kept(blobs, tmp_path, b"one page")
    with pytest.raises(BlobMissing):
        blobs.local_path("ab" * 32)


@pytest.mark.parametrize("damage", [b"", b"two page", b"more than one page"])
def test_a_damaged_copy_is_fetched_again(blobs: BlobStore, tmp_path: Path, damage: bytes) -> None:
    document_id = kept(blobs, tmp_path, b"one page")
    copy = blobs.local_path(document_id)
    copy.write_bytes(damage)
    assert blobs.local_path(document_id).read_bytes() == b"one page"


def test_a_copy_is_kept_here_and_not_asked_for_again(
    blobs: BlobStore, s3_place: S3Place, tmp_path: Path
) -> None:
    document_id = kept(blobs, tmp_path, b"one page")
    s3_place.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{blob_name(document_id)}")
    assert blobs.local_path(document_id).read_bytes() == b"one page"
    elsewhere = open_blobs(tmp_path / "another machine", s3_place.settings)
    with pytest.raises(BlobMissing):
        elsewhere.local_path(document_id)


def test_a_damaged_blob_is_set_aside(s3_place: S3Place, tmp_path: Path) -> None:
    document_id = kept(open_blobs(tmp_path / "home", s3_place.settings), tmp_path, b"one page")
    s3_place.overwrite(blob_name(document_id), b"one bite")
    elsewhere = open_blobs(tmp_path / "another machine", s3_place.settings)
    with pytest.raises(BlobDamaged):
        elsewhere.local_path(document_id)
    assert s3_place.names() == {f"damaged/{document_id}"}
    with pytest.raises(BlobMissing):
        elsewhere.local_path(document_id)
    assert elsewhere.erase(document_id)
    assert s3_place.names() == set()


def test_erasing_leaves_no_version_in_a_bucket_that_keeps_them(
    blobs: BlobStore, s3_place: S3Place, tmp_path: Path
) -> None:
    s3_place.client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    document_id = kept(blobs, tmp_path, b"one page")
    s3_place.overwrite(blob_name(document_id), b"and again")
    other_id = kept(blobs, tmp_path, b"another document")
    assert blobs.erase(document_id)
    listed = s3_place.client.list_object_versions(Bucket=BUCKET)
    left = [*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())]
    assert [entry["Key"] for entry in left] == [f"{PREFIX}/{blob_name(other_id)}"]


def test_without_s3fs_it_is_said_what_to_install(
    s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pipeline.blobs.s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StoreUnavailable, match=r'pip install "doctriage\[s3\]"'):
        open_blobs(tmp_path / "home", s3_settings(s3_url))


@pytest.mark.parametrize(
    "url",
    [
        "https://bucket/prefix",
        "s3://",
        "s3://Bad_Bucket",
        f"s3://user:{SECRET}@bucket/prefix",
        f"s3://bucket/prefix?secret={SECRET}",
        "s3://bucket/a prefix",
        "file://machine/folder",
        "file:folder",
        "/folder",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="DOCTRIAGE_BLOBS__URL: write") as refused:
        open_blobs(tmp_path / "home", BlobSettings(url=url))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", ["localhost:9000", f"http://user:{SECRET}@localhost:9000", "http://"])
def test_an_endpoint_that_is_none_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="DOCTRIAGE_BLOBS__ENDPOINT_URL: write") as refused:
        open_blobs(tmp_path / "home", s3_settings(url))
    assert SECRET not in str(refused.value)
