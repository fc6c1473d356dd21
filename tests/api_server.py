"""``doctriage serve`` as an operator starts it, and a client of it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.pool_processes import PoolProcess, PoolProcesses, pool_processes

PATIENCE_S: Final = 180.0

Json = dict[str, Any]


@dataclass(slots=True, eq=False)
class ApiServer:
    """``url`` is asked of the log, as a port is chosen anew with each start."""

    process: PoolProcess
    home: Path

    @property
    def url(self) -> str:
        self.process.await_log('"serving"')
        lines = self.process.log.read_text("utf-8").splitlines()
        return str(json.loads(next(line for line in reversed(lines) if '"serving"' in line))["url"])

    @contextmanager
    def client(self, **headers: str) -> Iterator[httpx2.Client]:
        with httpx2.Client(base_url=self.url, timeout=PATIENCE_S, headers=headers) as client:
            yield client

    def send(
        self, path: Path | tuple[str, bytes], *, headers: Mapping[str, str] | None = None, **fields: str
    ) -> httpx2.Response:
        name, content = (path.name, path.read_bytes()) if isinstance(path, Path) else path
        with self.client() as client:
            return client.post(
                "/v1/documents", files={"file": (name, content)}, data=fields, headers=dict(headers or {})
            )

    def document(self, upload_id: str) -> Json:
        with self.client() as client:
            answer: Json = client.get(f"/v1/documents/{upload_id}").raise_for_status().json()
            return answer

    def await_end(self, upload_id: str) -> Json:
        self.wait_until(lambda: self.document(upload_id)["finished_at"] is not None)
        return self.document(upload_id)

    def wait_until(self, is_so: Callable[[], bool], *, limit_s: float = PATIENCE_S) -> None:
        deadline_s = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < deadline_s, self.process.log.read_text("utf-8")[-4_000:]
            time.sleep(0.1)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Of the SQLite file in the home."""
        with closing(sqlite3.connect(self.home / "doctriage.sqlite3")) as connection:
            return connection.execute(query).fetchall()

    def files(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.home / folder).rglob("*") if path.is_file())


def serve(processes: PoolProcesses, *arguments: str, **environment: str) -> ApiServer:
    """On a free port, without keys."""
    process = processes.run("serve", "--port", "0", "--insecure-no-auth", *arguments, **environment)
    home = {**processes.environment, **environment}["DOCTRIAGE_HOME"]
    return ApiServer(process, Path(home))


@contextmanager
def api_server(folder: Path, *arguments: str, **environment: str) -> Iterator[ApiServer]:
    settings = {"DOCTRIAGE_HOME": str(folder / "home"), "DOCTRIAGE_EXECUTOR__JOBS": "1", **environment}
    with pool_processes(folder / "logs", settings) as processes:
        yield serve(processes, *arguments)
