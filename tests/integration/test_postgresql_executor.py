"""The embedded executor with its state in PostgreSQL: workers that die, runs that are killed, and runs that meet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from models.errors import StoreUnreachable
from pipeline.store import connect_store
from tests.fakes.engines import FakeEngines, Fault
from tests.fakes.pages import tiff_of_widths
from tests.integration.test_local_executor import Bench
from tests.postgres import PostgresServer
from workers.events import Event, IngestRequest, PageGivenUp, PageRetried
from workers.local import find_page, ingest

ROOT = Path(__file__).parent.parent.parent
WIDTHS = list(range(500, 516))
LIMIT_S = 120


@pytest.fixture
def bench(tmp_path: Path, postgres_url: SecretStr) -> Bench:
    bench = Bench(tmp_path)
    bench.settings = bench.settings.model_copy(update={"database_url": postgres_url})
    return bench


def test_workers_that_crash_cost_their_page_an_attempt_and_nothing_else(bench: Bench) -> None:
    tiff_of_widths(bench.inputs / "a.tif", [500, 501, 502, 503])
    tiff_of_widths(bench.inputs / "b.tif", [510, 511])
    bench.engines(faults={501: Fault.CRASH, 503: Fault.CRASH_ONCE, 511: Fault.LIE})
    report = bench.run()
    assert (report.pages_read, report.failed_pages, report.failures) == (4, 2, ())
    assert bench.readings() == {500: 1, 501: 2, 502: 1, 503: 2, 510: 1, 511: 2}
    assert len(bench.events_of(PageRetried)) == 3
    assert len(bench.events_of(PageGivenUp)) == 2
    assert not (bench.settings.home / "doctriage.sqlite3").exists()
    states = [row["state"] for row in bench.rows("pages.jsonl") if row["source"] == "b.tif"]
    assert states == ["done", "failed"]

    bench.engines()
    again = bench.run()
    assert (again.pages_read, again.pages_from_earlier_run, again.failed_pages) == (2, 4, 0)
    assert find_page("a.tif", 2, settings=bench.settings).page["text"] == "page of 501 pixels"


def start_run(bench: Bench, out: Path, url: SecretStr) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.run_ingest", bench.inputs.parent, bench.inputs, out, "0.3"],
        cwd=ROOT,
        env={**os.environ, "DOCTRIAGE_DATABASE_URL": url.get_secret_value()},
        stdout=subprocess.PIPE,
        text=True,
    )


def page_states(bench: Bench, url: SecretStr) -> Counter[str]:
    store = connect_store(bench.settings.home, url)
    with store.database.read() as session:
        states = Counter(session.connection().exec_driver_sql("SELECT state FROM pages").scalars())
    store.close()
    return states


def test_a_run_that_is_killed_with_its_workers_leaves_leases_that_the_next_takes_over(
    bench: Bench, postgres_url: SecretStr
) -> None:
    tiff_of_widths(bench.inputs / "a.tif", WIDTHS)
    run = start_run(bench, bench.out, postgres_url)
    deadline_s = time.monotonic() + LIMIT_S
    while (states := page_states(bench, postgres_url))["done"] < 3 or not states["running"]:
        assert run.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    family = [*psutil.Process(run.pid).children(recursive=True), psutil.Process(run.pid)]
    for process in family:
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, timeout=LIMIT_S)
    run.communicate()
    left = page_states(bench, postgres_url)
    assert left["running"] > 0

    report = bench.run()
    assert report.pages_from_earlier_run == left["done"]
    assert report.pages_read == len(WIDTHS) - left["done"]
    assert page_states(bench, postgres_url) == {"done": len(WIDTHS)}
    read = [page["text"].split()[2] for page in bench.document("a.tif")["pages"]]
    assert read == [str(width) for width in WIDTHS]


def test_two_runs_at_once_share_the_pages_and_both_write(bench: Bench, postgres_url: SecretStr) -> None:
    tiff_of_widths(bench.inputs / "a.tif", WIDTHS)
    outs = [bench.out.with_name(name) for name in ("out1", "out2")]
    runs = [start_run(bench, out, postgres_url) for out in outs]
    counts = [json.loads(run.communicate(timeout=LIMIT_S)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sum(count["read"] for count in counts) == len(WIDTHS)
    assert bench.readings() == Counter(WIDTHS)
    for out in outs:
        assert len(json.loads((out / "a.tif.json").read_bytes())["pages"]) == len(WIDTHS)


def test_a_server_that_goes_away_ends_the_run_in_words_and_the_next_goes_on(
    bench: Bench, postgres: PostgresServer, postgres_url: SecretStr
) -> None:
    """Its connections are cut and no new ones let in, as by a restart."""
    name = postgres_url.get_secret_value().rpartition("/")[2]
    tiff_of_widths(bench.inputs / "a.tif", WIDTHS)
    bench.engines(read_s=0.1)

    def cut_off(event: Event) -> None:
        bench.events.append(event)
        if len(bench.events) == 5:
            postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            postgres.cut_connections()

    with pytest.raises(StoreUnreachable, match=r"^postgresql://.* check that it runs"):
        ingest(
            IngestRequest(paths=(bench.inputs,), out_dir=bench.out),
            settings=bench.settings,
            on_event=cut_off,
            engine_builder=FakeEngines(ocr=bench.ocr),
        )
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    bench.engines()
    report = bench.run()
    assert report.pages_read + report.pages_from_earlier_run == len(WIDTHS)
    assert page_states(bench, postgres_url) == {"done": len(WIDTHS)}
