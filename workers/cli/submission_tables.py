"""The table of ``doctriage submissions list``. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.pool import SubmissionState
from pipeline.store import SubmissionSummary
from workers.cli.measures import at_words, duration_words, percent, share_bar
from workers.cli.printable import printable
from workers.cli.table_parts import new_table, shown_count

BAR_CELLS: Final = 12
NAME_CELLS: Final = 24
"""Longer names are folded."""

ANY_WIDTH: Final = 10_000
STATE_STYLES: Final[Mapping[SubmissionState, str]] = {
    SubmissionState.OPEN: "cyan",
    SubmissionState.FINISHED: "green",
    SubmissionState.CANCELLED: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    heading: str
    cell: Callable[[SubmissionSummary, float], str | Text]
    is_number: bool = False
    folds: bool = False
    given_up: int = 0
    """Where the terminal is too narrow, columns with the highest number go first; those with 0 stay."""

    is_shown: Callable[[SubmissionSummary], object] = lambda one: True
    """A column that says nothing of any row is left out."""


def print_submissions(console: Console, found: Sequence[SubmissionSummary], now_s: float) -> None:
    console.print(submissions_table(found, now_s, console), crop=False)
    if any(not one.is_sealed and one.state is SubmissionState.OPEN for one in found):
        console.print(Text("+: its submitter still sends documents", style="dim"))
    if any(one.unopened_sources and one.state is SubmissionState.OPEN for one in found):
        console.print(Text("?: not every document is opened yet", style="dim"))


def submissions_table(found: Sequence[SubmissionSummary], now_s: float, console: Console) -> Table:
    """A row a submission. Rather than cut a number it leaves out the bar, then when it was opened, and who did."""
    for given_up in (4, 3, 2, 1, 0):
        shown = [
            column for column in _COLUMNS if column.given_up <= given_up and any(map(column.is_shown, found))
        ]
        table = _table_of(shown, found, now_s)
        least = table.__rich_measure__(console, console.options.update(max_width=ANY_WIDTH)).maximum
        if least <= console.width:
            break
    return table


def _table_of(columns: Sequence[_Column], found: Sequence[SubmissionSummary], now_s: float) -> Table:
    table = new_table("Submissions")
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.is_number else "left",
            no_wrap=not column.folds,
            overflow="fold",
            max_width=NAME_CELLS if column.folds else None,
        )
    for one in found:
        table.add_row(*(column.cell(one, now_s) for column in columns))
    return table


def _sources_cell(one: SubmissionSummary, _now_s: float) -> str:
    more = "+" if not one.is_sealed and one.state is SubmissionState.OPEN else ""
    return f"{one.settled_sources:,}/{one.sources:,}{more}"


def _pages_cell(one: SubmissionSummary, _now_s: float) -> str:
    more = "?" if one.unopened_sources and one.state is SubmissionState.OPEN else ""
    return f"{one.settled_pages:,}/{one.pages:,}{more}" if one.pages or not more else "?"


def _failed_cell(one: SubmissionSummary, _now_s: float) -> Text:
    return Text(shown_count(one.failed_pages), "red" if one.failed_pages else "")


def _bar_cell(one: SubmissionSummary, _now_s: float) -> Text:
    share = _share_of(one)
    return Text("") if share is None else share_bar(share, STATE_STYLES[one.state], BAR_CELLS)


def _share_cell(one: SubmissionSummary, _now_s: float) -> str:
    share = _share_of(one)
    return "" if share is None else percent(share)


def _time_cell(one: SubmissionSummary, now_s: float) -> str:
    """How long it took, or has taken so far."""
    end_s = now_s if one.finished_at_s is None else one.finished_at_s
    return duration_words(end_s - one.created_at_s)


_COLUMNS: Final = (
    _Column(heading="no.", cell=lambda one, _: str(one.submission_id), is_number=True),
    _Column(heading="state", cell=lambda one, _: Text(one.state, STATE_STYLES[one.state])),
    _Column(heading="prio-\nrity", cell=lambda one, _: str(one.priority), is_number=True),
    _Column(heading="cost centre", cell=lambda one, _: Text(printable(one.cost_centre)), folds=True),
    _Column(
        heading="submitter", cell=lambda one, _: Text(printable(one.submitter or "")), folds=True, given_up=2
    ),
    _Column(heading="documents", cell=_sources_cell, is_number=True),
    _Column(heading="pages", cell=_pages_cell, is_number=True),
    _Column(heading="", cell=_bar_cell, given_up=4),
    _Column(heading="done", cell=_share_cell, is_number=True, given_up=1),
    _Column(heading="pages\nfailed", cell=_failed_cell, is_number=True),
    _Column(
        heading="documents\nfailed",
        cell=lambda one, _: Text(shown_count(_failed_sources(one)), "red" if _failed_sources(one) else ""),
        is_number=True,
        given_up=1,
        is_shown=lambda one: _failed_sources(one),
    ),
    _Column(heading="opened (UTC)", cell=lambda one, _: at_words(one.created_at_s), given_up=3),
    _Column(heading="for", cell=_time_cell, is_number=True),
)


def _failed_sources(one: SubmissionSummary) -> int:
    """Of a cancelled submission those that it did not get to count among them, so nothing is said."""
    return 0 if one.state is SubmissionState.CANCELLED else one.failed_sources


def _share_of(one: SubmissionSummary) -> float | None:
    """Of its pages; None while the number of them grows."""
    is_growing = one.state is SubmissionState.OPEN and (one.unopened_sources or not one.is_sealed)
    if is_growing:
        return None
    return one.settled_pages / one.pages if one.pages else float(one.settled_sources == one.sources)
