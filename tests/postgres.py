"""A throw-away PostgreSQL server, from the binaries of an installed package and with nothing of the system's own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from pydantic import SecretStr

DEBIAN_BINARIES: Final = Path("/usr/lib/postgresql")
ACCOUNT: Final = "postgres"
"""Who runs the server where root starts it, which PostgreSQL refuses to run as; its package makes the account."""

START_LIMIT_S: Final = 120
USER: Final = "doctriage"

FAST: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "jit": "off",
}
"""Nothing here outlives the tests, so nothing needs to reach the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    port: int
    password: str

    def url(self, database: str, **changes: str | int) -> SecretStr:
        """``changes`` to user, password, host and port."""
        part = {"user": USER, "password": self.password, "host": "127.0.0.1", "port": self.port, **changes}
        return SecretStr(
            f"postgresql://{part['user']}:{part['password']}@{part['host']}:{part['port']}/{database}"
        )

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """One statement, committed at once, and its rows."""
        url = self.url(database).get_secret_value()
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def cut_connections(self) -> None:
        """Those that doctriage has to any database."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'doctriage'"
        )

    def stop(self) -> None:
        """Every connection is cut."""
        _PROCESSES[self.port].stop()

    def start(self) -> None:
        _PROCESSES[self.port].start()

    def has_waiting(self) -> bool:
        """Somebody waits for a lock."""
        return bool(self.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The name of a database that is there for the block, a copy of ``template``."""
        name = f"test_{secrets.token_hex(8)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


_PROCESSES: dict[int, _Process] = {}
"""Of servers that run in this process, by port."""


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server on a free port of this machine, which sorts text as English does, so that whoever relies on the order of
    bytes is found out. It ends with the block, and with this process should that be killed."""
    binaries = find_binaries()
    with tempfile.TemporaryDirectory(prefix="doctriage-postgres-") as name:
        folder = Path(name)
        server = PostgresServer(port=_free_port(), password=secrets.token_hex(16))
        (folder / "password").write_text(server.password, encoding="ascii")
        if os.geteuid() == 0:
            for place in (folder, folder / "password"):
                shutil.chown(place, ACCOUNT, ACCOUNT)
        _initialise(binaries, folder)
        process = _Process(binaries, folder, server)
        _PROCESSES[server.port] = process
        try:
            process.start()
            yield server
        finally:
            del _PROCESSES[server.port]
            if process.running is not None:
                process.running.send_signal(signal.SIGQUIT)
                process.running.wait()


def find_binaries() -> Path:
    """Of the newest version. Raises ``FileNotFoundError`` with what to install."""
    in_path = shutil.which("initdb")
    if in_path is not None:
        return Path(in_path).resolve().parent
    versions = sorted(DEBIAN_BINARIES.glob("*/bin/initdb"), key=lambda found: int(found.parts[-3]))
    if not versions:
        raise FileNotFoundError(
            "these tests need PostgreSQL: `apt-get install postgresql`, or `make test`, which does so"
        )
    return versions[-1].parent


def _as_account() -> list[str]:
    """What runs a command as somebody whom PostgreSQL accepts, and ends it with this process."""
    account = [f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", "--pdeathsig=QUIT", *account]


def _initialise(binaries: Path, folder: Path) -> None:
    done = subprocess.run(
        [
            *_as_account(),
            binaries / "initdb",
            f"--pgdata={folder / 'data'}",
            f"--username={USER}",
            f"--pwfile={folder / 'password'}",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en",
            "--no-sync",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(slots=True)
class _Process:
    """The server's, which is another one after each start."""

    binaries: Path
    folder: Path
    server: PostgresServer
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = {**FAST, "listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            self.running = subprocess.Popen(
                [
                    *_as_account(),
                    self.binaries / "postgres",
                    *("-D", self.folder / "data"),
                    *("-p", str(self.server.port)),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        _await_start(self.running, self.server, self.folder / "log")

    def stop(self) -> None:
        """As a crash would end it, but that its memory reaches the disk."""
        assert self.running is not None
        self.running.send_signal(signal.SIGINT)
        self.running.wait()


def _await_start(process: subprocess.Popen[bytes], server: PostgresServer, log: Path) -> None:
    deadline_s = time.monotonic() + START_LIMIT_S
    while True:
        with suppress(psycopg.OperationalError):
            server.execute("SELECT 1")
            return
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline_s, log.read_text(errors="replace")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
