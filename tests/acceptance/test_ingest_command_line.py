"""From a folder of documents to files and tables, with the real engines, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pikepdf
import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas

from tests.acceptance.test_command_line import DOCTRIAGE, run_doctriage
from workers.sources import find_sources

SENTENCE = "The ferry leaves the harbour at nine and returns before dark."


def write_pdf(path: Path, page_count: int = 1, text: str = SENTENCE) -> Path:
    """A born-digital PDF: a sentence, ten times a page, with its page number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(str(path), pagesize=(595, 842))
    for page_number in range(1, page_count + 1):
        for row in range(10):
            canvas.drawString(72, 760 - 24 * row, f"{text} Sheet {page_number}.")
        canvas.showPage()
    canvas.save()
    return path


def scan(text: str = SENTENCE, size_px: tuple[int, int] = (1240, 900)) -> Image.Image:
    page = Image.new("L", size_px, 255)
    font = ImageFont.load_default(size=32)
    for row in range(6):
        ImageDraw.Draw(page).text((100, 100 + 90 * row), text, fill=0, font=font)
    return page


def write_scan(path: Path, text: str = SENTENCE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    scan(text).save(path, dpi=(150, 150))
    return path


def write_long_scan(path: Path, page_count: int) -> Path:
    first, *others = (scan(f"{SENTENCE} Sheet {number}.") for number in range(1, page_count + 1))
    first.save(path, save_all=True, append_images=others, dpi=(150, 150))
    return path


def rows_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder of three documents and a broken one, ingested."""
    root = tmp_path_factory.mktemp("run")
    write_pdf(root / "in" / "letters" / "ferry.pdf", 2)
    write_scan(root / "in" / "scan [red]1[bold].png")
    write_scan(root / "in" / "copy.png")
    (root / "in" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing else")
    run = run_doctriage(
        "ingest",
        root / "in",
        "--out",
        root / "out",
        "--cost-centre",
        "Harbour",
        "--jobs",
        "1",
        home=root / "home",
    )
    return root, run


def test_one_broken_file_costs_its_own_row_and_exit_1(
    done: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    root, run = done
    assert run.returncode == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert [row["source"] for row in rows_of(root / "out" / "failures.jsonl")] == ["broken.pdf"]
    assert "broken.pdf" in run.stdout
    for name in ("letters/ferry.pdf", "scan [red]1[bold].png", "copy.png"):
        assert SENTENCE[:20] in (root / "out" / f"{name}.md").read_text(encoding="utf-8")
        assert json.loads((root / "out" / f"{name}.json").read_text(encoding="utf-8"))["source"] == name


def test_the_tables_agree_with_the_rows(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    root, run = done
    lines = [line.split() for line in run.stdout.splitlines()]
    ferry = next(line for line in lines if line and line[0] == "letters/ferry.pdf")
    assert ferry[1:3] == ["2", "2"]
    pages = {(row["document_id"], row["page_number"]): row for row in rows_of(root / "out" / "pages.jsonl")}
    tokens = sum(int(str(row["visual_tokens_if_vlm"])) for row in pages.values() if row["route"] != "blank")
    assert f"{tokens:,}" in run.stdout
    assert "3/3 pages" in run.stderr


def test_names_with_markup_are_printed_as_they_are(
    done: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, run = done
    assert "scan [red]1[bold].png" in run.stdout


def test_a_second_run_reads_nothing_again_and_force_does(
    done: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    root, _ = done
    arguments = ("ingest", root / "in", "--out", root / "out2", "--jobs", "1", "--cost-centre", "Harbour")
    again = run_doctriage(*arguments, home=root / "home")
    assert "0 pages read" in again.stdout
    assert "3 kept from an earlier run" in again.stdout
    forced = run_doctriage(*arguments, "--force", home=root / "home")
    assert "3 pages read" in forced.stdout


def explained_by(root: Path, document: str | Path, page: str = "1", *options: str | Path) -> str:
    answer = run_doctriage("explain", document, page, *options, home=root / "home")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_explain_takes_a_name_an_output_the_file_or_the_id(
    done: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    root, _ = done
    output = root / "out" / "letters" / "ferry.pdf.json"
    document_id = json.loads(output.read_text(encoding="utf-8"))["document_id"]
    references = [
        "letters/ferry.pdf",
        output,
        root / "in" / "letters" / "ferry.pdf",
        document_id,
        document_id[:12],
    ]
    for reference in references:
        said = explained_by(root, reference, "2", "--no-overlay")
        assert "letters/ferry.pdf, page 2" in said
        assert "route: text_layer" in said
        assert "visual tokens if sent to the model" in said


def test_explain_draws_the_boxes(
    done: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = done
    monkeypatch.chdir(tmp_path)
    explained_by(root, "copy.png", "1", "--overlay", tmp_path / "boxes.png")
    explained_by(root, "letters/ferry.pdf", "2")
    with Image.open(tmp_path / "boxes.png") as picture:
        assert picture.width >= 1240
        assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > len(scan().getcolors() or ())
    assert (tmp_path / "ferry.pdf.page-2.png").is_file()
    assert list(find_sources([tmp_path], left_out=())) == []


@pytest.mark.parametrize(
    "arguments", [("nobody.pdf", "1"), ("letters/ferry.pdf", "3"), ("ffffffffffff", "1")]
)
def test_explain_says_what_to_do_about_a_page_it_does_not_know(
    arguments: tuple[str, str], done: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    root, _ = done
    answer = run_doctriage("explain", *arguments, home=root / "home")
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stderr.startswith("doctriage: ")


def test_names_that_are_not_utf_8_or_hold_control_characters_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    plain = write_scan(tmp_path / "plain.png").read_bytes()
    for number, name in enumerate((b"na\xefve.png", b"bell\x07\x1b[31m.png", b"two\nlines.png")):
        with Image.open(tmp_path / "plain.png") as picture:
            picture.putpixel((number, 0), 0)
            picture.save(os.fsencode(tmp_path / "in") + b"/" + name, format="PNG", dpi=(150, 150))
    assert plain
    run = run_doctriage("ingest", tmp_path / "in", "--out", tmp_path / "out", home=tmp_path / "home")
    assert run.returncode == 0, run.stderr
    assert len(rows_of(tmp_path / "out" / "pages.jsonl")) == 3
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", run.stdout + run.stderr)
    for name in (b"na\xefve.png", b"two\nlines.png"):
        answer = run_doctriage(
            "explain", os.fsencode(tmp_path / "in") + b"/" + name, "1", "--no-overlay", home=tmp_path / "home"
        )
        assert answer.returncode == 0, answer.stderr


def test_an_empty_folder_is_no_error_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    run = run_doctriage("ingest", tmp_path / "in", "--out", tmp_path / "out", home=tmp_path / "home")
    assert run.returncode == 0
    assert "nothing to read" in run.stderr
    assert run.stdout == ""


def test_an_output_that_is_a_file_stops_before_anything_is_read(tmp_path: Path) -> None:
    write_scan(tmp_path / "a.png")
    (tmp_path / "out").write_text("mine")
    run = run_doctriage("ingest", tmp_path / "a.png", "--out", tmp_path / "out", home=tmp_path / "home")
    assert run.returncode == 2
    assert run.stderr.startswith("doctriage: ")
    assert str(tmp_path / "out") in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert (tmp_path / "out").read_text() == "mine"


def test_a_language_that_is_not_installed_stops_before_anything_is_read(tmp_path: Path) -> None:
    write_scan(tmp_path / "a.png")
    run = run_doctriage(
        "ingest", tmp_path / "a.png", "--out", tmp_path / "out", "--lang", "xyz", home=tmp_path / "home"
    )
    assert run.returncode == 2
    assert "xyz" in run.stderr
    assert "Traceback" not in run.stderr


def test_an_encrypted_pdf_opens_with_its_password(tmp_path: Path) -> None:
    write_pdf(tmp_path / "plain.pdf")
    with pikepdf.open(tmp_path / "plain.pdf") as pdf:
        pdf.save(tmp_path / "locked.pdf", encryption=pikepdf.Encryption(user="open sesame", owner="other"))
    arguments = ("ingest", tmp_path / "locked.pdf", "--out", tmp_path / "out")
    refused = run_doctriage(*arguments, home=tmp_path / "home")
    assert refused.returncode == 1
    assert "--password" in refused.stdout
    (tmp_path / "passwords").write_text("wrong\nopen sesame\n")
    opened = run_doctriage(*arguments, "--password-file", tmp_path / "passwords", home=tmp_path / "home")
    assert opened.returncode == 0, opened.stderr
    assert "open sesame" not in opened.stdout + opened.stderr
    explain = ("explain", "locked.pdf", "1", "--overlay", tmp_path / "x.png")
    assert run_doctriage(*explain, home=tmp_path / "home").returncode == 1
    assert run_doctriage(*explain, "--password", "open sesame", home=tmp_path / "home").returncode == 0


def test_a_reader_that_leaves_does_not_stop_the_work(tmp_path: Path) -> None:
    write_scan(tmp_path / "a.png")
    shell = '"$0" ingest a.png --out out | true; exit ${PIPESTATUS[0]}'
    run = subprocess.run(
        ["bash", "-c", shell, DOCTRIAGE],
        cwd=tmp_path,
        env=os.environ | {"DOCTRIAGE_HOME": "home"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert (tmp_path / "out" / "a.png.json").is_file()


class RunningIngest:
    """An ingest of a long scan, started like a shell starts it: in a process group of its own."""

    def __init__(self, arguments: Sequence[str | Path], home: Path) -> None:
        self._process = subprocess.Popen(
            [DOCTRIAGE, *arguments],
            env=os.environ | {"DOCTRIAGE_HOME": str(home), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._home = home

    def interrupt(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self) -> subprocess.CompletedProcess[str]:
        out, err = self._process.communicate(timeout=120)
        return subprocess.CompletedProcess([], self._process.returncode, out, err)

    def processes_left(self) -> list[psutil.Process]:
        """Those of its session, half a second later: a killed process needs a moment to go."""
        time.sleep(0.5)
        return [
            process
            for process in psutil.process_iter(["status"])
            if session_of(process.pid) == self._process.pid and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    def wait_for_pages(self, pages: int) -> None:
        """Until the database holds that many finished pages."""
        database = self._home / "doctriage.sqlite3"
        for _ in range(1_200):
            if database.is_file() and finished_pages(database) >= pages:
                return
            assert self._process.poll() is None, "the run ended before it was interrupted"
            time.sleep(0.1)
        raise AssertionError("no page was finished in two minutes")


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def finished_pages(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM pages WHERE state = 'done'").fetchone()[0])
        except sqlite3.OperationalError:  # the tables are still being made
            return 0


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    write_long_scan(tmp_path / "long.tif", 12)
    arguments = ("ingest", tmp_path / "long.tif", "--out", tmp_path / "out", "--jobs", "1")
    running = RunningIngest(arguments, tmp_path / "home")
    running.wait_for_pages(2)
    running.interrupt()
    stopped = running.end()
    assert stopped.returncode == 130, stopped.stderr
    assert "the same command goes on" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not running.processes_left()
    resumed = run_doctriage(*arguments, home=tmp_path / "home")
    assert resumed.returncode == 0, resumed.stderr
    kept = re.search(r"(\d+) pages? read .* (\d+) kept from an earlier run", resumed.stdout)
    assert kept is not None, resumed.stdout
    assert int(kept[1]) + int(kept[2]) == 12
    assert 2 <= int(kept[2]) < 12
    pages = json.loads((tmp_path / "out" / "long.tif.json").read_text(encoding="utf-8"))["pages"]
    assert [page["page_number"] for page in pages] == list(range(1, 13))


def test_a_second_ctrl_c_ends_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    write_long_scan(tmp_path / "long.tif", 12)
    arguments = ("ingest", tmp_path / "long.tif", "--out", tmp_path / "out", "--jobs", "2")
    running = RunningIngest(arguments, tmp_path / "home")
    running.wait_for_pages(1)
    running.interrupt()
    time.sleep(0.2)
    running.interrupt()
    ended = running.end()
    assert ended.returncode in {
        130,
        -signal.SIGINT,
    }  # the second may come when the first has all but ended it
    assert "Traceback" not in ended.stderr
    assert not running.processes_left()
