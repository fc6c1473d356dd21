"""One ingest for all the inputs that are tested: start-up is paid once, also under several test workers."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.kinds.judging import Cousin, faults, read_output

DOCTRIAGE = Path(sys.executable).with_name("doctriage")
LONGEST_RUN_S = 570


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An ingest that has come to its end, and its output folder."""

    out: str
    exit_code: int
    stdout: str
    stderr: str
    elapsed_s: float

    def path(self, name: str) -> Path:
        return Path(self.out) / name


def ingest(
    *arguments: str | bytes | Path,
    out: Path,
    home: Path,
    before: Sequence[str] = (),
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run ``doctriage ingest`` in a process of its own; ``before`` is a command that runs it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
    started_s = time.monotonic()
    done = subprocess.run(
        [*before, DOCTRIAGE, "ingest", *arguments, "--out", out],
        env=clean
        | {"DOCTRIAGE_HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}
        | dict(environment or {}),
        cwd=cwd,
        capture_output=True,
        timeout=LONGEST_RUN_S,
        check=False,
    )
    return Run(
        out=str(out),
        exit_code=done.returncode,
        stdout=done.stdout.decode(errors="replace"),
        stderr=done.stderr.decode(errors="replace"),
        elapsed_s=time.monotonic() - started_s,
    )


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Run]], Run]:
    """``run_once(name, start)`` starts the run of that name in a fresh folder; later calls get its result.

    Test workers share their base folder's parent; whoever holds the lock first does the work for all.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def once(name: str, start: Callable[[Path], Run]) -> Run:
        folder = shared / f"run-{name}"
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = folder / "run.json"
            if not record.exists():
                record.write_text(json.dumps(asdict(start(folder))))
            return Run(**json.loads(record.read_text()))

    return once


@pytest.fixture(scope="session")
def cousins_run(request: pytest.FixtureRequest, run_once: Callable[[str, Callable[[Path], Run]], Run]) -> Run:
    """An ingest of every cousin that this session tests."""
    cousins = {
        item.callspec.params["cousin"].file_name: item.callspec.params["cousin"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and "cousin" in item.callspec.params
    }

    def start(folder: Path) -> Run:
        (folder / "in").mkdir()
        for file_name, cousin in cousins.items():
            cousin.write(folder / "in" / file_name)
        return ingest(folder / "in", out=folder / "out", home=folder / "home")

    return run_once("cousins", start)


@pytest.fixture
def check(cousins_run: Run) -> Callable[[Cousin], None]:
    """``check(cousin)`` fails with every difference between what came out and what a reader sees."""

    def check_cousin(cousin: Cousin) -> None:
        output = cousins_run.path(f"{cousin.file_name}.json")
        assert output.exists(), cousins_run.stderr[-2000:] + cousins_run.stdout[-2000:]
        assert faults(read_output(output), cousin.expected) == []

    return check_cousin
