"""``doctriage ingest --executor celery``: what a submitter sees and gets, on both brokers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pool.house import House, rows_of
from tests.acceptance.test_ingest_command_line import SENTENCE, write_pdf, write_scan
from tests.pool_processes import DOCTRIAGE

pytestmark = pytest.mark.slow

OF_A_RUN = ("elapsed_s",)
"""How long something took is not the same twice."""


def written(folder: Path) -> dict[str, Any]:
    """What stands in each file of a run, without what differs from run to run."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8")
        match path.suffix:
            case ".json":
                content: Any = timeless(json.loads(text))
            case ".jsonl":
                content = sorted((timeless(row) for row in map(json.loads, text.splitlines())), key=str)
            case _:
                content = text
        found[str(path.relative_to(folder))] = content
    return found


def timeless(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: timeless(value) for name, value in content.items() if name not in OF_A_RUN}
    return [timeless(value) for value in content] if isinstance(content, list) else content


def submission_number(stderr: str) -> str:
    found = re.search(r"submission (\d+)", stderr)
    assert found is not None, stderr
    return found.group(1)


def test_the_pool_writes_what_the_embedded_executor_writes(busy_house: House, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_pdf(folder / "letters" / "born.pdf", 3)
    write_scan(folder / "scan.png")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    (folder / "again.pdf").write_bytes((folder / "letters" / "born.pdf").read_bytes())
    pool = busy_house.ingest(folder, "--out", tmp_path / "pool")
    here = subprocess.run(
        [DOCTRIAGE, "ingest", folder, "--out", tmp_path / "here"],
        env={**os.environ, "DOCTRIAGE_HOME": str(tmp_path / "home"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    assert (pool.returncode, here.returncode) == (1, 1), pool.stderr + busy_house.logs
    assert re.match(r"submission (\d+); `doctriage submissions show \1` says how far it is\n", pool.stderr)
    ours = written(tmp_path / "pool")
    assert ours == written(tmp_path / "here")
    assert SENTENCE in ours["scan.png.md"]
    assert [row["source"] for row in ours["failures.jsonl"]] == ["broken.pdf"]
    assert len(ours["pages.jsonl"]) == 7
    for words in ("broken.pdf", "document_corrupt", "born.pdf", "scan.png"):
        assert words in pool.stdout
    assert "Traceback" not in pool.stderr + busy_house.logs


def test_who_does_not_wait_fetches_it_later(busy_house: House, tmp_path: Path) -> None:
    source = write_pdf(tmp_path / "minutes.pdf", 2, f"{SENTENCE} {busy_house.database}")
    detached = busy_house.ingest(
        source, "--out", tmp_path / "out", "--detach", "--priority", "9", "--cost-centre", "harbour/pilots"
    )
    assert (detached.returncode, detached.stdout) == (0, ""), detached.stderr
    assert not (tmp_path / "out" / "minutes.pdf.md").exists()
    number = submission_number(detached.stderr)
    [(priority, cost_centre)] = busy_house.rows(
        f"SELECT priority, cost_centre FROM submissions WHERE submission_id = {number}"
    )
    assert (priority, cost_centre) == (9, "harbour/pilots")
    assert f"doctriage submissions fetch {number} --out {tmp_path / 'out'}" in detached.stderr

    fetched = busy_house.doctriage("submissions", "fetch", number, "--out", tmp_path / "out")
    assert fetched.returncode == 0, fetched.stderr + busy_house.logs
    assert SENTENCE in (tmp_path / "out" / "minutes.pdf.md").read_text(encoding="utf-8")
    assert [row["page_number"] for row in rows_of(tmp_path / "out" / "pages.jsonl")] == [1, 2]
    assert "2 pages read" in fetched.stdout


def test_what_was_read_before_is_neither_read_nor_paid_again(busy_house: House, tmp_path: Path) -> None:
    source = write_pdf(tmp_path / "twice.pdf", 2, f"{SENTENCE} twice {busy_house.database}")
    first = busy_house.ingest(source, "--out", tmp_path / "first")
    second = busy_house.ingest(source, "--out", tmp_path / "second")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr + busy_house.logs
    assert written(tmp_path / "first") == written(tmp_path / "second")
    assert "2 pages read" in first.stdout
    assert "2 pages read" not in second.stdout
    charged = busy_house.number(
        "SELECT count(*) FROM ledger WHERE kind = 'cpu_page' AND submission_id IN "
        "(SELECT submission_id FROM sources WHERE name = 'twice.pdf')"
    )
    assert charged == 2
