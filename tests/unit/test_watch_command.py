"""The watch command: what it asks for, what it refuses, and its exit codes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner, Result

from models.errors import OutputNotWritable, SettingsError
from workers import watch
from workers.cli import app
from workers.watch_events import FileRead
from workers.watch_look import IGNORED

Watched = Callable[..., tuple[Result, watch.Watch | None]]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Watched:
    """Runs the command with a watch that does ``act`` instead of watching."""
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("in", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("a file", encoding="utf-8")
    seen: list[watch.Watch] = []

    def command(
        *options: str, act: Callable[[watch.Watch], None] = lambda _watch: None
    ) -> tuple[Result, watch.Watch | None]:
        def run(self: watch.Watch) -> None:
            seen.append(self)
            act(self)

        monkeypatch.setattr(watch.Watch, "run", run)
        result = CliRunner().invoke(app, ["watch", *options])
        return result, seen[-1] if seen else None

    return command


def test_asks_for_what_the_options_say(watched: Watched, tmp_path: Path) -> None:
    result, made = watched(
        "in", "--out", "out", "--once", "--poll", "0.5", "--settle", "3", "--grace", "9", "--ignore", "*.bak",
        "--ignore", "drafts", "--done", "done", "--failed", "failed",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert made is not None
    assert made.request == watch.WatchRequest(
        folder=tmp_path / "in",
        out_dir=tmp_path / "out",
        home=tmp_path / "home",
        done_dir=tmp_path / "done",
        failed_dir=tmp_path / "failed",
        ignored=("*.bak", "drafts"),
        poll_s=0.5,
        settle_s=3,
        grace_s=9,
        once=True,
    )


def test_the_grace_is_no_shorter_than_the_time_to_settle(watched: Watched) -> None:
    _, made = watched("in", "--out", "out", "--settle", "90")
    assert made is not None
    assert (made.request.settle_s, made.request.grace_s) == (90, 90)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("nowhere", "--out", "out"), "no such folder"),
        (("file", "--out", "out"), "no such folder"),
        (("in", "--out", "out", "--done", "in"), "it is the watched folder"),
        (("in", "--out", "out", "--failed", "file"), "is a file; name a folder"),
        (("in", "--out", "out", "--poll", "0"), "0.1"),
        (("in", "--out", "out", "--format", "odt"), "choose from"),
        (("in",), "--out"),
    ],
)
def test_what_cannot_be_meant_is_refused(watched: Watched, options: tuple[str, ...], words: str) -> None:
    result, made = watched(*options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert made is None


def test_the_state_folder_is_not_watched(watched: Watched) -> None:
    result, made = watched("home", "--out", "out")
    assert isinstance(result.exception, SettingsError)
    assert made is None


def test_a_file_is_no_folder_for_results(watched: Watched) -> None:
    result, made = watched("in", "--out", "file")
    assert isinstance(result.exception, OutputNotWritable)
    assert made is None


def kill(number: int) -> Callable[[watch.Watch], None]:
    return lambda _watch: os.kill(os.getpid(), number)


def fail_one(made: watch.Watch) -> None:
    made.totals.read, made.totals.failed = 2, 1
    made.on_event(FileRead(name="a.pdf", page_count=3, failed_pages=0))


@pytest.mark.parametrize(
    ("act", "exit_code", "words"),
    [
        (lambda _watch: None, 0, "0 files read"),
        (fail_one, 1, "2 files read, 1 failed"),
        (kill(signal.SIGTERM), 0, "stopped; 0 files read"),
        (kill(signal.SIGINT), 130, "stopped; 0 files read"),
    ],
)
def test_the_exit_code_says_how_it_ended(
    watched: Watched, act: Callable[[watch.Watch], None], exit_code: int, words: str
) -> None:
    result, _ = watched("in", "--out", "out", act=act)
    assert result.exit_code == exit_code
    assert words in result.stderr
    assert ("done: a.pdf, 3 pages" in result.stdout) == (exit_code == 1)


def test_the_page_about_it_names_every_option_and_every_name_that_is_passed_over() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "watch.md").read_text(encoding="utf-8")
    command = typer.main.get_command(app).commands["watch"]  # type: ignore[attr-defined]
    options = [name for option in command.params for name in option.opts if name.startswith("--")]
    assert len(options) >= 20
    assert [name for name in options if f"`{name}" not in page] == []
    assert [name for name in IGNORED if f"`{name}`" not in page] == []
