"""Runs that are killed, and runs that meet: every page is read to one result, whoever is shot on the way."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.pages import page_image, tiff_of_widths, write_tiff

ROOT = Path(__file__).parent.parent.parent
PAGE_COUNT = 16
WORDS = ("harbour", "ledger", "copper", "winter", "garden", "engine", "bridge", "silver")
START_LIMIT_S = 90


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """Real text on every page, for the real engine."""
    pages = [page_image(f"{WORDS[number % 8]} number {number + 1}") for number in range(PAGE_COUNT)]
    return write_tiff(tmp_path / "in" / "scan.tif", pages)


def start_command(scan: Path, out: Path, home: Path) -> subprocess.Popen[bytes]:
    command = "from workers.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", command, "ingest", str(scan), "--out", str(out), "--jobs", "2"],
        cwd=ROOT,
        env={**os.environ, "DOCTRIAGE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def pages_in(home: Path) -> list[tuple[int, str, int, bool]]:
    """(page number, state, attempts, has a result) of every page."""
    database = home / "doctriage.sqlite3"
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            rows = connection.execute(
                "SELECT page_number, state, attempts, result IS NOT NULL FROM pages ORDER BY page_number"
            )
            return [(number, state, attempts, bool(has)) for number, state, attempts, has in rows]
        except sqlite3.OperationalError:  # the tables are still being made
            return []


def done_pages(home: Path) -> int:
    return sum(state == "done" for _, state, _, _ in pages_in(home))


def wait_until(condition: Callable[[], bool], *, limit_s: float) -> None:
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.05)


@contextlib.contextmanager
def killed_in_the_middle(scan: Path, out: Path, home: Path) -> Iterator[list[psutil.Process]]:
    """Start, wait until some pages are done, kill the parent; the workers are handed to the block."""
    run = start_command(scan, out, home)
    wait_until(lambda: done_pages(home) >= 3 or run.poll() is not None, limit_s=START_LIMIT_S)
    workers = psutil.Process(run.pid).children(recursive=True)
    assert run.poll() is None, run.communicate()[0].decode()
    run.kill()
    yield workers
    run.communicate()


def assert_complete(scan: Path, out: Path, home: Path) -> None:
    """Run again to the end; each page has one result, reached by one attempt."""
    before = done_pages(home)
    assert 3 <= before < PAGE_COUNT
    again = start_command(scan, out, home)
    said = again.communicate(timeout=START_LIMIT_S)[0].decode()
    assert again.returncode == 0, said
    assert f"{before} kept from an earlier run" in " ".join(said.split())
    assert pages_in(home) == [(number, "done", 1, True) for number in range(1, PAGE_COUNT + 1)]
    document: dict[str, Any] = json.loads((out / "scan.tif.json").read_bytes())
    read = [page["text"].split()[-1] for page in document["pages"]]
    assert read == [str(number) for number in range(1, PAGE_COUNT + 1)]
    assert len((out / "pages.jsonl").read_text().splitlines()) == PAGE_COUNT


def test_killed_with_all_its_workers_a_run_is_completed_by_the_next(scan: Path, tmp_path: Path) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    with killed_in_the_middle(scan, out, home) as workers:
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
    assert not (out / "scan.tif.json").exists()
    assert_complete(scan, out, home)


def test_workers_end_with_their_parent_and_the_next_run_takes_over(scan: Path, tmp_path: Path) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    with killed_in_the_middle(scan, out, home) as workers:
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert alive == []
    assert_complete(scan, out, home)


def test_two_runs_at_once_share_the_pages_and_both_write(tmp_path: Path) -> None:
    widths = list(range(500, 524))
    tiff_of_widths(tmp_path / "in" / "a.tif", widths)
    outs = [tmp_path / "out1", tmp_path / "out2"]
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.run_ingest", tmp_path, tmp_path / "in", out, "0.2"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for out in outs
    ]
    counts = [json.loads(run.communicate(timeout=START_LIMIT_S)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert all(count["read"] + count["earlier"] == len(widths) for count in counts)
    assert sum(count["read"] for count in counts) == len(widths)
    calls = Counter(int(line.split()[0]) for line in (tmp_path / "calls").read_text().splitlines())
    assert calls == Counter(widths)
    for out in outs:
        assert len(json.loads((out / "a.tif.json").read_bytes())["pages"]) == len(widths)
