"""``doctriage serve`` and those who call it: keys, callbacks, and what its log says of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest

from pipeline.settings import ApiSettings
from pipeline.store import connect_store
from pipeline.store.api_keys import ApiKeyTerms
from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from tests.fakes.callback_receiver import CallbackReceiver
from workers.api_keys import create_key, new_key
from workers.callbacks.signing import callback_secret

pytestmark = pytest.mark.slow

CALLBACK_SETTING: Final = "k" * 32
SAMPLE: Final = Path(__file__).parent.parent.parent / "samples" / "blank_page.pdf"
OPEN_TO_ALL: Final = {"/healthz", "/readyz", "/metrics"}
PATIENCE_S: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    url: str
    home: Path
    log: Path

    def ask(self, method: str, path: str, key: str | None = None, **more: object) -> httpx2.Response:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx2.request(
            method,
            self.url + path,
            headers=headers,
            timeout=60,
            trust_env=False,
            **more,  # type: ignore[arg-type]
        )

    def key(self, cost_centre: str) -> str:
        terms = ApiKeyTerms(name="test", cost_centre=cost_centre, scopes=("read", "submit"))
        with closing(connect_store(self.home)) as store:
            return create_key(store.api_keys, terms).text

    def sent(self, key: str, **fields: str) -> str:
        files = {"file": ("blank.pdf", SAMPLE.read_bytes())}
        answer = self.ask("POST", "/v1/documents", key, data=fields, files=files)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Served]:
    """Until the block ends, when it is told to stop, which it must do of itself."""
    home, log = folder / "home", folder / "log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
    settings = {"DOCTRIAGE_HOME": str(home), "DOCTRIAGE_LOG_LEVEL": "debug", **environment}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [DOCTRIAGE, "serve", "--port", "0", "--jobs", "1"], env=clean | settings, stderr=stream
        )
    try:
        yield Served(url=_url_in(log, process), home=home, log=log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0 or process.returncode == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()


def _url_in(log: Path, process: subprocess.Popen[bytes]) -> str:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        for line in log.read_text(encoding="utf-8").splitlines():
            if (said := json.loads(line))["event"] == "serving":
                return str(said["url"])
        time.sleep(0.1)
    raise TimeoutError(log.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(
        tmp_path_factory.mktemp("served"),
        DOCTRIAGE_API__CALLBACK_SECRET=CALLBACK_SETTING,
        DOCTRIAGE_API__CALLBACK_HTTP="true",
        DOCTRIAGE_API__CALLBACK_NETWORKS="127.0.0.1/32",
        DOCTRIAGE_POOL__RECONCILE_EVERY_S="0.5",
    ) as server:
        yield server


def test_no_route_forgets_to_ask_for_a_key(served: Served) -> None:
    described = served.ask("GET", "/v1/openapi.json", served.key("harbour")).json()["paths"]
    routes = [(method, path) for path, methods in described.items() for method in methods]
    assert ("get", "/v1/documents/{upload_id}/callbacks") in routes
    assert len(routes) >= 12
    for method, path in routes:
        if path in OPEN_TO_ALL:
            continue
        answer = served.ask(method.upper(), re.sub(r"\{[^}]*\}", "1", path))
        assert answer.status_code == 401, (method, path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


def test_documents_of_others_are_not_there(served: Served) -> None:
    key, project, other = (served.key(name) for name in ("harbour", "harbour/crane", "attic"))
    upload_id = served.sent(project)
    for path in ("", "/callbacks", "/events", "/pages", "/result"):
        assert served.ask("GET", f"/v1/documents/{upload_id}{path}", other).status_code == 404, path
    assert served.ask("DELETE", f"/v1/documents/{upload_id}", other).status_code == 404
    for path in ("", "/callbacks"):
        assert served.ask("GET", f"/v1/documents/{upload_id}{path}", key).status_code == 200
    listed = served.ask("GET", "/v1/documents", other).json()["documents"]
    assert upload_id not in {one["id"] for one in listed}


def test_the_sender_is_told_when_the_document_is_over(served: Served) -> None:
    secret = callback_secret(ApiSettings.model_validate({"callback_secret": CALLBACK_SETTING}), "harbour")
    key = served.key("harbour")
    with CallbackReceiver(secret) as receiver:
        upload_id = served.sent(key, callback_url=receiver.url("127.0.0.1"), metadata='{"case": "4711"}')
        until_s = time.monotonic() + PATIENCE_S
        while not receiver.received and time.monotonic() < until_s:
            time.sleep(0.1)
        [got] = receiver.received
    shown = served.ask("GET", f"/v1/documents/{upload_id}", key).json()
    assert got.message["type"] == "document.finished"
    assert got.message["data"] == shown
    assert shown["metadata"] == {"case": "4711"}
    while (log := served.ask("GET", f"/v1/documents/{upload_id}/callbacks", key).json()["callbacks"])[0][
        "state"
    ] == "waiting" and time.monotonic() < until_s:
        time.sleep(0.1)
    [record] = log
    assert (record["id"], record["event"], record["state"]) == (
        got.message_id,
        "document.finished",
        "delivered",
    )
    assert (record["attempts"], record["last_status"], record["last_error"]) == (1, 204, None)


def test_a_callback_to_the_inside_is_refused_with_the_document(served: Served) -> None:
    answer = served.ask(
        "POST",
        "/v1/documents",
        served.key("harbour"),
        data={"callback_url": "https://169.254.169.254/latest/meta-data"},
        files={"file": ("blank.pdf", SAMPLE.read_bytes())},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "callback_url_refused")


def test_no_key_is_in_the_log_wherever_a_caller_puts_it(served: Served) -> None:
    key, wrong = served.key("harbour"), new_key().text
    for shown in (key, wrong):
        served.ask("GET", f"/v1/documents?key={shown}", shown)
        served.ask("GET", f"/v1/documents/{shown}", shown)
        served.ask("GET", f"/{shown}", shown)
        served.ask("POST", "/v1/documents", shown, data={"name": shown})
    log = served.log.read_text(encoding="utf-8")
    assert '"serving"' in log
    for secret in (key, wrong):
        assert secret.rpartition("_")[2] not in log


def test_a_server_without_keys_is_refused_where_others_reach_it(tmp_path: Path) -> None:
    answer = run_doctriage("serve", "--insecure-no-auth", "--host", "0.0.0.0", "--port", "0", home=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "--insecure-no-auth lets everybody in who reaches 0.0.0.0" in answer.stderr
