"""The ingest command against an executor that only answers: what it is asked, and the exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.choices import RoutePolicy
from models.errors import (
    DoctriageError,
    EngineUnavailable,
    OutputNotWritable,
    PriceBookInvalid,
    SettingsError,
    StoreUnavailable,
)
from models.page import Route
from pipeline.settings import Settings
from tests.fakes.reports import document_report, ingest_report
from workers import local
from workers.cli import app, exit_code
from workers.events import DocumentFound, Event, FailureReport, IngestReport, IngestRequest, PageFinished


class AnsweringExecutor:
    """Records what it is asked and answers with ``report``."""

    def __init__(self, report: IngestReport, *events: Event) -> None:
        self.report = report
        self.events = events
        self.request: IngestRequest | None = None
        self.settings: Settings | None = None

    def __call__(
        self, request: IngestRequest, *, settings: Settings, on_event: Callable[[Event], None]
    ) -> IngestReport:
        self.request, self.settings = request, settings
        for event in self.events:
            on_event(event)
        return self.report


@pytest.fixture
def ingest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[Result, AnsweringExecutor]]:
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "state"))
    source = tmp_path / "a.pdf"
    source.write_bytes(b"%PDF-")

    def run(
        *options: str,
        report: IngestReport | None = None,
        events: tuple[Event, ...] = (),
        stdin: str | None = None,
    ) -> tuple[Result, AnsweringExecutor]:
        executor = AnsweringExecutor(report or ingest_report(document_report()), *events)
        monkeypatch.setattr(local, "ingest", executor)
        result = CliRunner().invoke(
            app, ["ingest", str(source), "--out", str(tmp_path / "out"), *options], input=stdin
        )
        return result, executor

    return run


def test_asks_for_what_the_options_say(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]], tmp_path: Path
) -> None:
    (tmp_path / "passwords").write_text("\ufeffone\n two \n\nthree", encoding="utf-8")
    result, executor = ingest(
        "--jobs", "3",
        "--engine", "paddleocr",
        "--lang", "eng+deu",
        "--route", "ocr",
        "--cost-centre", "Claims & Co",
        "--format", "json",
        "--password", "p1",
        "--password", "p2",
        "--password-file", str(tmp_path / "passwords"),
        "--force",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert executor.request == IngestRequest(
        paths=(tmp_path / "a.pdf",),
        out_dir=tmp_path / "out",
        cost_centre="Claims & Co",
        formats=("json",),
        passwords=("p1", "p2", "one", " two ", "three"),
        force=True,
    )
    assert executor.settings is not None
    assert executor.settings.executor.jobs == 3
    assert executor.settings.read.engine == "paddleocr"
    assert executor.settings.read.languages == ("eng", "deu")
    assert executor.settings.route is RoutePolicy.OCR


def test_without_options_the_environment_and_the_defaults_decide(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTRIAGE_READ__LANGUAGES", "fra")
    monkeypatch.setenv("DOCTRIAGE_EXECUTOR__JOBS", "7")
    _, executor = ingest()
    assert executor.request is not None
    assert executor.settings is not None
    assert executor.request.formats == ("markdown", "json")
    assert (executor.request.cost_centre, executor.request.passwords, executor.request.force) == (
        None,
        (),
        False,
    )
    assert executor.settings.read.languages == ("fra",)
    assert executor.settings.executor.jobs == 7
    assert executor.settings.route is RoutePolicy.AUTO


def test_passwords_can_come_from_standard_input_and_are_never_shown(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]],
) -> None:
    result, executor = ingest("--password-file", "-", stdin="hush\n")
    assert executor.request is not None
    assert executor.request.passwords == ("hush",)
    assert "hush" not in result.output


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00"])
def test_a_password_file_without_a_password_is_refused(
    content: bytes, ingest: Callable[..., tuple[Result, AnsweringExecutor]], tmp_path: Path
) -> None:
    (tmp_path / "passwords").write_bytes(content)
    result, executor = ingest("--password-file", str(tmp_path / "passwords"))
    assert isinstance(result.exception, SettingsError)
    assert "a password a line" in str(result.exception) or "write one a line" in str(result.exception)
    assert executor.request is None


def test_a_password_file_that_is_not_there_is_refused(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]], tmp_path: Path
) -> None:
    result, executor = ingest("--password-file", str(tmp_path / "gone"))
    assert isinstance(result.exception, SettingsError)
    assert "gone" in str(result.exception)
    assert executor.request is None


REJECTED = FailureReport(source="b.pdf", code="empty_file", message="b.pdf: empty")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (ingest_report(document_report()), 0),
        (ingest_report(document_report(routes={Route.OCR_DEGRADED: 1})), 0),
        (ingest_report(document_report(), failures=(REJECTED,)), 1),
        (ingest_report(failures=(REJECTED,)), 1),
        (ingest_report(document_report(failed_pages=1)), 1),
        (ingest_report(document_report(is_written=False), is_interrupted=True), 130),
        (ingest_report(is_interrupted=True), 130),
        (ingest_report(), 0),
    ],
)
def test_exit_codes(
    report: IngestReport, code: int, ingest: Callable[..., tuple[Result, AnsweringExecutor]]
) -> None:
    result, _ = ingest(report=report)
    assert result.exit_code == code, result.output


def test_an_empty_folder_says_so(ingest: Callable[..., tuple[Result, AnsweringExecutor]]) -> None:
    result, _ = ingest(report=ingest_report())
    assert "nothing to read" in result.stderr
    assert result.stdout == ""


def test_tables_that_go_to_no_terminal_fit_a_narrow_reader(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]],
) -> None:
    long = FailureReport(source="folder/" * 20 + "b.pdf", code="empty_file", message="empty; " * 60)
    result, _ = ingest(report=ingest_report(document_report("name " * 50), failures=(long,)))
    tables, _, _ = result.stdout.partition("read in")
    assert max(len(line) for line in tables.splitlines()) <= 120


def test_a_stopped_run_says_how_to_go_on(ingest: Callable[..., tuple[Result, AnsweringExecutor]]) -> None:
    result, _ = ingest(report=ingest_report(document_report(is_written=False), is_interrupted=True))
    assert "the same command goes on" in result.stderr


def test_progress_is_on_the_error_stream_and_tables_on_the_other(
    ingest: Callable[..., tuple[Result, AnsweringExecutor]],
) -> None:
    events = (
        DocumentFound(source="a.pdf", document_id="ab" * 32, page_count=1),
        PageFinished(source="a.pdf", page_number=1, route=Route.OCR, elapsed_s=1.0, from_earlier_run=False),
    )
    result, _ = ingest(events=events)
    assert "1/1 pages" in result.stderr
    assert "1/1 pages" not in result.stdout
    assert "Documents" in result.stdout
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 2),
        (PriceBookInvalid("x"), 2),
        (OutputNotWritable("x"), 2),
        (EngineUnavailable("x"), 2),
        (StoreUnavailable("x"), 1),
        (DoctriageError("x"), 1),
    ],
)
def test_errors_have_exit_codes(error: DoctriageError, code: int) -> None:
    assert exit_code(error) == code


STUBBORN = """
import os, signal, time
from workers.cli.interrupts import second_interrupt_ends_at_once
with second_interrupt_ends_at_once():
    told = "ready"
    while True:
        try:
            print(told, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            told = "stopping"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_interrupt_ends_a_run_that_does_not_stop(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(number)
        assert run.stdout.readline() == "stopping\n"
        run.send_signal(number)
        _, told = run.communicate(timeout=20)
    assert run.returncode == 130
    assert "press Ctrl-C again" in told
