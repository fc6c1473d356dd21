"""What ``doctriage ingest --executor celery`` refuses, and how: in one line that says what to do, soon, without a
password."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.acceptance.test_ingest_command_line import write_pdf
from tests.pool_processes import DOCTRIAGE
from tests.server_parts import Broker, free_port

SECRET = "hush"
SOON_S = 60
"""Of a machine that does other things too; on an idle one it is a few seconds."""

INGEST = ("ingest", "in.pdf", "--out", "out", "--executor", "celery")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pdf(tmp_path / "in.pdf")
    return tmp_path


def refused(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Its exit code, and the line that it says why."""
    own = {"DOCTRIAGE_HOME": str(folder / "home"), "COLUMNS": "500", "NO_COLOR": "1"}
    done = subprocess.run(
        [DOCTRIAGE, *arguments],
        cwd=folder,
        env={**os.environ, **own, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SOON_S,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "Traceback" not in said
    assert SECRET not in said
    lines = [line for line in done.stderr.splitlines() if line.startswith("doctriage: ")]
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DOCTRIAGE_DATABASE_URL": "postgresql://u:hush@127.0.0.1:1/x"}, "DOCTRIAGE_POOL__BROKER_URL"),
        ({"DOCTRIAGE_POOL__BROKER_URL": "redis://:hush@127.0.0.1:1/0"}, "DOCTRIAGE_DATABASE_URL"),
        (
            {
                "DOCTRIAGE_DATABASE_URL": "postgresql://u:hush@127.0.0.1:1/x",
                "DOCTRIAGE_POOL__BROKER_URL": "kafka://:hush@127.0.0.1:1/0",
            },
            "DOCTRIAGE_POOL__BROKER_URL: write it as redis://",
        ),
        (
            {
                "DOCTRIAGE_DATABASE_URL": "mysql://u:hush@127.0.0.1:1/x",
                "DOCTRIAGE_POOL__BROKER_URL": "redis://:hush@127.0.0.1:1/0",
            },
            "write it as postgresql://",
        ),
    ],
    ids=["no broker", "no database", "another broker", "another database"],
)
def test_settings_that_make_no_pool_are_named(
    folder: Path, environment: Mapping[str, str], words: str
) -> None:
    exit_code, line = refused(folder, *INGEST, **environment)
    assert (exit_code, words in line) == (2, True), line


@pytest.mark.parametrize("scheme", ["redis://:hush@{}/0", "amqp://doctriage:hush@{}//"])
def test_a_broker_that_is_away_is_named_by_its_address(
    folder: Path, scheme: str, postgres_url: SecretStr
) -> None:
    address = f"127.0.0.1:{free_port()}"
    exit_code, line = refused(
        folder,
        *INGEST,
        DOCTRIAGE_DATABASE_URL=postgres_url.get_secret_value(),
        DOCTRIAGE_POOL__BROKER_URL=scheme.format(address),
    )
    assert exit_code == 1
    assert address in line
    assert "start it, or correct DOCTRIAGE_POOL__BROKER_URL" in line


def test_nothing_was_submitted_where_the_broker_was_away(
    folder: Path, redis_broker: Broker, postgres_url: SecretStr
) -> None:
    environment = {
        "DOCTRIAGE_DATABASE_URL": postgres_url.get_secret_value(),
        "DOCTRIAGE_POOL__BROKER_URL": redis_broker.url.get_secret_value(),
    }
    redis_broker.stop()
    refused(folder, *INGEST, **environment)
    listed = subprocess.run(
        [DOCTRIAGE, "submissions", "list"],
        env={**os.environ, **environment, "DOCTRIAGE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
    )
    assert listed.stdout.startswith("no submissions")


def test_a_broker_that_refuses_the_password_is_named_by_its_address(
    folder: Path, broker: Broker, postgres_url: SecretStr
) -> None:
    address = broker.url.get_secret_value().rpartition("@")[2]
    scheme = broker.url.get_secret_value().partition("://")[0]
    exit_code, line = refused(
        folder,
        *INGEST,
        DOCTRIAGE_DATABASE_URL=postgres_url.get_secret_value(),
        DOCTRIAGE_POOL__BROKER_URL=f"{scheme}://doctriage:hush@{address}",
    )
    assert exit_code == 1
    assert re.match(r"127\.0\.0\.1:\d+", address).group() in line  # type: ignore[union-attr]


def test_a_database_that_is_away_is_named_by_its_address(folder: Path, redis_broker: Broker) -> None:
    port = free_port()
    exit_code, line = refused(
        folder,
        *INGEST,
        DOCTRIAGE_DATABASE_URL=f"postgresql://doctriage:hush@127.0.0.1:{port}/pool",
        DOCTRIAGE_POOL__BROKER_URL=redis_broker.url.get_secret_value(),
    )
    assert exit_code == 1
    assert str(port) in line


@pytest.mark.parametrize(
    "options",
    [
        ("--jobs", "2"),
        ("--vlm-url", "http://127.0.0.1:1/v1"),
        ("--vlm-wait", "5"),
    ],
    ids=lambda options: options[0],
)
def test_what_is_the_workers_own_is_refused_from_a_submitter(folder: Path, options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [DOCTRIAGE, *INGEST, *options],
        cwd=folder,
        env={**os.environ, "DOCTRIAGE_HOME": str(folder / "home"), "COLUMNS": "500"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert f"{options[0]}: the pool's workers have settings of their own for that" in done.stderr


@pytest.mark.parametrize("options", [("--priority", "9"), ("--detach",)], ids=lambda options: options[0])
def test_what_is_the_pools_is_refused_without_it(folder: Path, options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [DOCTRIAGE, "ingest", "in.pdf", "--out", "out", *options],
        cwd=folder,
        env={**os.environ, "DOCTRIAGE_HOME": str(folder / "home"), "COLUMNS": "500"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert f"{options[0]}: only with --executor celery" in done.stderr


def test_a_password_is_refused_where_no_key_seals_it(
    folder: Path, redis_broker: Broker, postgres_url: SecretStr
) -> None:
    exit_code, line = refused(
        folder,
        *INGEST,
        *("--password", SECRET),
        DOCTRIAGE_DATABASE_URL=postgres_url.get_secret_value(),
        DOCTRIAGE_POOL__BROKER_URL=redis_broker.url.get_secret_value(),
    )
    assert exit_code == 2
    assert "DOCTRIAGE_POOL__SECRET_KEY is not set" in line
