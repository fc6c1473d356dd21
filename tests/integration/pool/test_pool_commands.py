"""``doctriage worker`` and ``doctriage beat`` as processes: what they refuse to start with, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from models.pool import Queue
from pipeline.settings import ApiSettings
from pipeline.store import open_store
from tests.fakes.callback_receiver import CallbackReceiver
from tests.fakes.scraped import scrape
from tests.integration.pool.traced_worker import PATIENCE_S, drained, tickets_over, wait_until
from tests.server_parts import Broker, free_port
from tests.unit.store.pool_parts import Pool
from tests.unit.store.upload_parts import enter_upload
from workers.callbacks.signing import callback_secret
from workers.cli import app

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-c", "from workers.cli import main; main()")
SESAM = "sesam-oeffne-dich"

Environment = Mapping[str, str]


@pytest.fixture
def environment(tmp_path: Path, postgres_url: SecretStr, redis_broker: Broker) -> Environment:
    return {
        **os.environ,
        "DOCTRIAGE_HOME": str(tmp_path / "home"),
        "DOCTRIAGE_DATABASE_URL": postgres_url.get_secret_value(),
        "DOCTRIAGE_POOL__BROKER_URL": redis_broker.url.get_secret_value(),
    }


BROKER_AWAY = {"DOCTRIAGE_POOL__BROKER_URL": f"redis://:{SESAM}@127.0.0.1:1/0"}
DATABASE_AWAY = {"DOCTRIAGE_DATABASE_URL": f"postgresql://user:{SESAM}@127.0.0.1:1/name"}


@pytest.mark.parametrize(
    ("arguments", "variables", "exit_code", "words"),
    [
        ("worker", {"DOCTRIAGE_POOL__BROKER_URL": None}, 2, "set DOCTRIAGE_POOL__BROKER_URL"),
        ("worker", {"DOCTRIAGE_DATABASE_URL": None}, 2, "set DOCTRIAGE_DATABASE_URL to a PostgreSQL server"),
        ("worker", BROKER_AWAY, 1, "redis://127.0.0.1:1: the broker does not answer"),
        ("beat", BROKER_AWAY, 1, "redis://127.0.0.1:1: the broker does not answer"),
        ("worker", DATABASE_AWAY, 1, "127.0.0.1:1/name: the server is away"),
        ("beat", DATABASE_AWAY, 1, "127.0.0.1:1/name: the server is away"),
        (
            "worker",
            {"DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S": "20"},
            2,
            "DOCTRIAGE_POOL__VISIBILITY_TIMEOUT_S=20 is below the longest task, 1,500 s",
        ),
        ("worker --queues ocr,vlm", {}, 2, "start two workers, one with --queues vlm"),
        ("worker --queues vlm", {"DOCTRIAGE_VLM__URL": "gpu:8000"}, 2, "gpu:8000"),
        ("worker --queues ocr", {"DOCTRIAGE_READ__LANGUAGES": "xyz"}, 2, "apt-get install tesseract-ocr-xyz"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(
    environment: Environment,
    arguments: str,
    variables: Mapping[str, str | None],
    exit_code: int,
    words: str,
) -> None:
    said = ended(changed(environment, variables), *arguments.split())

    assert (said.returncode, said.stderr.count("\n")) == (exit_code, 1)
    assert words in said.stderr
    assert SESAM not in said.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--queues", "ocr,fax"], "'fax' is none of intake, ocr, vlm, assemble"),
        (["--concurrency", "0"], "'0' is no whole number from 1 to 4,096"),
        (["--metrics-port", "70000"], "'70000' is no whole number from 1 to 65,535"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments: list[str], words: str) -> None:
    said = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["worker", *arguments])

    assert said.exit_code == 2
    assert words in said.output


@pytest.mark.parametrize(
    ("arguments", "children"),
    [(["--queues", "intake,ocr,assemble", "--concurrency", "2"], 2), (["--queues", "vlm"], 0)],
)
def test_a_worker_starts_with_its_processes_answers_prometheus_and_ends_when_told(
    environment: Environment, redis_broker: Broker, arguments: list[str], children: int
) -> None:
    tickets, port = tickets_over(redis_broker), free_port()
    queue = Queue(arguments[1].split(",")[0])
    tickets.send(queue, 3)
    variables = {"DOCTRIAGE_VLM__URL": "http://127.0.0.1:1/v1"}

    with started(
        changed(environment, variables), "worker", *arguments, "--metrics-port", str(port)
    ) as process:
        wait_until(lambda: drained(tickets, queue))
        wait_until(lambda: unused_tickets(port) == {(str(queue),): 3})
        pool = [one for one in process.children() if "worker" in one.cmdline()]
        assert len(pool) == children

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_submitter_that_is_stopped_says_how_to_come_back(environment: Environment, tmp_path: Path) -> None:
    folder, out, log = tmp_path / "in", tmp_path / "out", tmp_path / "log"
    folder.mkdir()
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        (folder / name).write_bytes(name.encode())
    full = changed(environment, {"DOCTRIAGE_POOL__MAX_WAITING_SOURCES": "1"})

    with started(full, "ingest", str(folder), "--executor", "celery", "--out", str(out)) as process:
        wait_until(lambda: "; waiting" in log.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130

    assert f"`doctriage submissions fetch 1 --out {out}` brings the results" in log.read_text()
    assert "`doctriage submissions cancel 1` stops it" in log.read_text()


def test_beat_replaces_lost_tickets_until_it_is_told_to_stop(
    environment: Environment, redis_broker: Broker, tmp_path: Path
) -> None:
    one_source_waits(environment)
    tickets, port, log = tickets_over(redis_broker), free_port(), tmp_path / "log"

    with started(environment, "beat", "--every", "0.5", "--metrics-port", str(port)) as process:
        wait_until(lambda: tickets.depth(Queue.INTAKE) == 1)
        redis_broker.lose_everything()
        wait_until(lambda: tickets.depth(Queue.INTAKE) == 1)

        redis_broker.stop()
        wait_until(lambda: '"broker_unavailable"' in log.read_text())
        redis_broker.start()
        redis_broker.lose_everything()
        wait_until(lambda: tickets.depth(Queue.INTAKE) == 1)
        assert scrape(port).value("doctriage_database_up") == 1

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_beat_may_look_just_once(environment: Environment) -> None:
    said = ended(environment, "beat", "--once")

    assert said.returncode == 0
    assert [json.loads(line)["event"] for line in said.stderr.splitlines()] == ["reconciled"]


def test_beat_tells_of_documents_that_are_over(environment: Environment) -> None:
    settings = {
        "DOCTRIAGE_API__CALLBACK_SECRET": "k" * 32,
        "DOCTRIAGE_API__CALLBACK_HTTP": "true",
        "DOCTRIAGE_API__CALLBACK_NETWORKS": "127.0.0.1/32",
    }
    secret = callback_secret(ApiSettings.model_validate({"callback_secret": "k" * 32}), "harbour")
    with CallbackReceiver(secret) as receiver:
        refused_document(environment, receiver.url("127.0.0.1"))
        for _ in range(2):
            said = ended({**environment, **settings}, "beat", "--once")
            assert said.returncode == 0
            assert "k" * 32 not in said.stderr
        [got] = receiver.received
    assert (got.message["type"], got.message["data"]["state"]) == ("document.failed", "failed")
    assert got.message["data"]["error"] == {"code": "empty_file", "message": "nothing is in it"}


def refused_document(environment: Environment, callback_url: str) -> None:
    home, url = Path(environment["DOCTRIAGE_HOME"]), SecretStr(environment["DOCTRIAGE_DATABASE_URL"])
    with closing(open_store(home, url)) as store:
        submission_id = Pool(store).open()
        store.pool.add_refused_source(
            submission_id, name="a.pdf", output_stem="a.pdf", code="empty_file", message="nothing is in it"
        )
        store.pool.seal(submission_id)
        enter_upload(store, submission_id, callback_url=callback_url)


def one_source_waits(environment: Environment) -> None:
    home, url = Path(environment["DOCTRIAGE_HOME"]), SecretStr(environment["DOCTRIAGE_DATABASE_URL"])
    with closing(open_store(home, url)) as store:
        pool = Pool(store)
        pool.add(pool.open())


def unused_tickets(port: int) -> Mapping[tuple[str, ...], float]:
    return scrape(port).values("doctriage_worker_tickets_unused_total")


def changed(environment: Environment, variables: Mapping[str, str | None]) -> Environment:
    both = {**environment, **variables}
    return {name: value for name, value in both.items() if value is not None}


def ended(environment: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env={**environment, "COLUMNS": "200"}, capture_output=True, text=True
    )


@contextmanager
def started(environment: Environment, *arguments: str) -> Iterator[psutil.Popen]:
    """Its log is beside its state folder."""
    log = Path(environment["DOCTRIAGE_HOME"]).parent / "log"
    with log.open("wb") as output:
        process = psutil.Popen(
            [*COMMAND, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            for one in [*process.children(recursive=True), process]:
                one.kill()
        process.wait()
