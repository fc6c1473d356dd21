"""The tables of ``doctriage submissions``, from made-up records, in terminals of several widths."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from models.choices import RoutePolicy
from models.page import Route
from models.pool import SourceState, SubmissionState
from models.tables import PageState
from pipeline.store import SubmissionProgress, SubmissionSummary
from workers.cli.measures import duration_words, percent, share_bar
from workers.cli.submission_page import follow_line, submission_shown, wishes_words
from workers.cli.submission_tables import print_submissions
from workers.cluster.wishes import Wishes
from workers.submissions import Failure, Failures, Pace, SubmissionView

NOW_S = 1_796_000_000.0

OPEN = SubmissionSummary(
    submission_id=1207,
    state=SubmissionState.OPEN,
    is_sealed=True,
    priority=9,
    cost_centre="legal/contracts",
    submitter="anna",
    created_at_s=NOW_S - 754,
    finished_at_s=None,
    sources=1_200,
    settled_sources=310,
    failed_sources=2,
    unopened_sources=0,
    pages=20_418,
    settled_pages=5_203,
    failed_pages=7,
)
ARRIVING = replace(
    OPEN,
    submission_id=1208,
    is_sealed=False,
    priority=5,
    cost_centre="a-department-with-a-long-name/ferries",
    submitter=None,
    sources=12,
    settled_sources=0,
    unopened_sources=12,
    pages=0,
    settled_pages=0,
    failed_pages=0,
)
FINISHED = replace(
    OPEN,
    submission_id=3,
    state=SubmissionState.FINISHED,
    finished_at_s=NOW_S - 654,
    sources=3,
    settled_sources=3,
    pages=14,
    settled_pages=14,
    failed_pages=0,
)
CANCELLED = replace(FINISHED, submission_id=2, state=SubmissionState.CANCELLED, settled_pages=4, priority=0)
ALL = (ARRIVING, OPEN, FINISHED, CANCELLED)

PROGRESS = SubmissionProgress(
    submission_id=1207,
    state=SubmissionState.OPEN,
    is_sealed=True,
    priority=9,
    cost_centre="legal/contracts",
    submitter="anna",
    created_at_s=NOW_S - 754,
    finished_at_s=None,
    sources={SourceState.READING: 889, SourceState.READ: 1, SourceState.SETTLED: 310},
    failed_sources=3,
    pages={
        PageState.PENDING: 15_000,
        PageState.RUNNING: 16,
        PageState.AWAITING_VLM: 190,
        PageState.TRANSCRIBING: 9,
        PageState.DONE: 5_196,
        PageState.FAILED: 7,
    },
    routes={Route.TEXT_LAYER: 3_000, Route.OCR: 1_900, Route.VLM: 290, Route.OCR_DEGRADED: 6},
)
FAILURES = Failures(
    first=(
        Failure(
            source="letters/1962.pdf",
            page_number=None,
            code="document_encrypted",
            message="encrypted; give its password with --password",
        ),
        Failure(
            source="a\x1b[31m.pdf",
            page_number=4,
            code="worker_lost",
            message="five workers were lost while they read this page",
        ),
    ),
    refused_sources=2,
)
VIEW = SubmissionView(
    progress=PROGRESS,
    wishes=Wishes(route=RoutePolicy.OCR, languages="eng+deu", formats=("markdown",)),
    sealed_passwords=2,
    pace=Pace(pages=2_031, over_s=300.0),
    failures=FAILURES,
    seen_at_s=NOW_S,
)


def listed(width: int, *found: SubmissionSummary) -> str:
    stream = io.StringIO()
    print_submissions(Console(file=stream, width=width), found, NOW_S)
    return stream.getvalue()


def shown(view: SubmissionView, width: int = 100) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, markup=False, emoji=False, highlight=False).print(
        submission_shown(view)
    )
    return stream.getvalue()


def row_of(text: str, beginning: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(beginning)).split()


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
def test_no_number_of_the_list_is_cut_whatever_the_terminal_s_width(width: int) -> None:
    table = listed(width, *ALL)
    assert max(map(len, table.splitlines())) <= width
    assert {"1207", "310/1,200", "5,203/20,418", "0/12+", "14/14", "4/14"} <= set(table.split())
    assert "…" not in table


def test_a_wide_terminal_has_a_bar_and_a_narrow_one_leaves_columns_out() -> None:
    wide, narrow = listed(200, OPEN), listed(80, OPEN)
    assert {"█", "░"} <= set(wide)
    assert not {"█", "░"} & set(narrow)
    assert ("opened (UTC)" in wide, "opened (UTC)" in narrow) == (True, False)
    assert row_of(narrow, "1207")[:4] == ["1207", "open", "9", "legal/contracts"]


def test_a_share_is_not_shown_while_the_number_of_pages_grows() -> None:
    table = listed(200, ARRIVING, replace(OPEN, unopened_sources=4))
    assert "%" not in table
    assert "5,203/20,418?" in table
    assert "+: its submitter still sends documents" in table
    assert "?: not every document is opened yet" in table


def test_a_list_of_what_is_over_needs_no_legend() -> None:
    assert "?" not in listed(200, FINISHED, CANCELLED)
    assert "100 %" in listed(200, FINISHED)
    assert "2 min" in listed(200, FINISHED)  # what it took, not since when


def test_documents_that_failed_have_a_column_where_there_are_any() -> None:
    table = listed(200, OPEN, CANCELLED)
    assert [row_of(table, number)[-5:-4] for number in ("1207", "2 ")] == [["2"], ["-"]]
    assert listed(200, replace(OPEN, failed_sources=0)).count("documents") == 1


def test_names_cannot_act_on_the_terminal() -> None:
    table = listed(200, replace(OPEN, cost_centre="a\x1b[31m", submitter="b\n"))
    assert "a\\x1b[31m" in table
    assert "b\\x0a" in table
    assert "\x1b" not in shown(VIEW)


def test_a_submission_is_shown_with_all_its_states() -> None:
    page = shown(VIEW, 120)
    assert row_of(page, "waiting for a CPU")[4:] == ["15,000", "█████████░░░", "73", "%"]
    assert row_of(page, "done: ocr degraded")[3] == "6"
    assert row_of(page, "with the VLM")[3] == "9"
    assert row_of(page, "written") == ["written", "307", "███░░░░░░░░░", "26", "%"]
    assert row_of(page, "refused")[1] == "2"
    assert row_of(page, "without a page that could be read")[7] == "1"
    assert row_of(page, "letters/1962.pdf")[:3] == ["letters/1962.pdf", "all", "document_encrypted"]
    assert row_of(page, "7 more")[2:4] == ["failures.jsonl", "and"]
    assert "406.2 pages/min over the last 5 min, about 37 min left" in page
    assert "asked for: route ocr, languages eng+deu, written as markdown, 2 passwords sealed" in page


def test_nothing_is_foretold_where_no_page_was_settled_lately() -> None:
    page = shown(replace(VIEW, pace=Pace(pages=0, over_s=300.0)))
    assert "no page in the last 5 min" in page
    assert "left" not in page


STANDSTILL = Pace(pages=0, over_s=300.0)


def test_what_stands_still_is_said_to_and_whose_workers_it_waits_for() -> None:
    waiting = replace(PROGRESS, sources={SourceState.IN_INTAKE: 1}, pages={PageState.PENDING: 2})
    page = shown(replace(VIEW, progress=waiting, pace=STANDSTILL), 160)
    assert "it waits its turn, or no worker of intake or ocr runs, or the log of one says" in page


@pytest.mark.parametrize(
    "view",
    [
        replace(VIEW, pace=STANDSTILL, progress=replace(PROGRESS, pages={PageState.TRANSCRIBING: 1})),
        replace(
            VIEW, pace=Pace(pages=0, over_s=299.0), progress=replace(PROGRESS, pages={PageState.PENDING: 1})
        ),
        replace(
            VIEW, pace=Pace(pages=1, over_s=300.0), progress=replace(PROGRESS, pages={PageState.PENDING: 1})
        ),
    ],
    ids=["with the VLM", "submitted just now", "read"],
)
def test_what_goes_on_is_not_said_to_stand_still(view: SubmissionView) -> None:
    assert "it waits its turn" not in shown(view, 160)


def test_nothing_is_foretold_while_documents_are_unopened() -> None:
    sources = {**PROGRESS.sources, SourceState.RECEIVED: 1}
    page = shown(replace(VIEW, progress=replace(PROGRESS, sources=sources)), 160)
    assert "of 20,418 pages known so far settled" in page
    assert "left" not in page
    assert "of the pages" not in page


def test_one_that_is_over_can_be_fetched_and_not_cancelled() -> None:
    over = replace(PROGRESS, state=SubmissionState.CANCELLED, finished_at_s=NOW_S - 4)
    page = shown(replace(VIEW, progress=over, pace=None, failures=replace(FAILURES, cancelled_sources=1)))
    assert "after 12 min" in page
    assert "not read: waiting for a CPU" in page
    assert row_of(page, "cancelled")[1] == "1"
    assert "brings the results" in page
    assert "submissions cancel" not in page


def test_the_line_for_a_log_has_what_counts() -> None:
    assert follow_line(VIEW) == (
        "submission 1207 open, 310 of 1,200 documents and 5,203 of 20,418 pages settled, 7 pages failed, "
        "406.2 pages/min over the last 5 min, about 37 min left"
    )


def test_passwords_that_cannot_be_counted_are_said_to_be_sealed() -> None:
    assert wishes_words(Wishes(force=True), None) == (
        "every page anew, written as markdown and json, passwords sealed"
    )
    assert wishes_words(Wishes(), 0) == "written as markdown and json"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (5_300, "88 min"),
        (5_400, "1 h 30 min"),
        (7_200, "2 h"),
        (172_800, "2 d"),
        (176_400, "2 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@pytest.mark.parametrize(
    ("share", "words", "cells"),
    [(0.0, "0 %", 0), (0.001, "<1 %", 0), (0.5, "50 %", 5), (0.999, "99 %", 9), (1.0, "100 %", 10)],
)
def test_neither_all_nor_nothing_is_claimed_too_early(share: float, words: str, cells: int) -> None:
    assert percent(share) == words
    assert share_bar(share, "", 10).plain.count("█") == cells
