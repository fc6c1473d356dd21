"""The brokers' configuration of deploy/broker, taken by real servers."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis

from tests import rabbitmq_server
from tests.deploy_files import DEPLOY
from tests.server_parts import free_port

BROKER = DEPLOY / "broker"
START = BROKER / "start_redis.sh"


def started_redis(folder: Path, password: str | None, *options: str) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "REDIS_CONF": str(BROKER / "redis.conf"),
        "REDIS_RUN": str(folder),
    }
    if password is not None:
        environment["REDIS_PASSWORD"] = password
    return subprocess.Popen([START, *options], env=environment, cwd=folder, stderr=subprocess.PIPE)


@contextmanager
def running_redis(folder: Path, password: str) -> Iterator[redis.Redis]:
    """With the password; every test of it in a folder of its own."""
    socket = folder / "socket"
    options = ("--port", "0", "--unixsocket", str(socket), "--logfile", str(folder / "log"))
    with started_redis(folder, password, *options) as server:
        client = redis.Redis(unix_socket_path=str(socket), password=password)
        try:
            deadline_s = time.monotonic() + 60
            while not socket.exists():
                assert server.poll() is None
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            yield client
        finally:
            client.close()
            server.terminate()


def test_redis_asks_for_the_password_keeps_nothing_and_drops_nothing(tmp_path: Path) -> None:
    password = secrets.token_hex(16)
    with running_redis(tmp_path, password) as client:
        wanted = {"save": "", "appendonly": "no", "maxmemory-policy": "noeviction", "timeout": "0"}
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
        command = Path(f"/proc/{client.info('server')['process_id']}/cmdline").read_text("ascii")
        assert password not in command
        with (
            redis.Redis(unix_socket_path=str(tmp_path / "socket")) as stranger,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            stranger.ping()
    assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("password", [None, ""])
def test_redis_does_not_start_without_a_password(password: str | None, tmp_path: Path) -> None:
    with started_redis(tmp_path, password, "--port", str(free_port())) as server:
        _, said = server.communicate(timeout=60)
    assert server.returncode != 0
    assert b"REDIS_PASSWORD: set it in .env" in said


@pytest.mark.slow
def test_rabbitmq_takes_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does not start with a setting that it does not know."""
    ours = (BROKER / "rabbitmq.conf").read_text(encoding="utf-8")
    monkeypatch.setattr(rabbitmq_server, "SETTINGS", rabbitmq_server.SETTINGS + ours)
    with rabbitmq_server.running_rabbitmq() as server, closing(server.connect()) as connection:
        assert connection.connected
        assert (server.folder / "rabbitmq.conf").read_text(encoding="utf-8").endswith(ours)
