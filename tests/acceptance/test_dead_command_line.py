"""``doctriage dead`` as a user starts it, and what it does in the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from models.errors import PageNotFound
from models.pool import Queue, SubmissionState
from models.tables import PageState
from pipeline.settings import PoolSettings, Settings
from pipeline.store import open_store
from tests.acceptance.pool_commands import Commands
from tests.acceptance.test_command_line import run_doctriage
from tests.server_parts import Broker
from tests.unit.store.pool_parts import Pool, Submitted
from workers.celery_app import celery_app
from workers.celery_tickets import CeleryTickets
from workers.cli import dead as dead_command


@pytest.fixture
def failed(commands: Commands) -> Submitted:
    """The first of two pages failed, the second is blank, and the submission is finished."""
    submitted = commands.submitted(2, "minutes/1962.pdf")
    commands.fail_page(submitted, 1)
    commands.read_pages(1)
    commands.write_up(failed_pages=1)
    return submitted


def test_where_nothing_failed_that_is_said(tmp_path: Path) -> None:
    for arguments in (("list",), ("retry", "--all")):
        answer = run_doctriage("dead", *arguments, home=tmp_path)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert answer.stdout == "no page has failed in the pool\n"


def test_pages_that_failed_are_listed(commands: Commands, failed: Submitted) -> None:
    other = commands.submitted(1, "b.pdf")
    commands.fail_page(other, 1)
    table = commands.printed("dead", "list")
    assert "2 pages failed" in table
    assert {"minutes/1962.pdf", "b.pdf", "worker_lost"} <= set(table.split())
    of_one = commands.printed("dead", "list", "--submission", failed.submission_id)
    assert "minutes/1962.pdf" in of_one
    assert "b.pdf" not in of_one


def test_a_page_is_shown_with_all_that_is_on_record(commands: Commands, failed: Submitted) -> None:
    for reference in ("minutes/1962.pdf", failed.document.document_id[:12]):
        page = commands.printed("dead", "show", reference, 1)
        assert f"minutes/1962.pdf, page 1, submission {failed.submission_id}" in page
        assert "failed: worker_lost: five workers were lost over it" in page
        assert "2026-11-30 12:00:00" in page  # when the attempt was booked
        place = f"{commands.home}/blobs/{failed.document.document_id[:2]}/{failed.document.document_id}"
        assert f"its bytes: {place}" in page


def test_a_page_that_is_well_is_not_shown_as_dead(commands: Commands, failed: Submitted) -> None:
    error = commands.run("dead", "show", "minutes/1962.pdf", 2).exception
    assert isinstance(error, PageNotFound)
    assert "page 2 has not failed" in str(error)


def test_without_a_broker_a_page_is_put_back_and_who_tells_the_workers_is_said(
    commands: Commands, failed: Submitted
) -> None:
    printed = commands.printed("dead", "retry", "minutes/1962.pdf", 1)
    assert f"1 page will be read again for submission {failed.submission_id}" in printed
    assert "no ticket was sent" in printed
    assert "`doctriage beat` sends it" in printed
    assert commands.page_states(failed) == [PageState.PENDING, PageState.DONE]
    assert commands.store.pool.progress(failed.submission_id).state is SubmissionState.OPEN
    work = commands.read_pages(1)
    assert work.page_numbers == (1,)
    commands.write_up()
    assert commands.store.pool.progress(failed.submission_id).state is SubmissionState.FINISHED
    assert commands.printed("dead", "list") == "no page has failed in the pool\n"


def test_all_pages_of_a_submission_are_tried_again(commands: Commands, failed: Submitted) -> None:
    other = commands.submitted(3, "b.pdf")
    for number in (1, 2, 3):
        commands.fail_page(other, number)
    assert "3 pages will be read" in commands.printed("dead", "retry", "--submission", other.submission_id)
    assert commands.page_states(failed)[0] is PageState.FAILED
    assert "1 page will be read" in commands.printed("dead", "retry", "--all")
    assert commands.page_states(failed)[0] is PageState.PENDING


@pytest.mark.parametrize(
    ("answer", "options", "is_retried"),
    [("n\n", (), False), ("y\n", (), True), ("", ("--yes",), True)],
)
def test_on_a_terminal_it_is_asked_before_all_are_tried_again(
    commands: Commands,
    failed: Submitted,
    answer: str,
    options: tuple[str, ...],
    is_retried: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dead_command, "can_be_asked", lambda: True)
    result = commands.run("dead", "retry", "--all", *options, answer=answer)
    assert ("read 1 page of 1 submission again?" in result.stdout) == (not options)
    assert (result.exit_code == 0) == is_retried
    assert (commands.page_states(failed)[0] is PageState.PENDING) == is_retried


def test_nobody_is_asked_before_a_page_that_is_named_is_tried_again(
    commands: Commands, failed: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_command, "can_be_asked", lambda: True)
    commands.printed("dead", "retry", "minutes/1962.pdf", 1)
    assert commands.page_states(failed)[0] is PageState.PENDING


def test_a_page_of_a_cancelled_submission_stays_as_it_is(commands: Commands) -> None:
    submitted = commands.submitted(2, "a.pdf")
    commands.fail_page(submitted, 1)
    commands.printed("submissions", "cancel", submitted.submission_id)
    result = commands.run("dead", "retry", "a.pdf", 1)
    assert result.exit_code == 1
    assert "1 page left as it is" in result.stdout
    assert commands.page_states(submitted) == [PageState.FAILED, PageState.PENDING]


def test_the_workers_are_told_where_the_broker_answers(
    postgres_url: SecretStr, redis_broker: Broker, tmp_path: Path
) -> None:
    store = open_store(tmp_path, postgres_url)
    commands = Commands(tmp_path, Pool(store), postgres_url)
    submitted = commands.submitted(3, "a.pdf")
    for number in (1, 2, 3):
        commands.fail_page(submitted, number)
    url = redis_broker.url.get_secret_value()
    result = commands.run("dead", "retry", "--all", DOCTRIAGE_POOL__BROKER_URL=url)
    assert result.exit_code == 0
    assert "no ticket" not in result.stdout
    settings = Settings(
        home=tmp_path, database_url=postgres_url, pool=PoolSettings(broker_url=redis_broker.url)
    )
    assert CeleryTickets(celery_app(settings)).depth(Queue.OCR) == 3
    store.close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "a.pdf", "none"), "'none' is no whole number from 1 to"),
        (("retry",), "name DOCUMENT and PAGE, or --submission N, or --all"),
        (("retry", "a.pdf"), "which page of it?"),
        (("retry", "a.pdf", "1", "--all"), "it says too much"),
        (("retry", "--all", "--submission", "1"), "it says too much"),
        (("list", "--submission", "x"), "'x' is no whole number"),
    ],
)
def test_what_names_no_page_is_refused_with_words(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    commands = Commands(tmp_path, Pool(open_store(tmp_path)))
    result = commands.run("dead", *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())
    commands.store.close()


@pytest.mark.parametrize("name", ["list", "retry"])
def test_a_submission_that_is_not_there_takes_one_line(tmp_path: Path, name: str) -> None:
    answer = run_doctriage("dead", name, "--submission", "7", home=tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith("doctriage: submission 7: the pool has none of that number")
