"""One server with keys, which has read a few documents, and one browser for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser
from reportlab.pdfgen.canvas import Canvas

from pipeline.store import open_store
from pipeline.store.api_keys import ApiKeyTerms
from tests.acceptance.web import browsing
from tests.api_server import ApiServer
from tests.pool_processes import pool_processes
from workers.api_keys import create_key

SAMPLES = Path(__file__).parent.parent.parent.parent / "samples"
HOSTILE_NAME = "<img src=x onerror=window.hacked=1>.pdf"
HOSTILE_TEXT = "<script>window.hacked=1</script> <img src=x onerror=window.hacked=1>"


@dataclass(frozen=True, slots=True)
class Site:
    """``key`` sees all, ``reader`` may not send and sees one cost centre, ``sender`` may send what is not urgent."""

    server: ApiServer
    key: str
    reader: str
    sender: str

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, path: str) -> Any:
        return self._answer(httpx2.get(self.url + path, headers=self._headers, timeout=60))

    def send(self, name: str, content: bytes, **fields: str) -> str:
        """The id of a document that is read by then."""
        sent = httpx2.post(
            f"{self.url}/v1/documents",
            files={"file": (name, content)},
            data=fields,
            headers=self._headers,
            timeout=60,
        )
        upload_id = str(self._answer(sent)["id"])
        self.server.wait_until(lambda: self.ask(f"/v1/documents/{upload_id}")["finished_at"] is not None)
        return upload_id

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def _answer(self, response: httpx2.Response) -> Any:
        return response.raise_for_status().json()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("web")
    home = folder / "home"
    store = open_store(home)
    admin = create_key(store.api_keys, _terms("harbour", "admin"))
    reader = create_key(store.api_keys, _terms("market", "read"))
    sender = create_key(store.api_keys, replace(_terms("market", "read", "submit"), max_priority=3))
    store.close()
    settings = {"DOCTRIAGE_HOME": str(home), "DOCTRIAGE_EXECUTOR__JOBS": "1"}
    with pool_processes(folder / "logs", settings) as processes:
        server = ApiServer(processes.run("serve", "--port", "0"), home)
        yield Site(server, admin.text, reader.text, sender.text)


def _terms(cost_centre: str, *scopes: str) -> ApiKeyTerms:
    return ApiKeyTerms(name=" ".join(scopes), cost_centre=cost_centre, scopes=scopes)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing.browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def table(site: Site) -> str:
    """The id of a document with a table, a page that went without the VLM."""
    return site.send("ruled_table.pdf", (SAMPLES / "ruled_table.pdf").read_bytes())


@pytest.fixture(scope="module")
def hostile(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a document whose name and text are HTML that would run."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.pdf"
    canvas = Canvas(str(path))
    canvas.setFont("Helvetica", 12)
    for line in range(20):
        canvas.drawString(72, 720 - 24 * line, HOSTILE_TEXT)
    canvas.save()
    return site.send(HOSTILE_NAME, path.read_bytes())
