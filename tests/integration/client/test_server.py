"""The client with a real server, which reads with Tesseract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.errors import (
    CredentialsRefused,
    DocumentCorrupt,
    DocumentErased,
    DocumentInUse,
    DocumentNotFound,
    FormatNotAcceptable,
    IdempotencyKeyReused,
    NotReady,
    PageNotFound,
    PriorityRefused,
    RequestInvalid,
    ScopeMissing,
    SubmissionNotOpen,
    UnsupportedMediaType,
)
from tests.acceptance.pool.house import write_register
from tests.fakes.pages import page_image, write_tiff
from tests.keyed_server import KeyedServer, keyed_server
from workers.client import Client, DocumentEnded, DocumentState, PageSettled


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    with keyed_server(tmp_path_factory.mktemp("house")) as running:
        yield running


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scan")
    return write_tiff(folder / "scän.tif", [page_image("The harbour master"), page_image("was not at home")])


def test_a_document_is_sent_followed_and_fetched(house: KeyedServer, scan: Path, tmp_path: Path) -> None:
    with house.client() as client:
        sent = client.submit(scan, outputs=("markdown", "json"), metadata={"case": "4711"}, priority=7)
        told = list(client.events(sent.id))
        assert isinstance(told[-1], DocumentEnded)
        document = told[-1].document
        assert document == client.wait(sent.id) == client.document(sent.id)
        assert (document.state, document.name) == (DocumentState.FINISHED, "scän.tif")
        assert (document.page_count, document.routes, document.metadata) == (2, {"ocr": 2}, {"case": "4711"})
        assert sorted(page.page_number for page in told if isinstance(page, PageSettled)) == [1, 2]
        assert b"harbour master" in client.result(sent.id)
        written = client.result(sent.id, "json", to=tmp_path / "out" / "scan.json")
        assert json.loads(written.read_text("utf-8"))["page_count"] == 2
        assert client.result(sent.id, "text").decode().count("harbour master") == 1
        with pytest.raises(FormatNotAcceptable, match="name one of markdown, json"):
            client.result(sent.id, "docx")
        pages = list(client.pages(sent.id))
        assert [(page.page_number, page.state, page.route) for page in pages] == [
            (1, "done", "ocr"),
            (2, "done", "ocr"),
        ]
        assert "not at home" in client.page(sent.id, 2)["text"]
        with pytest.raises(PageNotFound):
            client.page(sent.id, 3)
        assert [one.id for one in client.documents(name="scän")] == [sent.id]


def test_the_same_request_makes_one_document(house: KeyedServer, tmp_path: Path) -> None:
    register = write_register(tmp_path / "once.pdf", 1)
    with house.client() as client:
        first = client.submit(register, idempotency_key="once")
        again = client.submit(register, idempotency_key="once")
        assert (first.is_replayed, again.is_replayed) == (False, True)
        assert again.id == first.id
        with pytest.raises(IdempotencyKeyReused):
            client.submit(register, idempotency_key="once", priority=9)


def test_an_open_document_is_cancelled_and_one_that_is_over_erased(
    house: KeyedServer, tmp_path: Path
) -> None:
    with house.client() as client:
        sent = client.submit(write_register(tmp_path / "long.pdf", 400))
        with pytest.raises(NotReady):
            client.result(sent.id)
        with pytest.raises(SubmissionNotOpen, match="cancel it first"):
            client.erase(sent.id)
        assert client.cancel(sent.id).state is DocumentState.CANCELLED
        assert client.wait(sent.id).state is DocumentState.CANCELLED
        house.server.wait_until(lambda: is_erased(client, sent.id))
        with pytest.raises(DocumentErased):
            client.document(sent.id)
        with pytest.raises(DocumentNotFound):
            client.document("nonsense")


def is_erased(client: Client, document_id: str) -> bool:
    """Whoever reads it may still have to notice that it is cancelled."""
    try:
        client.erase(document_id)
    except DocumentInUse:
        return False
    return True


def test_what_cannot_be_read_fails_and_says_why(house: KeyedServer, tmp_path: Path) -> None:
    (tmp_path / "notes.bin").write_text("not a scan", encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\nbroken")
    with house.client() as client:
        with pytest.raises(UnsupportedMediaType, match="convert it to PDF"):
            client.submit(tmp_path / "notes.bin")
        document = client.wait(client.submit(tmp_path / "broken.pdf").id)
        assert document.state is DocumentState.FAILED
        assert document.error is not None
        assert document.error.code == DocumentCorrupt.code
        with pytest.raises(RequestInvalid, match=r"priority.*9") as refused:
            client.submit(tmp_path / "broken.pdf", priority=12)
        assert [name for name, _ in refused.value.faults] == ["priority"]


@pytest.mark.parametrize(
    ("terms", "most", "usual"),
    [
        ({"max_priority": 5}, 5, 5),
        ({"max_priority": 2}, 2, 2),
        ({"max_priority": 8}, 8, 5),
        ({"max_priority": 0, "scopes": ("admin",)}, 9, 5),
    ],
)
def test_a_document_is_no_more_urgent_than_its_key_may_make_it(
    house: KeyedServer, tmp_path: Path, terms: dict[str, Any], most: int, usual: int
) -> None:
    register = write_register(tmp_path / f"ceiling_{most}.pdf", 1)
    with house.client(key=house.new_key(**terms)) as client:
        assert client.submit(register).priority == usual
        assert client.submit(register, priority=most).priority == most
        assert client.submit(register, priority=0).priority == 0
        if most < 9:
            refusal = rf"is {most}, and you named {most + 1}; name {most} or less, or none, or ask"
            with pytest.raises(PriorityRefused, match=refusal):
                client.submit(register, priority=most + 1)
            with pytest.raises(PriorityRefused):
                client.quote(register, priority=9)
    assert house.uploads(register.name) == 3


def test_money_and_models_are_told(house: KeyedServer, tmp_path: Path) -> None:
    with house.client() as client:
        client.wait(client.submit(write_register(tmp_path / "paid.pdf", 2), cost_centre="harbour/quay").id)
        lines = client.chargeback(by="cost-centre")["lines"]
        assert "harbour/quay" in {line["cost_centre"] for line in lines}
        assert client.budgets() == ()
        assert client.models()["configured"]["is_configured"] is False


@pytest.mark.slow
def test_a_quote_is_made_without_an_upload(house: KeyedServer, scan: Path) -> None:
    with house.client() as client:
        before = len(list(client.documents()))
        quoted = client.quote(scan, route="vlm")
        assert (quoted["page_count"], quoted["pages_by_route"]["vlm"]["about"]) == (2, 2)
        assert len(list(client.documents())) == before


def test_a_key_that_is_none_or_may_not_is_refused_at_once(house: KeyedServer, scan: Path) -> None:
    with house.client(key="dt_none_such") as client, pytest.raises(CredentialsRefused):
        client.models()
    reader = house.new_key(scopes=("read",))
    with house.client(key=reader) as client:
        client.models()
        with pytest.raises(ScopeMissing, match="submit"):
            client.submit(scan)
