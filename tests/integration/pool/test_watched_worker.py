"""A worker as it is started in earnest, and what those see of it who watch: metrics, logs, traces."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from models.pool import Queue
from pipeline.settings import PoolSettings, Settings
from tests.fakes.otlp_receiver import OtlpReceiver, otlp_receiver
from tests.fakes.scraped import Scraped, scrape
from tests.server_parts import Broker, free_port
from workers.cluster.connection import pool_tickets
from workers.owner import current_owner

COMMAND: Final = (sys.executable, "-c", "from workers.cli import main; main()")
SAMPLES: Final = Path(__file__).parents[3] / "samples"
QUEUES: Final = ("intake", "ocr", "assemble")
SECRET_KEY: Final = "c2VhbGluZy1rZXktdGhhdC1pcy1ub3QtdG8tYmUtc2U="
PATIENCE_S: Final = 240
HAS_FAILURES: Final = 1
"""One of the files is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    home: Path
    folder: Path
    out_dir: Path
    environment: dict[str, str]

    @property
    def log(self) -> Path:
        return self.home.parent / "worker.log"

    def ingest(self) -> None:
        command = ("ingest", str(self.folder), "--out", str(self.out_dir), "--executor", "celery")
        done = subprocess.run(
            [*COMMAND, *command],
            env={**self.environment, "DOCTRIAGE_LOG_LEVEL": "error"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == HAS_FAILURES, done.stderr

    @contextmanager
    def worker(self, port: int, *queues: str) -> Iterator[subprocess.Popen[bytes]]:
        options = ("--queues", ",".join(queues), "--concurrency", "2", "--metrics-port", str(port))
        with self.log.open("wb") as log:
            process = subprocess.Popen([*COMMAND, "worker", *options], env=self.environment, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as receiver:
        yield receiver


@pytest.fixture
def place(tmp_path: Path, postgres_url: SecretStr, redis_broker: Broker, collector: OtlpReceiver) -> Place:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("blank_page.pdf", "two_columns.pdf"):
        shutil.copy(SAMPLES / name, folder)
    (folder / "empty.pdf").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
    settings = {
        "DOCTRIAGE_HOME": str(tmp_path / "home"),
        "DOCTRIAGE_DATABASE_URL": postgres_url.get_secret_value(),
        "DOCTRIAGE_POOL__BROKER_URL": redis_broker.url.get_secret_value(),
        "DOCTRIAGE_POOL__SECRET_KEY": SECRET_KEY,
        "DOCTRIAGE_LOG_LEVEL": "debug",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "600000",
    }
    return Place(
        home=tmp_path / "home",
        folder=folder,
        out_dir=tmp_path / "out",
        environment={**environment, **settings},
    )


@pytest.mark.slow
def test_a_worker_is_seen_from_its_start_to_its_end(
    place: Place, collector: OtlpReceiver, redis_broker: Broker
) -> None:
    """Its children tell the collector what they did when they end: the timer is far away. What a process that is gone
    has left lying about is removed."""
    port = free_port()
    left = place.home / "scratch" / current_owner().replace("/", "+").replace(f"+{os.getpid()}+", "+4194305+")
    left.mkdir(parents=True)
    with place.worker(port, *QUEUES) as worker:
        place.ingest()
        seen = scrape(port)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_S) == 0, place.log.read_text("utf-8")
    stages = seen.values("doctriage_worker_stage_seconds_count")
    assert {queue: stages[(queue,)] >= 1 for queue in QUEUES} == dict.fromkeys(QUEUES, True)
    pages = seen.values("doctriage_worker_pages_read_total")
    assert pages[("blank", "ocr")] == 1
    assert sum(pages.values()) == 2
    memory = seen.values("doctriage_worker_resident_memory_bytes")
    assert set(memory) == {("main",), ("1",), ("2",)}
    assert list(place.home.rglob("*.db")) == []
    assert not left.exists()
    _assert_logs(place.log, redis_broker)
    _assert_traces(collector)


@pytest.mark.slow
def test_a_worker_of_threads_tells_how_it_calls_the_vlm(
    place: Place, postgres_url: SecretStr, redis_broker: Broker
) -> None:
    place.environment["DOCTRIAGE_VLM__URL"] = f"http://127.0.0.1:{free_port()}/v1"
    settings = Settings(
        home=place.home, database_url=postgres_url, pool=PoolSettings(broker_url=redis_broker.url)
    )
    pool_tickets(settings).send(Queue.VLM, 2)
    port = free_port()
    with place.worker(port, "vlm") as worker:
        seen = await_scraped(
            port, lambda seen: seen.value("doctriage_worker_tickets_unused_total", "vlm") == 2
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_S) == 0, place.log.read_text("utf-8")
    assert set(seen.values("doctriage_worker_resident_memory_bytes")) == {("main",)}
    assert seen.value("doctriage_worker_vlm_calls_in_flight") == 0
    assert (seen.value("doctriage_worker_vlm_call_limit") or 0) > 1
    assert seen.value("doctriage_worker_vlm_breaker", "closed") == 1


def await_scraped(port: int, is_there: Callable[[Scraped], bool]) -> Scraped:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError):
            seen = scrape(port)
            if is_there(seen):
                return seen
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


def _assert_logs(log: Path, broker: Broker) -> None:
    text = log.read_text("utf-8")
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    assert {line["level"] for line in lines} >= {"info"}
    received = [line for line in lines if line.get("logger") == "celery.worker.strategy"]
    assert received
    assert SECRET_KEY not in text
    password = urlsplit(broker.url.get_secret_value()).password
    assert password
    assert password not in text


def _assert_traces(collector: OtlpReceiver) -> None:
    [submitted] = collector.named("submit")
    assert submitted.attributes["doctriage.sources"] == 3
    for queue in QUEUES:
        spans = collector.named(queue)
        assert len(spans) >= 2
        assert {span.parent_id for span in spans} == {submitted.span_id}
