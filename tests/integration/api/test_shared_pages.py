"""Pages that one cost centre has paid for, and that are there for another: what each is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.pool.house import write_register
from tests.keyed_server import KeyedServer, keyed_server


def booked(house: KeyedServer, key: str, upload_id: str) -> list[dict[str, Any]]:
    """For the first page of a document."""
    with house.server.client(Authorization=f"Bearer {key}") as client:
        page = client.get(f"/v1/documents/{upload_id}/pages/1").raise_for_status().json()
    assert page["state"] == "done"
    entries: list[dict[str, Any]] = page["booked"]
    return entries


def test_nobody_sees_what_another_cost_centre_paid_for_a_page_that_both_have(tmp_path: Path) -> None:
    register = write_register(tmp_path / "register.pdf", 2)
    with keyed_server(tmp_path, DOCTRIAGE_CHARGEBACK__SHARE_ACROSS_COST_CENTRES="true") as house:
        project, quay = house.new_key(cost_centre="harbour/lock"), house.new_key(cost_centre="quay")
        admin = house.new_key(cost_centre="office", scopes=("admin",))
        sent = {}
        for key in (project, quay, house.key):
            with house.client(key) as client:
                sent[key] = client.wait(client.submit(register).id).id
        [entry] = booked(house, project, sent[project])
        assert entry["cost_centre"] == "harbour/lock"
        assert booked(house, quay, sent[quay]) == []
        assert booked(house, house.key, sent[house.key]) == [entry]
        assert booked(house, admin, sent[quay]) == [entry]
        with house.server.client(Authorization=f"Bearer {quay}") as client:
            for path in ("", "/pages", "/pages/1", "/cost", "/result?format=json"):
                answer = client.get(f"/v1/documents/{sent[quay]}{path}")
                assert answer.status_code == 200
                assert "harbour" not in answer.text
