"""Documents over HTTP, read by real processes with Tesseract: sent, followed, fetched, cancelled and erased."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.acceptance.pool.house import write_register
from tests.api_server import ApiServer
from tests.fakes.pages import page_image, write_tiff

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scan")
    return write_tiff(folder / "scan.tif", [page_image("The harbour master"), page_image("was not at home")])


def events_of(
    server: ApiServer, upload_id: str, *, last: str = "", most: int = 1_000
) -> list[dict[str, str]]:
    """The stream's events to its end, or so many of them."""
    events: list[dict[str, str]] = []
    event: dict[str, str] = {}
    with (
        server.client() as client,
        client.stream(
            "GET", f"/v1/documents/{upload_id}/events", headers={"last-event-id": last} if last else {}
        ) as stream,
    ):
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if name in ("id", "event", "data"):
                event[name] = value
            elif not line and event:
                events.append(event)
                event = {}
                if len(events) >= most:
                    break
    return events


def test_a_document_is_read_and_fetched_in_the_form_that_is_asked_for(server: ApiServer, scan: Path) -> None:
    answer = server.send(
        scan, metadata='{"case": "4711", "half": "\\ud83d"}', priority="7", outputs="markdown,json,text"
    )
    assert answer.status_code == 202
    sent = answer.json()
    assert answer.headers["location"] == f"/v1/documents/{sent['id']}"
    assert "retry-after" in answer.headers
    document = server.await_end(sent["id"])
    assert (document["state"], document["page_count"], document["pages"]["done"]) == ("finished", 2, 2)
    assert document["routes"] == {"ocr": 2}
    assert (document["metadata"], document["priority"]) == ({"case": "4711", "half": "\ufffd"}, 7)
    with server.client() as client:
        here = f"/v1/documents/{sent['id']}"
        markdown = client.get(f"{here}/result")
        assert "harbour master" in markdown.text
        assert "scan.tif.md" in markdown.headers["content-disposition"]
        as_json = client.get(f"{here}/result", headers={"accept": "image/png, application/json;q=0.9"})
        assert as_json.json()["page_count"] == 2
        assert "harbour" in client.get(f"{here}/result", params={"format": "text"}).text
        etag = markdown.headers["etag"]
        assert client.get(f"{here}/result", headers={"if-none-match": etag}).status_code == 304
        document_etag = client.get(here).headers["etag"]
        assert client.get(here, headers={"if-none-match": document_etag}).status_code == 304


def test_pages_are_told_and_drawn(server: ApiServer, scan: Path) -> None:
    upload_id = server.send(scan).json()["id"]
    server.await_end(upload_id)
    with server.client() as client:
        here = f"/v1/documents/{upload_id}/pages"
        first = client.get(here, params={"limit": 1}).json()
        assert [page["page_number"] for page in first["pages"]] == [1]
        rest = client.get(here, params={"after": first["next_after"]}).json()
        assert ([page["route"] for page in rest["pages"]], rest["next_after"]) == (["ocr"], None)
        page = client.get(f"{here}/2").json()
        assert "not at home" in page["text"]
        assert page["lines"]
        assert [entry["outcome"] for entry in page["booked"]] == ["read"]
        picture = client.get(f"{here}/1/image", params={"width_px": 300})
        assert picture.headers["content-type"] == "image/png"
        assert Image.open(io.BytesIO(picture.content)).width == 300
        jpeg = client.get(f"{here}/1/image", headers={"accept": "image/jpeg"})
        assert Image.open(io.BytesIO(jpeg.content)).format == "JPEG"
        etag = picture.headers["etag"]
        again = client.get(f"{here}/1/image", params={"width_px": 300}, headers={"if-none-match": etag})
        assert again.status_code == 304
        overlay = client.get(f"{here}/1/overlay")
        assert Image.open(io.BytesIO(overlay.content)).height > 160


def test_events_go_on_where_a_client_stopped(server: ApiServer, tmp_path: Path) -> None:
    register = write_register(tmp_path / "register.pdf", 12)
    upload_id = server.send(register).json()["id"]
    first = events_of(server, upload_id, most=4)
    rest = events_of(server, upload_id, last=first[-1]["id"])
    told = [json.loads(one["data"]) for one in (*first, *rest) if one["event"] == "page"]
    assert sorted(page["page_number"] for page in told) == list(range(1, 13))
    assert {page["route"] for page in told} == {"text_layer"}
    states = [json.loads(one["data"])["state"] for one in (*first, *rest) if one["event"] == "document"]
    assert states == list(dict.fromkeys(states))
    assert (states[-1], rest[-1]["event"]) == ("finished", "end")
    with server.client() as client:
        ended = client.get(f"/v1/documents/{upload_id}/events", headers={"last-event-id": rest[-1]["id"]})
        assert ended.status_code == 204


def test_a_request_that_comes_again_makes_one_document_and_one_bill(
    server: ApiServer, tmp_path: Path
) -> None:
    register = write_register(tmp_path / "once.pdf", 3)
    at_once = 6
    ready = threading.Barrier(at_once)

    def ask(_: int) -> tuple[int, str]:
        ready.wait()
        answer = server.send(register, headers={"idempotency-key": "k-1"})
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(at_once) as threads:
        answers = set(threads.map(ask, range(at_once)))
    [(status, upload_id)] = answers
    assert status == 202
    document = server.await_end(upload_id)
    again = server.send(register, headers={"idempotency-key": "k-1"})
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (upload_id, "true")
    assert len(server.rows("SELECT 1 FROM uploads WHERE idempotency_key = 'k-1'")) == 1
    booked = server.rows(f"SELECT kind FROM ledger WHERE document_id = '{document['document_id']}'")
    assert booked == [("cpu_page",)] * 3
    other = server.send(register, headers={"idempotency-key": "k-1"}, priority="9")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_documents_are_listed_the_newest_first(server: ApiServer, tmp_path: Path) -> None:
    ids = [
        server.send(write_register(tmp_path / f"listed-{number}.pdf", 1), cost_centre="quay/lock").json()[
            "id"
        ]
        for number in range(3)
    ]
    with server.client() as client:
        wanted = {"cost_centre": "quay", "name": "listed", "limit": 2}
        first = client.get("/v1/documents", params=wanted).json()
        rest = client.get("/v1/documents", params={**wanted, "cursor": first["next_cursor"]}).json()
        listed = [one["id"] for one in (*first["documents"], *rest["documents"])]
        assert (listed, rest["next_cursor"]) == (ids[::-1], None)
        assert client.get("/v1/documents", params={"cost_centre": "qua"}).json()["documents"] == []


def test_an_open_document_is_cancelled_and_one_that_is_over_erased(server: ApiServer, tmp_path: Path) -> None:
    upload_id = server.send(write_register(tmp_path / "long.pdf", 400)).json()["id"]
    with server.client() as client:
        here = f"/v1/documents/{upload_id}"
        early = client.get(f"{here}/result")
        assert (early.status_code, early.json()["code"]) == (409, "not_ready")
        assert "retry-after" in early.headers
        assert client.delete(here, params={"erase": True}).status_code == 409
        assert client.delete(here).json()["state"] == "cancelled"
        assert client.delete(here).json()["code"] == "submission_not_open"
        assert client.get(f"{here}/result").status_code == 409
        server.wait_until(lambda: client.delete(here, params={"erase": True}).status_code == 204)
        assert client.get(here).json()["code"] == "document_erased"
        assert server.rows(f"SELECT details, callback_url FROM uploads WHERE upload_id = '{upload_id}'") == [
            (None, None)
        ]


def test_what_another_has_sent_too_is_not_erased(server: ApiServer, tmp_path: Path) -> None:
    shared = write_register(tmp_path / "shared.pdf", 2)
    one, other = (server.send(shared, cost_centre=name).json()["id"] for name in ("one", "other"))
    server.await_end(one)
    document = server.await_end(other)
    with server.client() as client:
        assert client.delete(f"/v1/documents/{one}", params={"erase": True}).status_code == 204
        assert "register shared" in client.get(f"/v1/documents/{other}/result").text
        assert client.get(f"/v1/documents/{other}/pages/2").status_code == 200
        assert document["document_id"] in server.files("blobs")
        assert client.delete(f"/v1/documents/{other}", params={"erase": True}).status_code == 204
    assert document["document_id"] not in server.files("blobs")
    kinds = server.rows(f"SELECT cost_centre FROM ledger WHERE document_id = '{document['document_id']}'")
    assert sorted(kinds) == [("one",)] * 2 + [("other",)] * 2


def test_money_and_models_are_told(server: ApiServer, tmp_path: Path) -> None:
    upload_id = server.send(write_register(tmp_path / "paid.pdf", 2), cost_centre="payer").json()["id"]
    server.await_end(upload_id)
    with server.client() as client:
        lines = client.get("/v1/chargeback", params={"by": "cost-centre"}).json()["lines"]
        assert [line["pages"] for line in lines if line["cost_centre"] == "payer"] == [2]
        cost = client.get(f"/v1/documents/{upload_id}/cost").json()
        [of_centre] = [line for line in lines if line["cost_centre"] == "payer"]
        [total] = cost["totals"]
        assert {name: total[name] for name in ("pages", "cpu_attempts", "cost", "avoided_tokens")} == {
            name: of_centre[name] for name in ("pages", "cpu_attempts", "cost", "avoided_tokens")
        }
        assert (total["pages"], cost["open_calls"]["calls"]) == (2, 0)
        assert client.get("/v1/budgets").json()["budgets"] == []
        assert client.get("/v1/models").json()["configured"]["is_configured"] is False
        metrics = client.get("/metrics").text
        assert 'doctriage_pages_total{cost_centre="payer",route="text_layer"} 2.0' in metrics
        assert 'route="/v1/documents/{upload_id}"' in metrics
        assert "doctriage_worker_pages_read_total" in metrics


def test_documents_of_one_file_name_are_told_apart_by_their_folders(server: ApiServer, scan: Path) -> None:
    sent = [server.send(scan, name=f"{folder}/scan.tif").json() for folder in ("harbour", "quay")]
    assert [document["name"] for document in sent] == ["harbour/scan.tif", "quay/scan.tif"]
    server.await_end(sent[0]["id"])
    with server.client() as client:
        listed = client.get("/v1/documents", params={"name": "harbour/scan"}).json()["documents"]
        assert [document["id"] for document in listed] == [sent[0]["id"]]
        result = client.get(f"/v1/documents/{sent[0]['id']}/result", params={"format": "json"})
        assert result.json()["source"] == "harbour/scan.tif"
        assert 'filename="scan.tif.json"' in result.headers["content-disposition"]
        assert "harbour" not in result.headers["content-disposition"]
    refused = server.send(scan, name="../scan.tif")
    assert (refused.status_code, [fault["field"] for fault in refused.json()["errors"]]) == (422, ["name"])


@pytest.mark.slow
def test_a_quote_is_made_without_an_upload(server: ApiServer, scan: Path) -> None:
    before = server.rows("SELECT count(*) FROM uploads")
    with server.client() as client:
        quoted: dict[str, Any] = client.post(
            "/v1/quotes",
            files={"file": ("scan.tif", scan.read_bytes())},
            data={"route": "vlm", "name": "a/scan.tif"},
        ).json()
    assert quoted["page_count"] == 2
    assert quoted["documents"][0]["sources"] == ["a/scan.tif"]
    assert quoted["pages_by_route"]["vlm"]["about"] == 2
    assert server.rows("SELECT count(*) FROM uploads") == before


@pytest.mark.parametrize("languages", ["Vh", "eng+xyz"])
def test_a_quote_in_a_language_that_there_is_not_is_refused(
    server: ApiServer, scan: Path, languages: str
) -> None:
    with server.client() as client:
        answer = client.post(
            "/v1/quotes",
            files={"file": ("scan.tif", scan.read_bytes())},
            data={"languages": languages},
        )
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "request_invalid"), problem
    assert [fault["field"] for fault in problem["errors"]] == ["languages"]


def test_a_server_says_what_is_missing(server: ApiServer) -> None:
    with server.client() as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        server.wait_until(lambda: client.get("/readyz").status_code == 200)
        checks = client.get("/readyz").json()["checks"]
        assert checks == dict.fromkeys(("database", "blob_store", "readers", "disk"), "ok")
