"""A pool in a storm ends with one result a page and one entry an attempt, and nobody had to help it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline.planning.configured import load_plan
from pipeline.settings import VlmSettings
from pipeline.visual_tokens import VisualTokenBudget
from tests.chaos.books import figures
from tests.chaos.papers import answerer, write_papers, write_printed
from tests.chaos.storm import Storm, small_disk
from tests.fakes.vlm_script import Script
from tests.fakes.vlm_server import FakeVlm
from tests.pool_processes import DOCTRIAGE, PoolProcesses, logs_of, pool_processes
from tests.postgres import PostgresServer, running_postgres
from tests.redis_server import running_redis

LEASE_S = 10
ENOUGH_MINUTES = 6
"""From here on the storm has its 300 pages; a shorter one has three quarters of them."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_nothing_is_lost_and_nothing_is_double(
    tmp_path: Path,
    stack: ExitStack,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    minutes = request.config.getoption("--minutes")
    share = 1.0 if minutes >= ENOUGH_MINUTES else 0.75
    mixed = write_papers(tmp_path / "mixed", text=round(200 * share), printed=round(50 * share))
    seen = write_printed(tmp_path / "seen", round(50 * share))
    papers = (*mixed, *seen)
    postgres = stack.enter_context(running_postgres())
    postgres.execute("CREATE DATABASE pool")
    broker = stack.enter_context(running_redis()).broker()
    blobs = stack.enter_context(small_disk(tmp_path / "blobs"))
    vlm = stack.enter_context(_vlm(papers))
    environment = {
        "DOCTRIAGE_DATABASE_URL": postgres.url("pool").get_secret_value(),
        "DOCTRIAGE_POOL__BROKER_URL": broker.url.get_secret_value(),
        "DOCTRIAGE_POOL__LEASE_S": str(LEASE_S),
        "DOCTRIAGE_POOL__RECONCILE_EVERY_S": "2",
        "DOCTRIAGE_POOL__MAX_LOSSES": "20",
        "DOCTRIAGE_BLOBS__URL": blobs.as_uri(),
        "DOCTRIAGE_HOME": str(tmp_path / "home"),
        "DOCTRIAGE_VLM__URL": vlm.base_url,
        "DOCTRIAGE_VLM__CONCURRENCY": "4",
        "DOCTRIAGE_LOG_LEVEL": "info",
        "OMP_THREAD_LIMIT": "1",
    }
    pool = stack.enter_context(pool_processes(tmp_path / "logs", environment))
    outs = (tmp_path / "out-mixed", tmp_path / "out-seen")
    pool.beat()
    intake = pool.worker("intake,assemble", 1)
    readers = [pool.worker("ocr", 1), pool.worker("ocr", 1)]
    callers = pool.worker("vlm", 6)
    total = sum(paper.pages for paper in papers)
    storm = Storm(
        readers=readers,
        others=[intake, callers],
        broker=broker,
        postgres=postgres,
        vlm=vlm,
        blobs=blobs,
        done=lambda: _settled(postgres) / total,
        seed=request.config.getoption("--seed"),
        kill_every_s=6.0,
        stopped_s=2.0 * LEASE_S,
    )
    started_s = time.monotonic()
    ingests = [
        _ingest(pool, tmp_path / "mixed", outs[0], "harbour"),
        _ingest(pool, tmp_path / "seen", outs[1], "museum", "--route", "vlm"),
    ]
    with storm.killing():
        storm.strike()
        for ingest in ingests:
            ingest.wait(minutes * 60)
    took_s = time.monotonic() - started_s
    told = figures(outs, papers, postgres, "pool", vlm.seen)
    with capsys.disabled():
        sys.stdout.write(
            "\n".join(["", *storm.log, f"{told}", f"{took_s:.0f} s", f"starts: {starts(pool)}", ""])
        )
    assert told.is_clean, logs_of(pool.running)
    assert [ingest.returncode for ingest in ingests] == [0, 0], logs_of(pool.running)


def starts(pool: PoolProcesses) -> str:
    return ", ".join(f"{' '.join(one.arguments[:3])} {one.starts}" for one in pool.running)


def _vlm(papers):  # type: ignore[no-untyped-def]
    plan = load_plan(VlmSettings())
    budget = VisualTokenBudget(family=plan.family, min_pixels=plan.min_pixels, max_pixels=plan.max_pixels)
    return FakeVlm(Script(answer=answerer(papers), seconds_a_request=0.5, concurrency=4), budget=budget)


def _settled(postgres: PostgresServer) -> int:
    """Of the moment before where the database is away."""
    try:
        [(count,)] = postgres.execute("SELECT count(*) FROM pages WHERE state IN ('done', 'failed')", "pool")
    except Exception:  # noqa: BLE001 — whatever the driver says of a server that is away
        return _LAST[0]
    _LAST[0] = int(str(count))
    return _LAST[0]


_LAST = [0]


def _ingest(
    pool: PoolProcesses, folder: Path, out: Path, cost_centre: str, *options: str
) -> subprocess.Popen[bytes]:
    command = ["ingest", folder, "--executor", "celery", "--out", out, "--cost-centre", cost_centre, *options]
    with (pool.folder / f"ingest-{folder.name}.log").open("wb") as log:
        return subprocess.Popen(
            [DOCTRIAGE, *command],
            env={**os.environ, **pool.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
