"""A throw-away RabbitMQ server, from the files of an installed package and with nothing of the system's own: its data,
Erlang cookie, node name and port mapper (epmd) are all its own, so that several can run at once."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import amqp
from pydantic import SecretStr

from models.pool import Queue
from tests.server_parts import end_server, free_port, give, start_server

DEBIAN_PROGRAM: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's script in the PATH starts this one as the package's account, with the package's files."""

ACCOUNT: Final = "rabbitmq"
"""Who runs the server where root starts it; the package makes the account."""

START_LIMIT_S: Final = 120
STOP_LIMIT_S: Final = 60
USER: Final = "doctriage"
NOT_YET: Final = (OSError, amqp.AMQPError)

SETTINGS: Final = """
default_user = {user}
default_pass = {password}
loopback_users.{user} = false
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
raft.wal_max_size_bytes = 4000000
num_acceptors.tcp = 2
"""


@dataclass(slots=True, eq=False)
class RabbitmqServer:
    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _epmd_port: int = field(default_factory=free_port)
    _node_port: int = field(default_factory=free_port)

    @property
    def url(self) -> SecretStr:
        return SecretStr(f"amqp://{USER}:{self.password}@127.0.0.1:{self.port}//")

    def start(self) -> None:
        """Does nothing where it runs."""
        if self._processes:
            return
        self._write_configuration()
        self._run("epmd", "-address", "127.0.0.1", "-port", str(self._epmd_port))
        self._await(self._ask_epmd)
        self._run(find_rabbitmq())
        self._await(self.connect)

    def stop(self) -> None:
        """In good order: a quorum queue that is some seconds old does not outlive a crash. Does nothing where it does
        not run."""
        self._end(STOP_LIMIT_S)

    def kill(self) -> None:
        self._end(0.0)

    def lose_everything(self) -> None:
        self.kill()
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.start()

    def connect(self) -> amqp.Connection:
        connection = amqp.Connection(
            f"127.0.0.1:{self.port}", userid=USER, password=self.password, connect_timeout=10
        )
        connection.connect()
        return connection

    def broker(self) -> RabbitmqBroker:
        """The server, without a message in any queue of ours. The queues stay: one that is deleted and made anew comes
        back from a restart empty."""
        self.start()
        with closing(self.connect()) as connection:
            for queue in Queue:
                with suppress(amqp.NotFound):
                    connection.channel().queue_purge(str(queue))
        return RabbitmqBroker(server=self)

    def _end(self, patience_s: float) -> None:
        """The server first, then its port mapper."""
        while self._processes:
            end_server(self._processes.pop(), patience_s=patience_s)

    def _write_configuration(self) -> None:
        cookie = self.folder / ".erlang.cookie"
        if not cookie.exists():
            cookie.write_text(secrets.token_hex(16), encoding="ascii")
            cookie.chmod(0o400)
        settings, plugins = self.folder / "rabbitmq.conf", self.folder / "plugins"
        settings.write_text(SETTINGS.format(user=USER, password=self.password), encoding="ascii")
        plugins.write_text("[].", encoding="ascii")
        give(ACCOUNT, self.folder, cookie, settings, plugins)

    def _run(self, *command: str | Path) -> None:
        process = start_server(
            command, account=ACCOUNT, folder=self.folder, log=self._log, environment=self._environment()
        )
        self._processes.append(process)

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": str(self.folder / "data"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_NODENAME": f"doctriage{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RUNNING_UNDER_SYSTEMD": "true",  # no shell in between that would wait for the server
        }

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _ask_epmd(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._epmd_port))

    def _await(self, connect: Callable[[], amqp.Connection | socket.socket]) -> None:
        deadline_s = time.monotonic() + START_LIMIT_S
        while True:
            try:
                connect().close()
            except NOT_YET:
                pass
            else:
                return
            assert self._processes[-1].poll() is None, self._log.read_text(errors="replace")
            assert time.monotonic() < deadline_s, self._log.read_text(errors="replace")
            time.sleep(0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitmqBroker:
    server: RabbitmqServer

    @property
    def url(self) -> SecretStr:
        return self.server.url

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    def lose_everything(self) -> None:
        self.server.lose_everything()


@contextmanager
def running_rabbitmq() -> Iterator[RabbitmqServer]:
    """A server on a free port of this machine. It ends with the block, and with this process should that be killed."""
    with tempfile.TemporaryDirectory(prefix="doctriage-rabbitmq-") as name:
        server = RabbitmqServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.kill()


def find_rabbitmq() -> Path:
    """Raises ``FileNotFoundError`` with what to install."""
    if DEBIAN_PROGRAM.exists():
        return DEBIAN_PROGRAM
    found = shutil.which("rabbitmq-server")
    if found is None:
        raise FileNotFoundError(
            "these tests need RabbitMQ: `apt-get install rabbitmq-server`, or `make test`, which does so"
        )
    return Path(found)
