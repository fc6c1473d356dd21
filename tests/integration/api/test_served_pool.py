"""A server in front of a pool of workers: PostgreSQL, Redis and a worker of Celery's read what it takes."""

from __future__ import annotations

from pathlib import Path

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
