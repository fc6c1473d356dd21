"""A folder is watched while files arrive, slowly, by a process of its own with the real engines."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from tests.acceptance.test_ingest_command_line import SENTENCE, rows_of, write_pdf

PATIENCE_S = 240
"""For what a busy machine may take."""

QUICK = ("--poll", "0.2", "--settle", "1", "--grace", "8", "--route", "ocr", "--jobs", "1")


@contextmanager
def watching(root: Path, *options: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Ended with SIGTERM, where it has not ended by then."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
    with (root / "log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [DOCTRIAGE, "watch", root / "in", "--out", root / "out", *QUICK, *options],
            env=clean | {"DOCTRIAGE_HOME": str(root / "home"), "NO_COLOR": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def wait_for(log: Path, words: str, count: int = 1) -> str:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        said = log.read_text(encoding="utf-8") if log.exists() else ""
        if said.count(words) >= count:
            return said
        time.sleep(0.1)
    raise AssertionError(f"never said {words!r}: {said}")


def write_slowly(path: Path, stored: bytes, log: Path) -> None:
    """In pieces, the last of which comes when the watch has said that it waits for it."""
    step = len(stored) // 4 + 1
    path.touch()
    for number, words in enumerate((f"new: {path.name}", "", f"unfinished: {path.name}", "")):
        with path.open("ab") as stream:
            stream.write(stored[number * step : (number + 1) * step])
        if words:
            wait_for(log, words)
    assert path.read_bytes() == stored


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def test_a_scan_that_arrives_in_pieces_is_read_once_whole_and_remembered(root: Path) -> None:
    stored = write_pdf(root / "scan.pdf", 3, "Harbour works, weekly log.").read_bytes()
    log = root / "log"
    with watching(root, "--grace", str(PATIENCE_S)) as watch:
        write_slowly(root / "in" / "scan_0001.pdf", stored, log)
        said = wait_for(log, "done: scan_0001.pdf, 3 pages")
        assert "failed" not in said
        assert said.count("reading: ") == 1
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(PATIENCE_S) == 0
    assert rows_of(root / "out" / "failures.jsonl") == []
    pages = rows_of(root / "out" / "pages.jsonl")
    assert [(row["source"], row["page_number"]) for row in pages] == [
        ("scan_0001.pdf", number) for number in (1, 2, 3)
    ]
    assert "Sheet 3" in (root / "out" / "scan_0001.pdf.md").read_text(encoding="utf-8")
    again = run_doctriage("watch", root / "in", "--out", root / "out", "--once", home=root / "home")
    assert again.returncode == 0, again.stderr
    assert "0 files read" in again.stderr
    assert rows_of(root / "out" / "pages.jsonl") == pages


def test_files_are_moved_to_where_they_belong_and_later_ones_replace_nothing(root: Path) -> None:
    log = root / "log"
    folders = ("--done", root / "done", "--failed", root / "failed")
    with watching(root, *folders):
        write_pdf(root / "in" / "letters" / "scan.pdf", 1, SENTENCE)
        (root / "in" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing else")
        (root / "in" / "later.pdf.part").write_bytes(b"%PDF-1.7")
        wait_for(log, "moved: letters/scan.pdf")
        wait_for(log, "moved: broken.pdf")
        write_pdf(root / "in" / "letters" / "scan.pdf", 2, "Another letter altogether.")
        wait_for(log, "done: letters/scan (2).pdf, 2 pages")
    assert SENTENCE[:20] in (root / "out" / "letters" / "scan.pdf.md").read_text(encoding="utf-8")
    assert "Another letter" in (root / "out" / "letters" / "scan (2).pdf.md").read_text(encoding="utf-8")
    assert (root / "done" / "letters" / "scan.pdf").exists()
    assert "broken.pdf: " in (root / "failed" / "broken.pdf.error.txt").read_text(encoding="utf-8")
    assert [row["source"] for row in rows_of(root / "out" / "failures.jsonl")] == ["broken.pdf"]
    assert len(rows_of(root / "out" / "pages.jsonl")) == 3
    assert (root / "in" / "later.pdf.part").exists()


def test_once_reads_what_is_there_and_says_so_in_its_exit_code(root: Path) -> None:
    write_pdf(root / "in" / "letter.pdf")
    (root / "in" / "empty.pdf").touch()
    arguments = ("watch", root / "in", "--out", root / "out", "--once", "--grace", "1", "--settle", "1")
    run = run_doctriage(*arguments, home=root / "home")
    assert run.returncode == 1
    assert "done: letter.pdf, 1 page" in run.stdout
    assert "failed: empty.pdf: " in run.stdout
    assert "1 file read, 1 failed" in run.stderr
    again = run_doctriage(*arguments, home=root / "home")
    assert again.returncode == 0
    assert [row["source"] for row in rows_of(root / "out" / "failures.jsonl")] == ["empty.pdf"]
