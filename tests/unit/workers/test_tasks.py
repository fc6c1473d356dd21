"""The tasks of the pool around the stages that they call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.pool import Queue
from pipeline.settings import load_settings
from tests.server_parts import free_port
from workers.cluster import tasks
from workers.cluster.deployment import load_deployment
from workers.tickets import Tickets


class NoTickets(Tickets):
    def send(self, queue: Queue, count: int = 1) -> None:
        raise AssertionError("nothing follows")


@pytest.mark.parametrize("queue", [Queue.INTAKE, Queue.OCR, Queue.ASSEMBLE])
def test_a_process_whose_database_is_away_when_it_begins_rests(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has copies of an S3 store asks at its beginning which of them were erased since."""
    pytest.importorskip("s3fs")
    copy = tmp_path / "cache" / "blobs" / "ab" / ("ab" * 32)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"fetched")
    os.utime(copy, (0, 0))
    url = f"postgresql://doctriage@127.0.0.1:{free_port()}/pool"
    settings = load_settings(
        {"home": tmp_path, "database_url": url, "blobs": {"url": "s3://bucket", "key": "k", "secret": "s"}}
    )
    rests: list[float] = []
    monkeypatch.setattr("time.sleep", rests.append)
    tasks.serve(tasks.Stages(load_deployment(settings)), queue, NoTickets())
    assert rests == [tasks.PAUSE_S]
