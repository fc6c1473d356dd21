"""``doctriage serve`` with keys, and the command line that sends documents to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pipeline.store import open_store
from pipeline.store.api_keys import ApiKeyTerms
from tests.api_server import PATIENCE_S, ApiServer
from tests.pool_processes import DOCTRIAGE, begun_command, pool_processes
from tests.server_parts import free_port
from workers.api_keys import create_key
from workers.client import Client

TERMS: Final = ApiKeyTerms(name="test", cost_centre="harbour", scopes=("read", "submit"), max_priority=9)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedServer:
    """``home`` is the submitter's own, and is empty."""

    server: ApiServer
    key: str
    home: Path

    @property
    def url(self) -> str:
        return self.server.url

    def new_key(self, **terms: Any) -> str:
        with closing(open_store(self.server.home)) as store:
            return create_key(store.api_keys, replace(TERMS, **terms)).text

    def client(self, key: str | None = None, **options: Any) -> Client:
        return Client(self.url, key=self.key if key is None else key, **options)

    def ingest(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [DOCTRIAGE, "ingest", *arguments, "--server", self.url],
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def begun_ingest(self, *arguments: str | Path) -> AbstractContextManager[subprocess.Popen[str]]:
        return begun_command("ingest", *arguments, "--server", self.url, environment=self.environment())

    def environment(self, **environment: str) -> Mapping[str, str]:
        return {**self.keyless_environment, "DOCTRIAGE_SERVER__KEY": self.key, **environment}

    @property
    def keyless_environment(self) -> Mapping[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
        return {**clean, "DOCTRIAGE_HOME": str(self.home), "COLUMNS": "200", "NO_COLOR": "1"}

    def uploads(self, name: str) -> int:
        """How many documents were entered under a name."""
        query = f"SELECT 1 FROM uploads JOIN sources USING (submission_id) WHERE sources.name = '{name}'"
        return len(self.server.rows(query))


@contextmanager
def keyed_server(folder: Path, **environment: str) -> Iterator[KeyedServer]:
    """On one port, also when it is begun again."""
    settings = {"DOCTRIAGE_HOME": str(folder / "server"), "DOCTRIAGE_EXECUTOR__JOBS": "1", **environment}
    with pool_processes(folder / "logs", settings) as processes:
        server = ApiServer(processes.run("serve", "--port", str(free_port())), folder / "server")
        server.process.await_log('"serving"')
        with closing(open_store(server.home)) as store:
            key = create_key(store.api_keys, TERMS).text
        yield KeyedServer(server=server, key=key, home=folder / "submitter")
