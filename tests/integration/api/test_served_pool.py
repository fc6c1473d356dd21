"""A server in front of a pool of workers: PostgreSQL, Redis and a worker of Celery's read what it takes."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.acceptance.pool.house import EVERYTHING, opened_house, write_register
from tests.acceptance.test_s3_command_line import variables
from tests.api_server import ApiServer
from tests.conftest import TEMPLATE
from tests.integration.blob_places import S3Place
from tests.postgres import PostgresServer
from tests.server_parts import Broker


@pytest.mark.slow
def test_documents_are_handed_to_the_pool(
    tmp_path: Path, redis_broker: Broker, postgres: PostgresServer
) -> None:
    with (
        postgres.database(TEMPLATE) as database,
        opened_house(redis_broker, postgres, database, tmp_path) as house,
    ):
        house.begin_workers(EVERYTHING)
        process = house.workers.run(
            "serve",
            "--port",
            "0",
            "--insecure-no-auth",
            "--executor",
            "celery",
            DOCTRIAGE_HOME=str(house.home),
        )
        server = ApiServer(process, house.home)
        register = write_register(tmp_path / "register.pdf", 5)
        key = {"idempotency-key": "k-1"}
        upload_id = server.send(register, headers=key, cost_centre="harbour/lock").json()["id"]
        document = server.await_end(upload_id)
        assert (document["state"], document["routes"]) == ("finished", {"text_layer": 5})
        assert server.send(register, headers=key, cost_centre="harbour/lock").json()["id"] == upload_id
        assert house.number("SELECT count(*) FROM uploads") == 1
        assert house.number("SELECT count(*) FROM arriving_blobs") == 0
        assert house.number("SELECT count(*) FROM ledger WHERE cost_centre = 'harbour/lock'") == 5
        with server.client() as client:
            assert "register register" in client.get(f"/v1/documents/{upload_id}/result").text
            checks = client.get("/readyz").json()["checks"]
            assert checks == dict.fromkeys(("database", "blob_store", "broker", "disk"), "ok")
            assert client.get(f"/v1/documents/{upload_id}/pages/5/image").status_code == 200
            refused = client.post(
                "/v1/documents", files={"file": ("a.pdf", b"%PDF-1.4")}, data={"password": "x"}
            )
            assert refused.json()["errors"][0]["field"] == "password"
        assert process.stop() == 0


@pytest.mark.slow
def test_a_format_is_made_of_what_the_pool_read_and_of_bytes_from_s3(
    tmp_path: Path, redis_broker: Broker, postgres: PostgresServer, s3_place: S3Place
) -> None:
    """Neither the server nor the worker has the other's disk."""
    with (
        postgres.database(TEMPLATE) as database,
        opened_house(redis_broker, postgres, database, tmp_path, **variables(s3_place)) as house,
    ):
        house.begin_workers(EVERYTHING)
        process = house.workers.run(
            *("serve", "--port", "0", "--insecure-no-auth", "--executor", "celery"),
            DOCTRIAGE_HOME=str(house.home),
        )
        server = ApiServer(process, house.home)
        register = write_register(tmp_path / "register.pdf", 2)
        upload_id = server.send(register, outputs="markdown").json()["id"]
        named_id = server.send(register, outputs="html,pdf,csv").json()["id"]
        assert {server.await_end(one)["state"] for one in (upload_id, named_id)} == {"finished"}
        kept = s3_place.names()
        with server.client() as client:
            for output in ("html", "pdf", "csv"):
                made, named = (
                    client.get(f"/v1/documents/{one}/result", params={"format": output}).raise_for_status()
                    for one in (upload_id, named_id)
                )
                assert made.content == named.content
        assert s3_place.names() == kept
        assert process.stop() == 0


@pytest.mark.slow
def test_a_team_that_fills_its_share_of_the_pool_shuts_nobody_else_out(
    tmp_path: Path, redis_broker: Broker, postgres: PostgresServer
) -> None:
    """Nothing is read meanwhile: there are no workers."""
    few = {"DOCTRIAGE_POOL__MAX_WAITING_SOURCES": "8"}
    with (
        postgres.database(TEMPLATE) as database,
        opened_house(redis_broker, postgres, database, tmp_path, **few) as house,
    ):
        harbour, quay, admin = (
            house.doctriage(
                *("keys", "create", "--name", "test", "--cost-centre", cost_centre, "--scopes", scopes)
            ).stdout.strip()
            for cost_centre, scopes in (
                ("harbour/crane", "submit"),
                ("quay", "submit"),
                ("harbour", "admin"),
            )
        )
        process = house.workers.run(
            *("serve", "--port", "0", "--executor", "celery"), DOCTRIAGE_HOME=str(house.home)
        )
        server = ApiServer(process, house.home)

        def sent(key: str, **fields: str) -> httpx2.Response:
            return server.send(("a.pdf", b"%PDF-1.4"), headers={"x-api-key": key}, **fields)

        folder = tmp_path / "in"
        folder.mkdir()
        for name in ("a.pdf", "b.pdf", "c.pdf"):
            (folder / name).write_bytes(name.encode())
        by_command = (folder, "--out", tmp_path / "out", "--detach", "--cost-centre")
        assert house.ingest(*by_command, "harbour").returncode == 0
        assert [sent(harbour).status_code for _ in range(3)] == [202] * 3

        full = sent(harbour)
        assert (full.status_code, full.json()["code"]) == (503, "pool_busy")
        assert "6 documents of this team wait, and of one team at most 6 may" in full.json()["detail"]
        assert full.json()["advice"] == "try again in 60 s"
        assert full.headers["retry-after"] == "60"
        assert sent(admin).json()["code"] == "pool_busy"
        refused = house.ingest(*by_command, "harbour/lock")
        assert refused.returncode == 1
        assert "the pool has enough of harbour for now" in refused.stderr

        assert sent(quay).status_code == 202
        assert sent(admin, cost_centre="quay/lock").status_code == 202
        assert "8 documents wait, and at most 8 may" in sent(quay).json()["detail"]
        assert house.number("SELECT count(*) FROM sources") == 8
