"""Files made to break a reader: each gets its result or its row of failures, and the run its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from models.errors import DocumentCorrupt, DocumentEncrypted
from pipeline.engines.pdfium import PdfiumEngine
from tests.kinds import hostile
from tests.kinds.conftest import Run, ingest
from tests.kinds.hostile import Hostile, Outcome
from tests.kinds.judging import occurs, plain, read_output, read_rows

pytestmark = pytest.mark.slow

LONGEST_RUN_S = 450
LIMITS = {
    "DOCTRIAGE_EXECUTOR__MEMORY_LIMIT_BYTES": str(2 * 2**30),
    # what never ends takes all of it
    "DOCTRIAGE_RASTERISE__TIMEOUT_S": "20",
}


@pytest.fixture(scope="session")
def hostile_run(run_once: Callable[[str, Callable[[Path], Run]], Run]) -> Run:
    def start(folder: Path) -> Run:
        (folder / "in").mkdir()
        for file in hostile.all_hostile():
            (folder / "in" / file.name).write_bytes(file.content)
        return ingest("in", out=folder / "out", home=folder / "home", cwd=folder, environment=LIMITS)

    return run_once("hostile", start)


@pytest.fixture(scope="session")
def names_run(run_once: Callable[[str, Callable[[Path], Run]], Run]) -> Run:
    def start(folder: Path) -> Run:
        hostile.write_vile_names(folder / "in")
        hostile.write_no_files(folder / "in" / "no files")
        return ingest("in", out=folder / "out", home=folder / "home", cwd=folder)

    return run_once("names", start)


def test_every_file_gets_its_result_or_its_row(hostile_run: Run) -> None:
    failures = {row["source"]: row for row in read_rows(hostile_run.path("failures.jsonl"))}
    wrong = {
        file.name: found
        for file in hostile.all_hostile()
        if (found := list(outcome_faults(file, failures.get(file.name), hostile_run)))
    }
    assert wrong == {}


def outcome_faults(file: Hostile, failure: Mapping[str, Any] | None, run: Run) -> Iterator[str]:
    path = run.path(f"{file.name}.json")
    if failure is None and not path.exists():
        yield "neither a result nor a failure"
    elif failure is not None and file.outcome is Outcome.RESULT:
        yield f"refused: {failure['code']}: {failure['message']}"
    elif failure is None and file.outcome is Outcome.REJECTED:
        yield "not refused"
    if failure is not None:
        yield from failure_faults(file, failure)
    elif path.exists() and file.outcome is Outcome.RESULT:
        yield from result_faults(file, read_output(path))


def failure_faults(file: Hostile, failure: Mapping[str, Any]) -> Iterator[str]:
    if file.code is not None and failure["code"] != file.code:
        yield f"code {failure['code']}, expected {file.code}"
    if len(failure["message"]) < 15 or "Traceback" in failure["message"]:
        yield f"message says nothing: {failure['message']!r}"


def result_faults(file: Hostile, output: Mapping[str, Any]) -> Iterator[str]:
    pages = output["pages"]
    if file.page_count is not None and len(pages) != file.page_count:
        yield f"{len(pages)} pages, expected {file.page_count}"
    text = plain(" ".join(page["text"] or "" for page in pages))
    for wanted in file.text:
        if not occurs(plain(wanted), text, len(wanted) // 10):
            yield f"missing: {wanted!r} in {text[:60]!r}"
    routes = {page["route"] for page in pages}
    if file.route is not None and not routes <= {file.route, f"{file.route}_degraded"}:
        yield f"went {routes}, expected {file.route}"


def test_the_run_ends_in_time_and_says_that_some_failed(hostile_run: Run) -> None:
    assert hostile_run.exit_code == 1
    assert hostile_run.elapsed_s < LONGEST_RUN_S
    assert "Traceback" not in hostile_run.stderr + hostile_run.stdout


def test_a_page_that_swells_or_never_ends_costs_only_itself(hostile_run: Run) -> None:
    """Either poppler is stopped, or the worker ends."""
    rows = [row for row in read_rows(hostile_run.path("pages.jsonl")) if row["source"].startswith("form")]
    assert {row["source"] for row in rows} == {"form draws itself.pdf", "forms in forms.pdf"}
    assert {row["error"]["code"] for row in rows if row["state"] != "done"} <= {
        "page_not_rendered",
        "worker_crashed",
    }


def test_nothing_acts_and_nothing_is_written_beside_the_results(hostile_run: Run, names_run: Run) -> None:
    for run in (hostile_run, names_run):
        folder = run.path("..").resolve()
        assert {path.name for path in folder.iterdir()} == {"in", "out", "home", "lock", "run.json"}
        assert not [path for path in folder.rglob("*") if path.name.startswith("owned")]


def test_a_page_reads_the_same_under_every_name(names_run: Run) -> None:
    outputs = [
        json.loads(path.read_bytes()) for path in names_run.path(".").rglob("*.json") if path.is_file()
    ]
    assert len(outputs) == len(hostile.VILE_NAMES)
    assert len({output["document_id"] for output in outputs}) == 1
    assert len({output["source"] for output in outputs}) == len(outputs)
    assert all(hostile.SENTENCE in output["pages"][0]["text"] for output in outputs)


def test_names_reach_the_terminal_without_its_commands(names_run: Run) -> None:
    assert names_run.exit_code == 1
    printed = names_run.stdout + names_run.stderr
    assert "Traceback" not in printed
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)


def test_links_and_pipes_are_refused_not_followed(names_run: Run) -> None:
    sources = {row["source"] for row in read_rows(names_run.path("failures.jsonl"))}
    assert {"no files/to nowhere.pdf", "no files/to itself.pdf", "no files/pipe.pdf"} <= sources


def test_each_pdf_is_refused_for_a_reason_of_its_own(tmp_path: Path) -> None:
    files = {file.name: file.content for file in (*hostile.locked_pdfs(), *hostile.broken_pdfs())}
    (tmp_path / "locked.pdf").write_bytes(files["locked 6.pdf"])
    (tmp_path / "no pages.pdf").write_bytes(files["no pages.pdf"])
    with pytest.raises(DocumentEncrypted):
        PdfiumEngine().inspect(tmp_path / "locked.pdf", None)
    with pytest.raises(DocumentCorrupt):
        PdfiumEngine().inspect(tmp_path / "no pages.pdf", None)
