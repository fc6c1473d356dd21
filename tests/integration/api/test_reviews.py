"""Reviews over HTTP: who may say what of which pages, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from models.page import Route
from models.tables import PageRow
from pipeline.store import Store, open_store
from pipeline.store.api_keys import ApiKeyTerms
from tests.api_server import ApiServer
from tests.pool_processes import pool_processes
from tests.unit.store.pool_parts import Pool
from tests.unit.store.upload_parts import enter_upload
from workers.api_keys import create_key
from workers.labelled import ManifestRow

PAGE = {"page_number": 1, "markdown": "# A\n\n<script>alert(1)</script>[a](javascript:alert(1))"}


@dataclass(frozen=True, slots=True)
class Office:
    """A server and its database. ``uploads`` are ids of read documents of two pages, by cost centre."""

    server: ApiServer
    store: Store
    keys: dict[str, str]
    uploads: dict[str, str]

    def ask(self, who: str, method: str, path: str, **content: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.keys[who]}"}
        return httpx2.request(method, f"{self.server.url}{path}", headers=headers, timeout=60, **content)

    def get(self, who: str, path: str) -> Any:
        return self.ask(who, "GET", path).raise_for_status().json()

    def review(self, who: str, cost_centre: str, page_number: int = 1, **words: Any) -> httpx2.Response:
        path = f"/v1/documents/{self.uploads[cost_centre]}/pages/{page_number}/review"
        return self.ask(who, "PUT", path, json={"needs_vlm": True, **words})

    def listed(self, who: str, query: str = "show=all") -> list[tuple[str, int]]:
        names = {upload_id: name for name, upload_id in self.uploads.items()}
        pages = self.get(who, f"/v1/reviews?{query}")["pages"]
        return [(names[page["id"]], page["page_number"]) for page in pages]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("reviews")
    home = folder / "home"
    store = open_store(home)
    keys = {
        name: create_key(store.api_keys, ApiKeyTerms(name=name, cost_centre=cost_centre, scopes=scopes)).text
        for name, cost_centre, scopes in (
            ("ada", "harbour", ("read", "submit")),
            ("bob", "harbour/crane", ("read", "submit")),
            ("looker", "harbour", ("read",)),
            ("eve", "market", ("read", "submit")),
            ("root", "office", ("admin",)),
        )
    }
    uploads = {name: read_upload(store, name) for name in ("harbour", "harbour/crane", "market")}
    settings = {"DOCTRIAGE_HOME": str(home), "DOCTRIAGE_EXECUTOR__JOBS": "1"}
    with pool_processes(folder / "logs", settings) as processes:
        yield Office(ApiServer(processes.run("serve", "--port", "0"), home), store, keys, uploads)
    store.close()


def read_upload(store: Store, cost_centre: str) -> str:
    pool = Pool(store)
    submitted = pool.submit(2, cost_centre)
    upload_id = enter_upload(store, submitted.submission_id, cost_centre=cost_centre)
    work = pool.claim(max_pages=2)
    assert work is not None
    pool.finish(work, page=PAGE)
    with store.database.write() as session:
        session.get_one(PageRow, (submitted.reading_id, 2)).route = Route.OCR_DEGRADED
    assert pool.write() is not None
    return upload_id


def test_a_review_is_kept_changed_and_taken_back(office: Office) -> None:
    page = f"/v1/documents/{office.uploads['harbour']}/pages/1/review"
    assert office.get("ada", page) == {"review": None, "others": []}
    said = office.review("ada", "harbour", classes=["table", "stamp"], remark="zwei").json()
    assert (said["needs_vlm"], said["classes"], said["remark"]) == (True, ["table", "stamp"], "zwei")
    assert office.get("ada", page)["review"] == said
    assert office.review("ada", "harbour", needs_vlm=False).json()["needs_vlm"] is False
    seen_by_root = office.get("root", page)
    assert seen_by_root["review"] is None
    assert [one["needs_vlm"] for one in seen_by_root["others"]] == [False]
    assert office.ask("ada", "DELETE", page).status_code == 204
    assert office.get("ada", page)["review"] is None


def test_a_caller_sees_and_reviews_its_own_pages_and_those_below(office: Office) -> None:
    assert {name for name, _ in office.listed("ada")} == {"harbour", "harbour/crane"}
    assert {name for name, _ in office.listed("bob")} == {"harbour/crane"}
    assert {name for name, _ in office.listed("root")} == set(office.uploads)
    for who, cost_centre in (("eve", "harbour"), ("bob", "harbour"), ("ada", "market")):
        refused = office.review(who, cost_centre)
        assert (refused.status_code, refused.json()["code"]) == (404, "document_not_found")
    assert office.review("looker", "harbour").json()["code"] == "scope_missing"
    assert office.review("bob", "harbour/crane").status_code == 200


def test_pages_are_listed_by_decision_and_by_what_was_said(office: Office) -> None:
    office.review("eve", "market", page_number=2)
    assert office.listed("eve", "show=escalated") == [("market", 2)]
    assert office.listed("eve", "show=accepted") == [("market", 1)]
    assert office.listed("eve", "show=all&reviewed=false") == [("market", 1)]
    assert office.listed("eve", "show=all&reviewed=true") == [("market", 2)]
    answer = office.get("eve", "/v1/reviews?show=all&limit=1")
    assert answer["progress"] == {"pages": 2, "reviewed": 1}
    rest = office.get("eve", f"/v1/reviews?show=all&cursor={answer['next_cursor']}")
    assert [page["page_number"] for page in rest["pages"]] == [2]
    assert (rest["next_cursor"], rest["progress"]) == (None, None)
    after = f"show=all&after_document={office.uploads['market']}&after_page=1"
    assert office.listed("eve", after) == [("market", 2)]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"needs_vlm": "yes"}, "needs_vlm"),
        ({"classes": ["Table of <b>"]}, "classes.0"),
        ({"classes": ["a"] * 21}, "classes"),
        ({"remark": "x" * 2_001}, "remark"),
        ({"verdict": 1}, "verdict"),
    ],
)
def test_what_is_no_review_is_refused_by_field(office: Office, words: dict[str, Any], field: str) -> None:
    refused = office.review("ada", "harbour", **words)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert [fault["field"] for fault in refused.json()["errors"]] == [field]


@pytest.mark.parametrize("cursor", ["!", "bm8", "MSBhIGI", "\u00e4"])
def test_a_cursor_that_is_none_is_refused(office: Office, cursor: str) -> None:
    refused = office.ask("ada", "GET", f"/v1/reviews?cursor={cursor}")
    assert (refused.status_code, refused.json()["code"]) == (422, "request_invalid")


@pytest.mark.parametrize("page_number", [3, 2**31 - 1])
def test_a_page_that_is_not_there_is_not_reviewed(office: Office, page_number: int) -> None:
    refused = office.review("ada", "harbour", page_number)
    assert (refused.status_code, refused.json()["code"]) == (404, "page_not_found")


def test_labels_are_rows_of_a_corpus(office: Office) -> None:
    office.review("ada", "harbour", page_number=2, classes=["receipt"], remark="a\nb")
    answer = office.ask("looker", "GET", "/v1/reviews/labels")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    [row] = [ManifestRow.model_validate(row) for row in rows if row["primary_class"] == "receipt"]
    assert (row.page_number, row.needs_vlm, row.needs_vlm_strength) == (2, True, "clear")
    assert office.ask("eve", "GET", "/v1/reviews/labels").text.count("receipt") == 0


def test_who_asks_is_told_and_whether_anybody_is_asked(office: Office) -> None:
    me = office.get("bob", "/v1/me")
    assert (me["cost_centre"], me["is_admin"], me["scopes"]) == ("harbour/crane", False, ["read", "submit"])
    assert me["max_priority"] == 5
    assert httpx2.get(f"{office.server.url}/web/access.json").json() == {"is_open": False}
    assert httpx2.get(f"{office.server.url}/v1/me").status_code == 401


def test_a_page_as_html_holds_nothing_that_runs(office: Office) -> None:
    path = f"/v1/documents/{office.uploads['harbour']}/pages"
    html = office.ask("looker", "GET", f"{path}/1/html")
    assert "<h1>A</h1>" in html.text
    assert "<script" not in html.text
    assert "href" not in html.text
    assert office.ask("looker", "GET", f"{path}/9/html").json()["code"] == "page_not_found"
    assert office.ask("eve", "GET", f"{path}/1/html").status_code == 404


def test_what_was_said_of_a_document_is_erased_with_it(office: Office) -> None:
    upload_id = read_upload(office.store, "quay")
    page = f"/v1/documents/{upload_id}/pages/1/review"
    said = office.ask("root", "PUT", page, json={"needs_vlm": True, "classes": ["zwiebelfisch"]})
    assert said.status_code == 200
    assert "zwiebelfisch" in office.ask("root", "GET", "/v1/reviews/labels").text
    assert office.ask("root", "DELETE", f"/v1/documents/{upload_id}?erase=true").status_code == 204
    assert "zwiebelfisch" not in office.ask("root", "GET", "/v1/reviews/labels").text
    assert office.ask("root", "GET", page).status_code == 410
    assert upload_id not in {page["id"] for page in office.get("root", "/v1/reviews?show=all")["pages"]}
