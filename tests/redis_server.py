"""A throw-away Redis server, from the binary of an installed package and with nothing of the system's own."""

from __future__ import annotations

import itertools
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import redis
from pydantic import SecretStr

from tests.server_parts import end_server, free_port, start_server

START_LIMIT_S: Final = 60
DATABASES: Final = 10_000
"""One a test, none used twice."""


@dataclass(slots=True, eq=False)
class RedisServer:
    """Every write goes into a log in ``folder``, so that a restart loses nothing."""

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    _process: subprocess.Popen[bytes] | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(DATABASES)))

    def start(self) -> None:
        """Does nothing where it runs."""
        if self._process is not None:
            return
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "requirepass": self.password,
            "databases": DATABASES,
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "no",
            "daemonize": "no",
        }
        arguments = itertools.chain.from_iterable(
            (f"--{name}", str(value)) for name, value in options.items()
        )
        log = self.folder / "log"
        command = [find_redis(), *arguments]
        self._process = start_server(command, account=None, folder=self.folder, log=log, environment={})
        self._await_start(log)

    def stop(self) -> None:
        """At once. Does nothing where it does not run."""
        if self._process is not None:
            end_server(self._process)
            self._process = None

    def flush(self) -> None:
        with closing(self._client()) as client:
            client.flushall()

    def broker(self) -> RedisBroker:
        """A database of this server that nobody has used."""
        self.start()
        return RedisBroker(server=self, number=next(self._numbers))

    def url(self, number: int) -> SecretStr:
        return SecretStr(f"redis://:{self.password}@127.0.0.1:{self.port}/{number}")

    def _client(self) -> redis.Redis:
        return redis.Redis(port=self.port, password=self.password)

    def _await_start(self, log: Path) -> None:
        deadline_s = time.monotonic() + START_LIMIT_S
        assert self._process is not None
        while True:
            with closing(self._client()) as client:
                try:
                    client.ping()
                except (redis.ConnectionError, redis.BusyLoadingError):
                    pass
                else:
                    return
            assert self._process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline_s, log.read_text(errors="replace")
            time.sleep(0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisBroker:
    server: RedisServer
    number: int

    @property
    def url(self) -> SecretStr:
        return self.server.url(self.number)

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    def lose_everything(self) -> None:
        self.server.flush()


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """A server on a free port of this machine. It ends with the block, and with this process should that be killed."""
    with tempfile.TemporaryDirectory(prefix="doctriage-redis-") as name:
        server = RedisServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def find_redis() -> str:
    """Raises ``FileNotFoundError`` with what to install."""
    found = shutil.which("redis-server")
    if found is None:
        raise FileNotFoundError(
            "these tests need Redis: `apt-get install redis-server`, or `make test`, which does so"
        )
    return found
