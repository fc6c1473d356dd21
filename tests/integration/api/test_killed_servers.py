"""A server that is killed at any moment of an upload leaves a whole document or nothing, and a client that asks again
gets one document and one bill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.pool.house import write_register
from tests.api_server import ApiServer, serve
from tests.fakes.run_dying_server import MOMENTS
from tests.pool_processes import PoolProcesses, pool_processes

ROOT = Path(__file__).parents[3]
ENTERED_AT = ("after accept",)
KEY = {"idempotency-key": "k-1"}


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_register(tmp_path_factory.mktemp("register") / "register.pdf", 3)


def processes_in(folder: Path) -> PoolProcesses:
    settings = {
        "DOCTRIAGE_HOME": str(folder / "home"),
        "DOCTRIAGE_EXECUTOR__JOBS": "1",
        "DOCTRIAGE_POOL__RECONCILE_EVERY_S": "1",
    }
    (folder / "logs").mkdir()
    return PoolProcesses(folder / "logs", settings)


def send_and_lose(folder: Path, processes: PoolProcesses, moment: str, register: Path) -> None:
    log = folder / "dying.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fakes.run_dying_server", moment),
                *("serve", "--port", "0", "--insecure-no-auth"),
            ],
            cwd=ROOT,
            env={**os.environ, **processes.environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        while b'"serving"' not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        line = next(line for line in log.read_text().splitlines() if '"serving"' in line)
        url = line.partition('"url": "')[2].partition('"')[0]
        with pytest.raises(httpx2.TransportError), register.open("rb") as stream_in:
            httpx2.post(f"{url}/v1/documents", files={"file": ("register.pdf", stream_in)}, headers=KEY)
        assert process.wait(60) == -9
    finally:
        process.kill()


def assert_nothing_is_left(server: ApiServer) -> None:
    server.wait_until(lambda: server.rows("SELECT 1 FROM arriving_blobs") == [])
    server.wait_until(lambda: server.files("incoming") == [])
    assert server.rows("SELECT 1 FROM uploads") == []
    assert server.rows("SELECT 1 FROM submissions") == []
    assert server.rows("SELECT 1 FROM sources") == []
    assert server.files("blobs") == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_all_or_nothing(tmp_path: Path, register: Path, moment: str) -> None:
    processes = processes_in(tmp_path)
    send_and_lose(tmp_path, processes, moment, register)
    try:
        server = serve(processes)
        if moment not in ENTERED_AT:
            assert_nothing_is_left(server)
        upload_id = server.send(register, headers=KEY).json()["id"]
        document = server.await_end(upload_id)
        assert (document["state"], document["pages"]["done"]) == ("finished", 3)
        assert server.rows("SELECT upload_id FROM uploads") == [(upload_id,)]
        assert server.rows("SELECT kind, page_number FROM ledger ORDER BY page_number") == [
            ("cpu_page", number) for number in (1, 2, 3)
        ]
        assert server.files("blobs") == [document["document_id"]]
        assert server.rows("SELECT 1 FROM arriving_blobs") == []
    finally:
        processes.stop()


@pytest.mark.slow
def test_a_kill_while_bytes_arrive_leaves_nothing(tmp_path: Path) -> None:
    processes = processes_in(tmp_path)
    try:
        server = serve(processes)
        first = server.url
        arrived = 0

        def body() -> object:
            nonlocal arrived
            yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7\n'
            while arrived < 200:
                yield b"x" * 2**20
                arrived += 1
                if arrived == 5:
                    server.wait_until(lambda: server.files("incoming") != [])
                    server.process.kill()

        with pytest.raises(httpx2.TransportError):
            httpx2.post(
                f"{first}/v1/documents",
                content=body(),
                headers={"content-type": "multipart/form-data; boundary=b"},
            )
        assert arrived >= 5
        server.wait_until(lambda: server.process.starts == 2 and server.url != first)
        assert_nothing_is_left(server)
    finally:
        processes.stop()


@pytest.mark.slow
def test_a_stopped_server_goes_on_where_it_was(tmp_path: Path) -> None:
    """Told to stop, it is gone within seconds; started again, it reads the rest, each page once."""
    register = write_register(tmp_path / "long.pdf", 60)
    with pool_processes(
        tmp_path / "logs", {"DOCTRIAGE_HOME": str(tmp_path / "home"), "DOCTRIAGE_EXECUTOR__JOBS": "1"}
    ) as processes:
        server = serve(processes)
        upload_id = server.send(register).json()["id"]
        server.wait_until(lambda: server.document(upload_id)["pages"]["done"] >= 4)
        assert server.process.stop() == 0
        settled = server.rows("SELECT state, count(*) FROM pages GROUP BY state ORDER BY state")
        assert [state for state, _ in settled] == ["done", "pending"]
        again = serve(processes)
        assert again.await_end(upload_id)["pages"]["done"] == 60
        assert again.rows("SELECT count(*), count(DISTINCT page_number) FROM ledger") == [(60, 60)]
