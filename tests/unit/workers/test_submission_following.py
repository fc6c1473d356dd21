"""Following a submission: what is shown until it is over, and how often it is looked at."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from models.pool import SubmissionState
from pipeline.store import Store, open_store
from tests.acceptance.pool_commands import Commands
from tests.unit.store.pool_parts import Pool
from tests.unit.workers.test_submission_tables import NOW_S, PROGRESS, VIEW
from workers.cli.submission_following import LOOK_EVERY_S, follow_submission
from workers.submissions import PACE_KEPT_S, RECENT_S, Pace, SubmissionLook, SubmissionView


@dataclass
class Clock:
    """Looking takes ``look_s``."""

    now_s: float = 0.0
    look_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds


def views(clock: Clock, looks: int) -> Iterator[SubmissionView]:
    """Open for so many looks, and then finished."""
    for number in range(looks):
        clock.now_s += clock.look_s
        yield replace(VIEW, seen_at_s=NOW_S + number)
    over = replace(PROGRESS, state=SubmissionState.FINISHED, finished_at_s=NOW_S)
    yield replace(VIEW, progress=over, pace=None)


def followed(console: Console, clock: Clock, looks: int) -> None:
    coming = views(clock, looks)
    follow_submission(console, lambda: next(coming), clock=clock, sleep=clock.sleep)


def test_elsewhere_than_on_a_terminal_it_says_a_line_now_and_then_and_the_whole_at_the_end() -> None:
    stream, clock = io.StringIO(), Clock()
    followed(Console(file=stream, width=200), clock, 600)
    lines = stream.getvalue().splitlines()
    said = [line for line in lines if line.startswith("submission 1207 open")]
    assert 20 <= len(said) <= 60
    assert "Submission 1207: finished" in lines[len(said)]


def test_on_a_terminal_the_page_stays_and_is_drawn_again() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True)
    followed(console, Clock(), 3)
    drawn = stream.getvalue()
    assert "submission 1207 open" not in drawn
    assert "finished" in drawn


def test_looking_takes_a_tenth_of_the_time_at_most() -> None:
    slow, fast = Clock(look_s=3.0), Clock()
    for clock in (slow, fast):
        followed(Console(file=io.StringIO(), width=200), clock, 4)
    assert slow.slept_s[:2] == [30.0, 30.0]
    assert fast.slept_s[:2] == [LOOK_EVERY_S, LOOK_EVERY_S]


@pytest.mark.parametrize(
    ("pace", "left_s"), [(Pace(pages=30, over_s=60.0), 200.0), (Pace(pages=0, over_s=60.0), None)]
)
def test_time_left_follows_from_the_pace(pace: Pace, left_s: float | None) -> None:
    assert pace.time_for_s(100) == left_s


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def test_the_pace_is_that_of_the_last_minutes_and_is_not_asked_for_at_every_look(
    store: Store, tmp_path: Path
) -> None:
    commands = Commands(tmp_path, Pool(store))
    submitted = commands.submitted(6, "a.pdf")
    commands.read_pages(2)
    created_at_s = store.pool.progress(submitted.submission_id).created_at_s
    clock = Clock(now_s=created_at_s + 100)
    look = SubmissionLook(store, submitted.submission_id, secret_key=None, clock=clock)
    assert look.view().pace == Pace(pages=2, over_s=100.0)
    commands.read_pages(2)
    clock.now_s += PACE_KEPT_S / 2
    assert look.view().pace == Pace(pages=2, over_s=100.0)
    clock.now_s += PACE_KEPT_S
    pace = look.view().pace
    assert pace is not None
    assert pace.pages == 4
    clock.now_s += 2 * RECENT_S
    assert look.view().pace == Pace(pages=0, over_s=RECENT_S)


def test_pages_of_an_earlier_run_set_no_pace(store: Store, tmp_path: Path) -> None:
    commands = Commands(tmp_path, Pool(store))
    first = commands.submitted(2, "a.pdf")
    commands.read_pages(2)
    commands.write_up()
    second = commands.pool.open()
    commands.pool.add(second, "again.pdf")
    commands.pool.take_in(first.document)
    clock = Clock(now_s=store.pool.progress(second).created_at_s + 10)
    view = SubmissionLook(store, second, secret_key=None, clock=clock).view()
    assert view.progress.settled_pages == 2
    assert view.pace == Pace(pages=0, over_s=10.0)


def test_what_failed_is_looked_up_again_only_when_more_did(store: Store, tmp_path: Path) -> None:
    commands = Commands(tmp_path, Pool(store))
    submitted = commands.submitted(3, "a.pdf")
    look = SubmissionLook(store, submitted.submission_id, secret_key=None)
    assert look.view().failures.first == ()
    commands.fail_page(submitted, 1)
    [first] = look.view().failures.first
    assert (first.source, first.page_number, first.code) == ("a.pdf", 1, "worker_lost")
    commands.fail_page(submitted, 2)
    assert {one.page_number for one in look.view().failures.first} == {1, 2}
