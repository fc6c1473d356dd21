"""Pages that failed, put back to work by the command, and results that are fetched before and after."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import SecretStr
from typer.testing import CliRunner, Result

from models.pool import Queue, SubmissionState
from tests.fakes.engines import FakeEngines, FakeOcr, Fault
from tests.fakes.pages import tiff_of_widths
from tests.integration.pool.bench import pool_bench
from workers.cli import app


def states(out: Path) -> list[tuple[str, int, str]]:
    rows = [json.loads(line) for line in (out / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(row["source"], row["page_number"], row["state"]) for row in rows]


def test_a_page_that_is_tried_again_is_in_the_results_as_if_it_had_never_failed(
    tmp_path: Path, postgres_url: SecretStr
) -> None:
    folder, home, out = tmp_path / "in", tmp_path / "pool", tmp_path / "out"
    folder.mkdir()
    tiff_of_widths(folder / "a.tif", [500, 501, 502])
    tiff_of_widths(folder / "b.tif", [501])
    environment = {
        "DOCTRIAGE_HOME": str(home),
        "DOCTRIAGE_DATABASE_URL": postgres_url.get_secret_value(),
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, list(map(str, arguments)), env=environment)

    faults = {501: Fault.ENGINE_ERROR}
    fakes = FakeEngines(ocr=FakeOcr(folder=tmp_path, faults=faults))
    with pool_bench(home, postgres_url, build_engines=fakes) as bench:
        number = bench.submit(folder)
        bench.work()
        first = run("submissions", "fetch", number, "--out", out)
        assert first.exit_code == 1, first.output
        failed = [("a.tif", 2, "failed"), ("b.tif", 1, "failed")]
        assert [row for row in states(out) if row[2] == "failed"] == failed
        assert not (out / "b.tif.md").exists()
        assert "document_failed" in (out / "failures.jsonl").read_text(encoding="utf-8")
        assert "engine_failed" in run("dead", "show", "a.tif", 2).stdout

        faults.clear()
        tried = run("dead", "retry", "--submission", number)
        assert "2 pages will be read again" in tried.stdout
        assert bench.host.store.pool.progress(number).state is SubmissionState.OPEN
        bench.tickets.sent[Queue.OCR] += 2
        bench.work()
        assert bench.host.store.pool.progress(number).state is SubmissionState.FINISHED
        second = run("submissions", "fetch", number, "--out", out)
        assert second.exit_code == 0, second.output
        assert {state for _, _, state in states(out)} == {"done"}
        assert "page of 501 pixels" in (out / "b.tif.md").read_text(encoding="utf-8")
        assert (out / "failures.jsonl").read_text(encoding="utf-8") == ""
        assert run("dead", "list").stdout == "no page has failed in the pool\n"
