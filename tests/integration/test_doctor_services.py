"""``doctriage doctor`` about the services that the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pipeline.settings import Settings
from tests.server_parts import Broker
from workers.doctor import Check, CheckState
from workers.doctor_services import check_services


def checks(home: Path, **changes: Any) -> dict[str, Check]:
    return {check.name: check for check in check_services(Settings(home=home, **changes))}


def test_a_machine_that_needs_no_services_is_asked_for_none(tmp_path: Path) -> None:
    assert checks(tmp_path) == {}


@pytest.mark.parametrize("broker", ["redis_broker", "rabbitmq_broker"])
def test_services_that_are_there_are_well(
    broker: str, tmp_path: Path, postgres_url: SecretStr, request: pytest.FixtureRequest
) -> None:
    there: Broker = request.getfixturevalue(broker)
    found = checks(
        tmp_path,
        database_url=postgres_url,
        pool={"broker_url": there.url},
        blobs={"url": tmp_path.as_uri()},
    )
    assert {name: check.state for name, check in found.items()} == {
        "database": CheckState.OK,
        "broker": CheckState.OK,
        "blob store": CheckState.OK,
    }


def test_of_services_that_are_away_it_is_said_which_and_nothing_secret(tmp_path: Path) -> None:
    found = checks(
        tmp_path,
        database_url="postgresql://ada:hidden@127.0.0.1:1/pool",
        pool={"broker_url": "redis://:hidden@127.0.0.1:1/0"},
        blobs={"url": (tmp_path / "away").as_uri()},
    )
    assert {check.state for check in found.values()} == {CheckState.MISSING}
    assert "127.0.0.1:1" in found["database"].found
    assert "127.0.0.1:1" in found["broker"].found
    assert "mount or make the folder" in found["blob store"].found
    assert "hidden" not in str(found)
