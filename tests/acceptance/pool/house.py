"""A pool and its submitter: what they share is the broker, the database and the blob store, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reportlab.pdfgen.canvas import Canvas

from tests.pool_processes import (
    DOCTRIAGE,
    PoolProcess,
    PoolProcesses,
    begun_command,
    logs_of,
    pool_processes,
)
from tests.postgres import PostgresServer
from tests.server_parts import Broker

PATIENCE_S: Final = 240
EVERYTHING: Final = "intake,ocr,assemble"


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """``workers`` run on the pool's machines; ``doctriage`` and ``begin`` on the submitter's own."""

    broker: Broker
    postgres: PostgresServer
    database: str
    workers: PoolProcesses
    home: Path

    def doctriage(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """A submitter's command to its end."""
        return subprocess.run(
            [DOCTRIAGE, *arguments],
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def ingest(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.doctriage("ingest", "--executor", "celery", *arguments, **environment)

    def begun_ingest(self, *arguments: str | Path) -> AbstractContextManager[subprocess.Popen[str]]:
        return begun_command(
            *("ingest", "--executor", "celery", *arguments),
            environment=self.environment(),
            stderr=subprocess.STDOUT,
        )

    def begin_workers(self, *queues: str, concurrency: int = 1, **environment: str) -> list[PoolProcess]:
        """One for each, and ready; all are started at once."""
        begun = [
            self.workers.run("worker", "--queues", one, "--concurrency", str(concurrency), **environment)
            for one in queues
        ]
        for worker in begun:
            worker.await_log("ready")
        return begun

    def environment(self, **environment: str) -> Mapping[str, str]:
        own = {"DOCTRIAGE_HOME": str(self.home), "COLUMNS": "200", "NO_COLOR": "1"}
        return {**os.environ, **self.workers.environment, **own, **environment}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.postgres.execute(query, self.database)

    def number(self, query: str) -> int:
        [(value,)] = self.rows(query)
        return int(value or 0)

    def settled_pages(self, source: str) -> int:
        return self.number(
            "SELECT count(*) FROM pages JOIN sources USING (reading_id) "
            f"WHERE pages.state IN ('done', 'failed') AND sources.name = '{source}'"
        )

    def wait_until(self, is_so: Callable[[], bool], *, limit_s: float = PATIENCE_S) -> None:
        """Fails with the ends of the workers' logs where it does not come to be."""
        deadline_s = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < deadline_s, self.logs
            time.sleep(0.05)

    @property
    def logs(self) -> str:
        return logs_of(self.workers.running)


@contextmanager
def opened_house(
    broker: Broker, postgres: PostgresServer, database: str, folder: Path, **environment: str
) -> Iterator[House]:
    """Without a worker yet. ``environment`` is that of all processes, the submitter's among them."""
    (folder / "blobs").mkdir(parents=True)
    settings = {
        "DOCTRIAGE_DATABASE_URL": postgres.url(database).get_secret_value(),
        "DOCTRIAGE_POOL__BROKER_URL": broker.url.get_secret_value(),
        "DOCTRIAGE_POOL__RECONCILE_EVERY_S": "1",
        "DOCTRIAGE_BLOBS__URL": (folder / "blobs").as_uri(),
        "DOCTRIAGE_HOME": str(folder / "workers"),
        **environment,
    }
    with pool_processes(folder / "logs", settings) as workers:
        yield House(
            broker=broker, postgres=postgres, database=database, workers=workers, home=folder / "submitter"
        )


def write_register(path: Path, pages: int) -> Path:
    """A PDF of short text pages, each of which says which it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(str(path), pagesize=(420, 595), invariant=1)
    for page_number in range(1, pages + 1):
        canvas.setFont("Helvetica", 14)
        canvas.drawString(50, 520, register_line(page_number, path.stem))
        canvas.drawString(50, 490, "Entries are kept in the order in which they were received.")
        canvas.showPage()
    canvas.save()
    return path


def register_line(page_number: int, title: str) -> str:
    return f"Page {page_number} of the register {title}"


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
