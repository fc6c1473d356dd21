"""Flower, which knows nothing of doctriage but its broker, shows the pool's workers and tasks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from models.pool import Queue
from tests.integration.pool.traced_worker import tickets_over, traced_worker, wait_until
from tests.server_parts import Broker, free_port

Flower = str
"""Where it answers."""


@pytest.mark.slow
def test_flower_lists_the_workers_and_what_they_have_done(broker: Broker, tmp_path: Path) -> None:
    with flower(broker, tmp_path) as address, traced_worker(broker, tmp_path / "traces") as worker:
        tickets_over(broker).send(Queue.OCR)
        worker.await_ended(1)

        wait_until(lambda: asked(address, "workers?refresh=1") != {})
        (name, facts), *others = asked(address, "workers").items()
        assert others == []
        assert name.startswith(f"ocr-{worker.process.pid}-")
        assert [queue["name"] for queue in facts["active_queues"]] == ["ocr"]
        assert {"doctriage.intake", "doctriage.ocr", "doctriage.vlm", "doctriage.assemble"} <= set(
            facts["registered"]
        )
        wait_until(lambda: succeeded(address) == ["doctriage.ocr"])


@contextmanager
def flower(broker: Broker, folder: Path) -> Iterator[Flower]:
    port = free_port()
    command = ["celery", f"--broker={broker.url.get_secret_value()}", "flower", f"--port={port}"]
    with (folder / "flower").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--address=127.0.0.1"],
            env={**os.environ, "FLOWER_UNAUTHENTICATED_API": "true"},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}/api"
    try:
        wait_until(lambda: answers(address), lambda: (folder / "flower").read_text(errors="replace"))
        yield address
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def succeeded(address: Flower) -> list[str]:
    return [task["name"] for task in asked(address, "tasks").values() if task["state"] == "SUCCESS"]


def answers(address: Flower) -> bool:
    try:
        asked(address, "workers")
    except urllib.error.URLError:
        return False
    return True


def asked(address: Flower, what: str) -> Any:
    with urllib.request.urlopen(f"{address}/{what}", timeout=60) as response:
        return json.load(response)
