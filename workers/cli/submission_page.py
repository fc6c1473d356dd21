"""Where one submission stands. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from models.page import Route
from models.pool import Queue, SourceState
from models.tables import PageState
from pipeline.store import SubmissionProgress
from workers.cli.measures import at_words, duration_words, percent, share_bar
from workers.cli.printable import printable
from workers.cli.progress import ROUTE_NAMES
from workers.cli.submission_tables import BAR_CELLS, STATE_STYLES
from workers.cli.table_parts import new_table, plural
from workers.cluster.wishes import Wishes
from workers.submissions import RECENT_S, Failures, SubmissionView

WIDE_BAR_CELLS: Final = 40

SOURCE_WORDS: Final[Mapping[SourceState, str]] = {
    SourceState.RECEIVED: "waiting to be opened",
    SourceState.IN_INTAKE: "being opened",
    SourceState.READING: "being read",
    SourceState.READ: "waiting to be written",
    SourceState.BEING_WRITTEN: "being written",
}
PAGE_WORDS: Final[Mapping[PageState, str]] = {
    PageState.PENDING: "waiting for a CPU",
    PageState.RUNNING: "being read on a CPU",
    PageState.AWAITING_VLM: "waiting for the VLM",
    PageState.TRANSCRIBING: "with the VLM",
}

WAITING_FOR: Final[Mapping[SourceState | PageState, Queue]] = {
    SourceState.RECEIVED: Queue.INTAKE,
    SourceState.IN_INTAKE: Queue.INTAKE,
    PageState.PENDING: Queue.OCR,
    PageState.AWAITING_VLM: Queue.VLM,
    SourceState.READ: Queue.ASSEMBLE,
    SourceState.BEING_WRITTEN: Queue.ASSEMBLE,
}
"""Whose workers what stands still waits for."""


def follow_line(view: SubmissionView) -> str:
    """Where the submission stands, for a log."""
    progress = view.progress
    failed = progress.pages.get(PageState.FAILED, 0)
    words = [f"submission {progress.submission_id} {progress.state}", _settled_words(view)]
    if failed:
        words.append(f"{plural(failed, 'page')} failed")
    return ", ".join((*words, *_pace_words(view)))


def submission_shown(view: SubmissionView) -> RenderableType:
    return Group(*_parts(view))


def wishes_words(wishes: Wishes, sealed_passwords: int | None) -> str:
    named = {
        "route": wishes.route,
        "profile": wishes.profile,
        "languages": wishes.languages,
        "engine": wishes.engine,
    }
    words = [f"{name} {printable(str(value))}" for name, value in named.items() if value is not None]
    if wishes.force:
        words.append("every page anew")
    words.append(f"written as {' and '.join(map(printable, wishes.formats))}")
    if sealed_passwords is None:
        words.append("passwords sealed")
    elif sealed_passwords:
        words.append(f"{plural(sealed_passwords, 'password')} sealed")
    return ", ".join(words)


def _parts(view: SubmissionView) -> Iterator[RenderableType]:
    progress = view.progress
    yield Text.assemble(
        f"Submission {progress.submission_id}: ",
        (str(progress.state), STATE_STYLES[progress.state]),
        f", priority {progress.priority}, paid by {printable(progress.cost_centre)}{_by(progress)}",
    )
    yield Text(_times_words(view))
    yield Text(f"asked for: {wishes_words(view.wishes, view.sealed_passwords)}")
    yield Text("")
    share = _view_share(view)
    if share is not None:
        yield Text.assemble(
            share_bar(share, STATE_STYLES[progress.state], WIDE_BAR_CELLS), f" {percent(share)} of the pages"
        )
    yield Text(", ".join((_settled_words(view), *_pace_words(view))))
    yield from map(Text, _standstill_words(view))
    yield Text("")
    yield _states_table("Documents", _source_rows(view))
    yield Text("")
    if progress.total_pages:
        yield _states_table("Pages", _page_rows(progress))
        yield Text("")
    if view.failures.first:
        yield _failures_table(view)
        yield Text("")
    yield from map(Text, _next_lines(progress))


def _by(progress: SubmissionProgress) -> str:
    return "" if progress.submitter is None else f", submitted by {printable(progress.submitter)}"


def _times_words(view: SubmissionView) -> str:
    progress = view.progress
    opened = f"opened {at_words(progress.created_at_s)} UTC"
    if progress.finished_at_s is None:
        return f"{opened}, {duration_words(view.seen_at_s - progress.created_at_s)} ago"
    took = duration_words(progress.finished_at_s - progress.created_at_s)
    return f"{opened}, {progress.state} {at_words(progress.finished_at_s)}, after {took}"


def _settled_words(view: SubmissionView) -> str:
    progress = view.progress
    settled = progress.sources.get(SourceState.SETTLED, 0)
    sources = f"{settled:,} of {plural(progress.total_sources, 'document')}"
    if not progress.is_sealed and not progress.is_over:
        sources += " so far"
    if not progress.total_pages and not view.is_total_known:
        return f"{sources} settled"
    open_end = "" if view.is_total_known else " known so far"
    return f"{sources} and {progress.settled_pages:,} of {plural(progress.total_pages, 'page')}{open_end} settled"


def _pace_words(view: SubmissionView) -> Iterator[str]:
    if view.progress.is_over or view.pace is None:
        return
    over = duration_words(view.pace.over_s)
    if not view.pace.pages:
        yield f"no page in the last {over}"
        return
    yield f"{view.pace.pages_per_minute:,.1f} pages/min over the last {over}"
    if view.left_s:
        yield f"about {duration_words(view.left_s)} left"


def _standstill_words(view: SubmissionView) -> Iterator[str]:
    """Of a submission that nothing was read of for as long as a pace is taken over."""
    pages, pace = view.progress.pages, view.pace
    if view.progress.is_over or pace is None or pace.pages or pace.over_s < RECENT_S:
        return
    if pages.get(PageState.RUNNING, 0) or pages.get(PageState.TRANSCRIBING, 0):
        return
    waiting = {state for state, count in (*view.progress.sources.items(), *pages.items()) if count}
    queues = dict.fromkeys(queue for state, queue in WAITING_FOR.items() if state in waiting)
    if queues:
        yield (
            f"it waits its turn, or no worker of {' or '.join(queues)} runs, "
            "or the log of one says what holds it up; ask who runs the pool"
        )


def _view_share(view: SubmissionView) -> float | None:
    progress = view.progress
    if not view.is_total_known or not progress.total_pages:
        return None
    return progress.settled_pages / progress.total_pages


Row = tuple[str, int, str]
"""Words, how many, and their style."""


def _source_rows(view: SubmissionView) -> Iterator[Row]:
    sources, failures = view.progress.sources, view.failures
    for state, words in SOURCE_WORDS.items():
        yield words, sources.get(state, 0), ""
    failed = view.progress.failed_sources
    unreadable = failed - failures.refused_sources - failures.cancelled_sources
    yield "written", sources.get(SourceState.SETTLED, 0) - failed, "green"
    yield "without a page that could be read", unreadable, "red"
    yield "refused", failures.refused_sources, "red"
    yield "cancelled", failures.cancelled_sources, "dim"


def _page_rows(progress: SubmissionProgress) -> Iterator[Row]:
    for state, words in PAGE_WORDS.items():
        pages = progress.pages.get(state, 0)
        yield (f"not read: {words}" if progress.is_over else words), pages, "dim" if progress.is_over else ""
    for route, name in ROUTE_NAMES.items():
        style = "yellow" if route is Route.OCR_DEGRADED else "green"
        yield f"done: {name}", progress.routes.get(route, 0), style
    yield "failed", progress.pages.get(PageState.FAILED, 0), "red"


def _states_table(title: str, rows: Iterator[Row]) -> Table:
    """A row for each state that there is."""
    found = [row for row in rows if row[1] > 0]
    total = sum(count for _, count, _ in found)
    table = new_table(title)
    table.add_column("", min_width=24)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.show_header = False
    for words, count, style in found:
        share = count / total
        table.add_row(Text(words), f"{count:,}", share_bar(share, style, BAR_CELLS), percent(share))
    table.add_section()
    table.add_row("together", f"{total:,}", "", "")
    return table


def _failures_table(view: SubmissionView) -> Table:
    table = new_table("Not read")
    table.add_column("document", overflow="fold")
    table.add_column("page", justify="right", no_wrap=True)
    table.add_column("code", style="red", overflow="fold")
    table.add_column("message", overflow="fold")
    for one in view.failures.first:
        page = "all" if one.page_number is None else f"{one.page_number:,}"
        table.add_row(Text(printable(one.source)), page, Text(one.code), Text(printable(one.message)))
    more = _failures_in_all(view.progress, view.failures) - len(view.failures.first)
    if more > 0:
        table.add_row(Text(f"{more:,} more"), "", "", Text("failures.jsonl and pages.jsonl name all of them"))
    return table


def _failures_in_all(progress: SubmissionProgress, failures: Failures) -> int:
    return failures.refused_sources + progress.pages.get(PageState.FAILED, 0)


def _next_lines(progress: SubmissionProgress) -> Iterator[str]:
    number = progress.submission_id
    brings = "follows it to the end and brings" if not progress.is_over else "brings"
    yield f"`doctriage submissions fetch {number} --out DIR` {brings} the results"
    if not progress.is_over:
        yield f"`doctriage submissions cancel {number}` stops it, `… prioritise {number} 9` lets it go first"
    if progress.pages.get(PageState.FAILED, 0):
        yield f"`doctriage dead list --submission {number}` has the pages that failed, `… retry` tries them again"
