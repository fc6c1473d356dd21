"""``doctriage submissions`` as a user starts it, and what it does in the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from models.errors import SettingsError, SubmissionNotFound, SubmissionNotOpen
from models.pool import SourceState, SubmissionState
from models.tables import PageState
from pipeline.blobs import BlobStore
from pipeline.store import open_store
from tests.acceptance.pool_commands import Commands
from tests.acceptance.test_command_line import run_doctriage
from tests.unit.store.pool_parts import Pool, new_document
from workers.cli import exit_code
from workers.cli import submissions as submissions_command
from workers.cluster.following import Follower
from workers.cluster.sealed_passwords import sealed
from workers.events import DocumentFound, Event, PageFinished


def first_words(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines() if line.split() and line.split()[0].isdigit()]


def test_where_nothing_was_submitted_it_is_said_how_to(tmp_path: Path) -> None:
    answer = run_doctriage("submissions", "list", home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"no submissions in {tmp_path}; ")
    assert "`doctriage ingest PATH… --out DIR --executor celery` submits" in answer.stdout


def test_the_list_has_the_newest_first_and_can_be_narrowed(commands: Commands) -> None:
    first = commands.submitted(1, "a.pdf")
    commands.read_pages(1)
    commands.write_up()
    second = commands.submitted(3, "b.pdf", priority=9)
    commands.read_pages(2)
    numbers = [str(second.submission_id), str(first.submission_id)]
    table = commands.printed("submissions", "list")
    assert first_words(table) == numbers
    assert {"harbour", "ada", "2/3", "1/1", "67", "finished"} <= set(table.split())
    assert first_words(commands.printed("submissions", "list", "--state", "open")) == numbers[:1]
    assert first_words(commands.printed("submissions", "list", "--limit", "1")) == numbers[:1]
    assert commands.printed("submissions", "list", "--state", "cancelled").startswith(
        "no submission is cancelled"
    )


def test_a_submission_is_shown_with_its_states_and_what_failed(commands: Commands) -> None:
    submitted = commands.submitted(4, "minutes/1962.pdf")
    commands.fail_page(submitted, 1)
    commands.read_pages(2)
    commands.pool.claim()
    page = commands.printed("submissions", "show", submitted.submission_id)
    assert "0 of 1 document and 3 of 4 pages settled" in page
    for words in ("done: blank", "being read on a CPU", "failed", "minutes/1962.pdf", "worker_lost"):
        assert words in page
    assert "waiting for a CPU" not in page
    assert f"doctriage submissions fetch {submitted.submission_id} --out DIR" in page


def test_what_was_refused_is_named_with_its_reason(commands: Commands) -> None:
    number = commands.pool.open()
    commands.store.pool.add_refused_source(
        number, name="a.docx", output_stem="a.docx", code="unsupported_media_type", message="no PDF, no image"
    )
    commands.store.pool.seal(number)
    page = commands.printed("submissions", "show", number)
    assert f"Submission {number}: finished" in page
    assert "unsupported_media_type" in page
    assert "cancel" not in page


def test_passwords_are_counted_and_never_shown(commands: Commands) -> None:
    key = Fernet.generate_key().decode()
    text = sealed(("open sesame", "swordfish"), SecretStr(key))
    number = commands.pool.open(sealed_passwords=text)
    page = commands.run("submissions", "show", number, DOCTRIAGE_POOL__SECRET_KEY=key).stdout
    assert "2 passwords sealed" in page
    without_key = commands.printed("submissions", "show", number)
    assert "passwords sealed" in without_key
    assert text is not None
    assert not {"sesame", "swordfish", text} & set((page + without_key).split())


def test_following_one_that_is_over_ends_at_once(commands: Commands) -> None:
    submitted = commands.submitted(1, "a.pdf")
    commands.read_pages(1)
    commands.write_up()
    page = commands.printed("submissions", "show", submitted.submission_id, "--follow")
    assert f"Submission {submitted.submission_id}: finished" in page


def test_cancelling_leaves_what_is_under_way_and_gives_nothing_more_out(commands: Commands) -> None:
    submitted = commands.submitted(3, "a.pdf")
    work = commands.pool.claim()
    assert work is not None
    printed = commands.printed("submissions", "cancel", submitted.submission_id)
    assert "is cancelled; 0 of 3 pages were settled" in printed
    assert "under way, to be finished and booked: 1 page on a CPU" in printed
    progress = commands.store.pool.progress(submitted.submission_id)
    assert (progress.state, progress.sources) == (SubmissionState.CANCELLED, {SourceState.SETTLED: 1})
    assert commands.pool.claim() is None
    commands.pool.finish(work)
    assert commands.page_states(submitted) == [PageState.DONE, PageState.PENDING, PageState.PENDING]
    again = commands.printed("submissions", "cancel", submitted.submission_id)
    assert again == f"submission {submitted.submission_id} was cancelled before\n"
    assert "cancelled" in commands.printed("submissions", "show", submitted.submission_id)


def test_of_several_none_is_cancelled_where_one_number_is_wrong(commands: Commands) -> None:
    submitted = commands.submitted(1, "a.pdf")
    result = commands.run("submissions", "cancel", submitted.submission_id, 4711)
    assert isinstance(result.exception, SubmissionNotFound)
    assert commands.store.pool.progress(submitted.submission_id).state is SubmissionState.OPEN
    other = commands.pool.open()
    numbers = (submitted.submission_id, other)
    commands.printed("submissions", "cancel", *numbers)
    assert {commands.store.pool.progress(one).state for one in numbers} == {SubmissionState.CANCELLED}


def test_a_finished_one_is_neither_cancelled_nor_prioritised(commands: Commands) -> None:
    submitted = commands.submitted(1, "a.pdf")
    commands.read_pages(1)
    commands.write_up()
    for arguments in (("cancel", submitted.submission_id), ("prioritise", submitted.submission_id, 9)):
        error = commands.run("submissions", *arguments).exception
        assert isinstance(error, SubmissionNotOpen)
        assert "is finished already" in str(error)
        assert exit_code(error) == 1


@pytest.mark.parametrize(("answer", "is_cancelled"), [("n\n", False), ("y\n", True)])
def test_on_a_terminal_it_asks_first(
    commands: Commands, answer: str, is_cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions_command, "can_be_asked", lambda: True)
    submitted = commands.submitted(3, "a.pdf")
    result = commands.run("submissions", "cancel", submitted.submission_id, answer=answer)
    assert "3 of 3 known pages are not settled" in result.stdout
    state = commands.store.pool.progress(submitted.submission_id).state
    assert (state is SubmissionState.CANCELLED) == is_cancelled
    assert (result.exit_code == 0) == is_cancelled


def test_yes_asks_nothing(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions_command, "can_be_asked", lambda: True)
    submitted = commands.submitted(3, "a.pdf")
    assert "known pages" not in commands.printed("submissions", "cancel", submitted.submission_id, "--yes")


def test_the_one_with_the_higher_priority_is_read_first(commands: Commands) -> None:
    commands.submitted(2, "a.pdf")
    urgent = commands.submitted(2, "b.pdf")
    printed = commands.printed("submissions", "prioritise", urgent.submission_id, 9)
    assert printed == f"submission {urgent.submission_id} has priority 9 now; before it had 5\n"
    work = commands.pool.claim()
    assert work is not None
    assert work.reading_id == urgent.reading_id


def test_results_are_fetched_as_an_ingest_writes_them(commands: Commands, tmp_path: Path) -> None:
    submitted = commands.submitted(2, "minutes.pdf", wishes={"formats": ["markdown"]})
    commands.read_pages(2)
    BlobStore(commands.home).write_result(submitted.source_id, ".md", b"Minutes, 1962\n")
    commands.write_up()
    out = tmp_path / "out"
    printed = commands.printed("submissions", "fetch", submitted.submission_id, "--out", out)
    assert (out / "minutes.pdf.md").read_text(encoding="utf-8") == "Minutes, 1962\n"
    assert {path.name for path in out.iterdir()} == {"minutes.pdf.md", "pages.jsonl", "failures.jsonl"}
    rows = [json.loads(line) for line in (out / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["source"], row["page_number"], row["route"]) for row in rows] == [
        ("minutes.pdf", 1, "blank"),
        ("minutes.pdf", 2, "blank"),
    ]
    assert "2 pages read" in printed
    assert f"written to {out}" in printed


def test_a_fetch_prints_its_report_alone_and_how_long_the_pool_read(tmp_path: Path) -> None:
    commands = Commands(tmp_path, Pool(open_store(tmp_path)))
    submitted = commands.submitted(2, "minutes.pdf", wishes={"formats": ["markdown"]})
    commands.read_pages(2)
    BlobStore(commands.home).write_result(submitted.source_id, ".md", b"Minutes, 1962\n")
    commands.write_up()
    commands.store.close()
    with closing(sqlite3.connect(tmp_path / "doctriage.sqlite3", isolation_level=None)) as database:
        database.execute("UPDATE submissions SET created_at_s = finished_at_s - 60")

    number = str(submitted.submission_id)
    answer = run_doctriage("submissions", "fetch", number, "--out", str(tmp_path / "out"), home=tmp_path)

    assert answer.stdout.lstrip().startswith("Documents")
    assert "2 pages read in 60.0 s (2.0 pages/min)" in answer.stdout


def test_results_are_not_looked_for_where_their_folder_is_missing(tmp_path: Path) -> None:
    commands = Commands(tmp_path, Pool(open_store(tmp_path)))
    submitted = commands.submitted(1, "minutes.pdf", wishes={"formats": ["markdown"]})
    commands.read_pages(1)
    commands.write_up()
    away = (tmp_path / "away").as_uri()

    result = commands.run(
        "submissions", "fetch", submitted.submission_id, "--out", tmp_path / "out", DOCTRIAGE_BLOBS__URL=away
    )
    commands.store.close()
    assert "mount or make the folder that DOCTRIAGE_BLOBS__URL names" in str(result.exception)


def test_a_page_that_failed_is_in_the_exit_code_of_a_fetch(commands: Commands, tmp_path: Path) -> None:
    submitted = commands.submitted(2, "minutes.pdf", wishes={"formats": ["markdown"]})
    commands.fail_page(submitted, 1)
    commands.read_pages(1)
    BlobStore(commands.home).write_result(submitted.source_id, ".md", b"half\n")
    commands.write_up(failed_pages=1)
    result = commands.run("submissions", "fetch", submitted.submission_id, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "1 failed" in result.stdout


def test_of_a_cancelled_submission_what_was_done_is_fetched(commands: Commands, tmp_path: Path) -> None:
    number = commands.pool.open(wishes={"formats": ["markdown"]})
    for name in ("a.pdf", "b.pdf"):
        commands.pool.add(number, name, output_stem=name)
    commands.store.pool.seal(number)
    first = commands.pool.take_in(new_document(1))
    commands.read_pages(1)
    BlobStore(commands.home).write_result(first.source_id, ".md", b"done\n")
    commands.write_up()
    commands.printed("submissions", "cancel", number)
    out = tmp_path / "out"
    result = commands.run("submissions", "fetch", number, "--out", out)
    assert result.exit_code == 1
    assert (out / "a.pdf.md").read_bytes() == b"done\n"
    [failure] = (out / "failures.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(failure)["source"], json.loads(failure)["code"]) == ("b.pdf", "cancelled")


def test_a_document_whose_results_are_gone_does_not_keep_the_others_from_being_fetched(
    commands: Commands, tmp_path: Path
) -> None:
    number = commands.pool.open(wishes={"formats": ["markdown"]})
    for name in ("a.pdf", "b.pdf"):
        commands.pool.add(number, name, output_stem=name)
    commands.store.pool.seal(number)
    taken = [commands.pool.take_in(new_document(1)) for _ in range(2)]
    for _ in taken:
        commands.read_pages(1)
    BlobStore(commands.home).write_result(taken[1].source_id, ".md", b"kept\n")
    for _ in taken:
        commands.write_up()
    out = tmp_path / "out"
    result = commands.run("submissions", "fetch", number, "--out", out)
    assert result.exit_code == 1
    assert (out / "b.pdf.md").read_bytes() == b"kept\n"
    [failure] = (out / "failures.jsonl").read_text(encoding="utf-8").splitlines()
    assert (json.loads(failure)["source"], json.loads(failure)["code"]) == ("a.pdf", "result_missing")
    assert "there is no .md output" in result.stdout
    assert "1 document " in result.stdout


def test_pages_are_counted_where_a_reading_was_moved_to(commands: Commands, tmp_path: Path) -> None:
    """As while the pool is upgraded."""
    submitted = commands.submitted(2, "minutes.pdf", wishes={"formats": ["markdown"]})
    moved = commands.store.pages.open_reading(
        submitted.document, "0" * 64, force=False, submission_id=submitted.submission_id
    )
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, DocumentFound):
            commands.store.pool.move_sources(submitted.reading_id, moved.reading_id)
            commands.read_pages(2)
            commands.write_up()

    Follower(
        store=commands.store,
        blobs=BlobStore(commands.home),
        submission_id=submitted.submission_id,
        out_dir=tmp_path / "out",
        formats=(),
        on_event=on_event,
    ).follow()
    assert [event.page_number for event in events if isinstance(event, PageFinished)] == [1, 2]


def test_a_format_that_was_not_asked_for_is_not_to_be_had(commands: Commands, tmp_path: Path) -> None:
    number = commands.pool.open(wishes={"formats": ["markdown"]})
    out = tmp_path / "out"
    result = commands.run("submissions", "fetch", number, "--out", out, "--format", "json")
    assert isinstance(result.exception, SettingsError)
    assert "was asked for markdown, not for json" in str(result.exception)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "x"), "'x' is no whole number from 1 to"),
        (("show", "0"), "'0' is no whole number from 1 to"),
        (("cancel", "99999999999"), "'99999999999' is no whole number from 1 to"),
        (("prioritise", "1", "10"), "'10' is no whole number from 0 to 9"),
        (("list", "--state", "gone"), "'gone' is none of open, finished, cancelled"),
        (("list", "--limit", "0"), "'0' is no whole number from 1 to"),
        (("fetch", "1", "--out", "o", "--format", "docx"), "choose from markdown, json"),
    ],
)
def test_what_is_no_submission_is_refused_with_words(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    commands = Commands(tmp_path, Pool(open_store(tmp_path)))
    result = commands.run("submissions", *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())
    commands.store.close()


@pytest.mark.parametrize("command", [("show",), ("cancel",), ("fetch", "--out", "o"), ("prioritise", "9")])
def test_a_number_that_is_not_there_takes_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    answer = run_doctriage("submissions", name, "7", *options, home=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr == (
        "doctriage: submission 7: the pool has none of that number; `doctriage submissions list` shows those it has\n"
    )
