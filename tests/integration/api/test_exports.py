"""Formats that nobody named when the document was sent: made of what was read, and kept by nobody."""

from __future__ import annotations

import io
import json
import shutil
import signal
import socket
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import openpyxl
import pikepdf
import psutil
import pytest
from docling_core.types.doc import DoclingDocument
from lxml import etree, html

from models.errors import OutputImpossible
from pipeline.exports.formats import FORMATS
from pipeline.settings import Settings, load_settings
from pipeline.store import open_store
from tests.acceptance.pool.house import write_register
from tests.api_server import ApiServer, api_server
from tests.integration.test_passwords import SECRET, encrypted_pdf
from tests.integration.test_searchable_pdf import words_in
from workers.api.child import NotWanted
from workers.api.exports import ExportOrder, Exports

SAMPLES = Path(__file__).parents[3] / "samples"
KEPT_S = 86_400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Outputs expire there."""
    with api_server(
        tmp_path_factory.mktemp("exports"), DOCTRIAGE_BLOBS__RESULTS_KEPT_S=str(KEPT_S)
    ) as running:
        yield running


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages: one that needs the VLM, which there is not, and one that cannot be drawn."""
    path = tmp_path_factory.mktemp("scan") / "scän.pdf"
    with pikepdf.open(SAMPLES / "ruled_table.pdf") as pdf:
        pdf.pages.append(pdf.pages[0])
        pdf.pages[1].obj.CropBox = pikepdf.Array([1000, 1000, 1200, 1300])
        pdf.save(path)
    return path


def finished(server: ApiServer, path: Path, **fields: str) -> str:
    upload_id = str(server.send(path, **fields).json()["id"])
    assert server.await_end(upload_id)["state"] == "finished"
    return upload_id


def result(server: ApiServer, upload_id: str, name: str) -> bytes:
    with server.client() as client:
        answer = client.get(f"/v1/documents/{upload_id}/result", params={"format": name})
        assert answer.status_code == 200, answer.text
        assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)
        assert FORMATS[name].suffix in answer.headers["content-disposition"]
        return answer.content


def test_what_is_made_is_what_would_have_been_kept(server: ApiServer, scan: Path) -> None:
    """Pages that failed or went without the VLM are told alike."""
    bare, full = (finished(server, scan, outputs=names) for names in ("json", ",".join(FORMATS)))
    document = server.document(bare)
    assert (document["pages"]["failed"], document["degraded_pages"], document["page_count"]) == (1, 1, 2)
    kept = server.files("results")
    made = {name: result(server, bare, name) for name in FORMATS}
    assert made == {name: result(server, full, name) for name in FORMATS}
    assert server.files("results") == kept


def test_every_format_is_made_whole(server: ApiServer) -> None:
    upload_id = finished(server, SAMPLES / "ruled_table.pdf", outputs="text")
    made = {name: result(server, upload_id, name) for name in FORMATS}
    word = "Awardee"
    assert json.loads(made["json"])["pages"][0]["page_number"] == 1
    assert word in made["markdown"].decode()
    assert word in made["text"].decode()
    assert word in html.document_fromstring(made["html"]).text_content()
    for name in ("hocr", "alto"):
        assert etree.fromstring(made[name]).xpath("//*[contains(., $w) or contains(@CONTENT, $w)]", w=word)
    assert word in DoclingDocument.model_validate_json(made["docling"]).export_to_markdown()
    assert zipfile.ZipFile(io.BytesIO(made["csv"])).testzip() is None
    assert openpyxl.load_workbook(io.BytesIO(made["xlsx"])).sheetnames[0] == "p1 t1"
    assert made["pdf"].startswith(b"%PDF-")


def test_accept_chooses_among_all_formats(server: ApiServer, tmp_path: Path) -> None:
    upload_id = finished(server, write_register(tmp_path / "register.pdf", 2), outputs="docling")
    with server.client() as client:
        here = f"/v1/documents/{upload_id}/result"

        def answer_to(accept: str) -> tuple[int, str]:
            answer = client.get(here, headers={"accept": accept})
            return answer.status_code, answer.headers["content-type"].partition(";")[0]

        assert answer_to("*/*") == (200, "application/json")
        assert "schema_name" in client.get(here, headers={"accept": "application/json"}).json()
        assert answer_to("text/markdown") == (200, "text/markdown")
        assert answer_to("application/pdf, */*;q=0.1") == (200, "application/pdf")
        refused = client.get(here, headers={"accept": "image/png"})
        assert (refused.status_code, refused.json()["code"]) == (406, "format_not_acceptable")
        assert client.get(here, params={"format": "docx"}).status_code == 406
        made = client.get(here, params={"format": "html"})
        etag = made.headers["etag"]
        again = client.get(here, params={"format": "html"}, headers={"if-none-match": etag})
        assert (again.status_code, again.headers["vary"], again.content) == (304, "accept", b"")
        assert client.get(here, params={"format": "text"}, headers={"if-none-match": etag}).status_code == 200


def test_an_output_that_has_expired_is_made_again(server: ApiServer, tmp_path: Path) -> None:
    upload_id = finished(server, write_register(tmp_path / "old.pdf", 2))
    before = result(server, upload_id, "markdown")
    [(submission_id,)] = server.rows(f"SELECT submission_id FROM uploads WHERE upload_id = '{upload_id}'")
    [(source_id,)] = server.rows(f"SELECT source_id FROM sources WHERE submission_id = {submission_id}")
    shutil.rmtree(server.home / "results" / str(source_id))
    assert result(server, upload_id, "markdown") == before


def test_the_pages_of_an_encrypted_pdf_are_not_shown_once_its_password_is_gone(
    server: ApiServer, tmp_path: Path
) -> None:
    upload_id = finished(server, encrypted_pdf(tmp_path / "secret.pdf", user=SECRET), password=SECRET)
    assert b"minutes of the harbour board" in result(server, upload_id, "text")
    with server.client() as client:
        refused = client.get(f"/v1/documents/{upload_id}/result", params={"format": "pdf"})
    assert (refused.status_code, refused.json()["code"]) == (422, "document_encrypted")
    assert "send it again with outputs=pdf" in refused.json()["advice"]
    named = finished(server, tmp_path / "secret.pdf", password=SECRET, outputs="pdf")
    (tmp_path / "shown.pdf").write_bytes(result(server, named, "pdf"))
    assert "minutes" in words_in(tmp_path / "shown.pdf")


def test_what_is_gone_is_said_to_be(server: ApiServer, tmp_path: Path) -> None:
    register = write_register(tmp_path / "gone.pdf", 2)
    upload_id = finished(server, register)
    document_id = server.document(upload_id)["document_id"]
    here = f"/v1/documents/{upload_id}/result"
    [blob] = (server.home / "blobs").rglob(document_id)
    blob.unlink()
    assert b"register" in result(server, upload_id, "text")
    with server.client() as client:
        lost = client.get(here, params={"format": "pdf"})
        assert (lost.status_code, lost.json()["code"]) == (410, "blob_missing")
        assert client.delete(f"/v1/documents/{upload_id}", params={"erase": True}).status_code == 204
        erased = client.get(here, params={"format": "html"})
        assert (erased.status_code, erased.json()["code"]) == (410, "document_erased")


def exporter_of(server: ApiServer, make: Callable[[], object]) -> psutil.Process:
    """The process that makes it, which begins with the first."""
    before = {child.pid for child in server.process.children()}
    make()
    [begun] = [child for child in server.process.children() if child.pid not in before]
    return begun


def open_files(server: ApiServer) -> list[str]:
    """Of the server itself, those without a name."""
    folder = Path(f"/proc/{server.process.pid}/fd")
    links = [str(link.readlink()) for link in folder.iterdir() if link.is_symlink()]
    return [link for link in links if str(server.home) in link and "(deleted)" in link]


def left_behind(server: ApiServer, exporter: psutil.Process) -> list[str]:
    own = [path.name for path in (server.home / "scratch").iterdir() if f"+{exporter.pid}+" in path.name]
    return own + server.files("incoming")


def asked_for(server: ApiServer, upload_id: str, name: str) -> socket.socket:
    """A connection on which the answer is awaited."""
    address = urlsplit(server.url)
    connection = socket.create_connection((str(address.hostname), int(address.port or 0)))
    connection.sendall(
        f"GET /v1/documents/{upload_id}/result?format={name} HTTP/1.1\r\nhost: {address.netloc}\r\n\r\n".encode()
    )
    return connection


def test_a_client_that_goes_away_and_a_server_that_stops_end_what_is_made(tmp_path: Path) -> None:
    with api_server(tmp_path) as server:
        upload_id = finished(server, write_register(tmp_path / "left.pdf", 3))
        exporter = exporter_of(server, lambda: result(server, upload_id, "html"))
        server.wait_until(lambda: open_files(server) == [])
        exporter.send_signal(signal.SIGSTOP)
        with asked_for(server, upload_id, "html"):
            server.wait_until(lambda: open_files(server) != [])
        server.wait_until(lambda: not exporter.is_running())
        server.wait_until(lambda: open_files(server) == [])
        assert left_behind(server, exporter) == []
        exporter = exporter_of(server, lambda: result(server, upload_id, "xlsx"))
        exporter.send_signal(signal.SIGSTOP)
        with asked_for(server, upload_id, "xlsx"):
            server.wait_until(lambda: open_files(server) != [])
            assert server.process.stop() == 0
        assert not exporter.is_running()
        assert left_behind(server, exporter) == []
        assert "request_failed" not in server.process.log.read_text()


@pytest.fixture
def order(server: ApiServer, tmp_path: Path) -> ExportOrder:
    upload_id = finished(server, write_register(tmp_path / "order.pdf", 1))
    document_id = server.document(upload_id)["document_id"]
    store = open_store(server.home)
    document = store.pages.document(document_id)
    record = store.uploads.find(upload_id)
    store.close()
    assert document is not None
    assert record is not None
    assert record.reading_id is not None
    return ExportOrder(document=document, reading_id=record.reading_id, source="order.pdf", output="alto")


@pytest.fixture
def settings(server: ApiServer) -> Settings:
    return load_settings().model_copy(update={"home": server.home})


def test_making_is_bounded_in_time_and_memory(settings: Settings, order: ExportOrder) -> None:
    hasty = Exports(settings, limit_s=0.01)
    with pytest.raises(OutputImpossible, match=r"more than 0.01 s here; send it again with outputs=alto"):
        hasty.make(order, Event())
    hasty.close()
    executor = settings.executor.model_copy(update={"memory_limit_bytes": 2**20})
    cramped = Exports(settings.model_copy(update={"executor": executor}))
    with pytest.raises(OutputImpossible, match="take another format"):
        cramped.make(order, Event())
    cramped.close()


def test_what_nobody_waits_for_is_given_up_and_the_next_is_made(
    settings: Settings, order: ExportOrder
) -> None:
    exports = Exports(settings)
    unwanted = Event()
    unwanted.set()
    with pytest.raises(NotWanted):
        exports.make(order, unwanted)
    with exports.make(order, Event()) as made:
        assert b"<alto" in made.read()
    exports.close()
