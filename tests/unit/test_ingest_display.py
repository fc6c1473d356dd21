"""What an ingest shows: lines while it works, tables at the end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from models.budget import BudgetMonth, Level, WhenSpent
from models.page import Route
from pipeline.chargeback.bills import SubmissionBill
from tests.fakes.reports import document_report, ingest_report
from workers.cli.progress import NOTICES_SHOWN, LiveProgress, PlainProgress, Tally, progress_display
from workers.cli.table_parts import ROWS_SHOWN
from workers.cli.tables import closing_lines, print_report
from workers.events import (
    DocumentFound,
    DocumentRejectedEvent,
    Event,
    FailureReport,
    IngestReport,
    PageFinished,
    PageGivenUp,
    PageRetried,
    SourceRenamed,
    SourcesFound,
)


class SteppedClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def plain_console(width: int = 200) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=width, markup=False, emoji=False, highlight=False), written


def found(source: str, page_count: int, *, same_bytes_as: str | None = None) -> DocumentFound:
    return DocumentFound(
        source=source, document_id="ab" * 32, page_count=page_count, same_bytes_as=same_bytes_as
    )


def finished(route: Route = Route.OCR, *, from_earlier_run: bool = False) -> PageFinished:
    return PageFinished(
        source="a.pdf", page_number=1, route=route, elapsed_s=1.0, from_earlier_run=from_earlier_run
    )


def printed(report: IngestReport, width: int = 200) -> str:
    console, written = plain_console(width)
    print_report(console, report, Path("out"))
    return written.getvalue()


def test_the_tally_counts_shared_bytes_once_and_earlier_pages_not_as_speed() -> None:
    clock = SteppedClock()
    tally = Tally(clock=clock)
    events: list[Event] = [
        found("a.pdf", 3),
        found("b.pdf", 3, same_bytes_as="a.pdf"),
        finished(Route.TEXT_LAYER, from_earlier_run=True),
        finished(Route.OCR),
        PageRetried(source="a.pdf", page_number=3, attempt=1, code="engine_failed", message="again"),
        PageGivenUp(source="a.pdf", page_number=3, code="page_timed_out", message="too slow"),
    ]
    clock.now_s = 30.0
    for event in events:
        tally.add(event)
    assert (tally.pages_total, tally.pages_done) == (3, 3)
    assert tally.pages_per_minute == 2.0
    assert tally.in_words() == "3/3 pages, 2.0 pages/min (text layer 1, ocr 1, failed 1)"


def test_the_speed_of_a_reading_that_began_earlier_is_not_that_of_who_comes_to_see() -> None:
    clock = SteppedClock()
    tally = Tally(clock=clock)
    clock.now_s = 1.0
    for event in (SourcesFound(count=1, begun_before_s=59.0), found("a.pdf", 2), finished(), finished()):
        tally.add(event)
    assert tally.in_words() == "2/2 pages, 2.0 pages/min (ocr 2)"


def test_a_tally_without_pages_has_no_speed() -> None:
    assert Tally().in_words() == "0/0 pages"


def test_a_long_run_without_a_terminal_prints_tens_of_lines() -> None:
    clock = SteppedClock()
    console, written = plain_console()
    with PlainProgress(console, clock=clock) as progress:
        progress.on_event(found("a.pdf", 30_000))
        for _ in range(30_000):
            clock.now_s += 1.0
            progress.on_event(finished())
    lines = written.getvalue().splitlines()
    assert 20 < len(lines) < 120
    assert lines[-1] == "30000/30000 pages, 60.0 pages/min (ocr 30000)"


def test_the_total_is_told_when_every_document_has_been_opened() -> None:
    tally = Tally()
    events: list[Event] = [
        SourcesFound(count=3),
        found("a.pdf", 1),
        finished(from_earlier_run=True),
        DocumentRejectedEvent(source="b.pdf", code="empty_file", message="b.pdf: empty"),
    ]
    for event in events:
        tally.add(event)
    assert tally.in_words() == "1/? pages, 2/3 documents opened, 1 not read (ocr 1)"
    tally.add(found("c.pdf", 4))
    assert tally.in_words() == "1/5 pages, 1 not read (ocr 1)"


def test_failed_pages_are_named_at_once_and_safely_and_documents_in_the_table_alone() -> None:
    console, written = plain_console()
    with PlainProgress(console) as progress:
        progress.on_event(DocumentRejectedEvent(source="y.pdf", code="empty_file", message="y.pdf: empty"))
        progress.on_event(
            PageGivenUp(source="z\x1b[31m.pdf", page_number=2, code="page_timed_out", message="[b]slow")
        )
        progress.on_event(SourceRenamed(source="a (2).pdf", wanted="a.pdf"))
    assert written.getvalue().splitlines() == [
        "failed: z\\x1b[31m.pdf, page 2: [b]slow",
        "renamed: a.pdf is written as a (2).pdf",
        "1/0 pages, 1 not read",
    ]


def test_a_thousand_failures_do_not_flood_the_screen() -> None:
    console, written = plain_console()
    with PlainProgress(console) as progress:
        for number in range(1_000):
            progress.on_event(
                PageGivenUp(source="a.pdf", page_number=number, code="page_timed_out", message="slow")
            )
    lines = written.getvalue().splitlines()
    assert len(lines) == NOTICES_SHOWN + 1
    assert "counted" in lines[-1]


def test_a_terminal_gets_a_bar_and_a_dumb_one_lines() -> None:
    bar = Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "xterm"})
    dumb = Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "dumb"})
    assert isinstance(progress_display(bar), LiveProgress)
    assert isinstance(progress_display(dumb), PlainProgress)


def test_the_bar_shows_pages_speed_and_routes() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    with LiveProgress(console) as progress:
        progress.on_event(found("a.pdf", 4))
        progress.on_event(finished(Route.BLANK))
        progress.on_event(finished(Route.OCR_DEGRADED))
    shown = written.getvalue()
    assert "2/4 pages" in shown
    assert "pages/min" in shown
    assert "ocr degraded 1, blank 1" in shown


def test_the_bar_has_no_end_before_every_document_has_been_opened() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    with LiveProgress(console) as progress:
        progress.on_event(SourcesFound(count=2))
        progress.on_event(found("a.pdf", 1))
        progress.on_event(finished(from_earlier_run=True))
        assert progress._progress.tasks[0].total is None
        progress.on_event(found("b.pdf", 3))
        assert progress._progress.tasks[0].total == 4
    assert "1/4 pages" in written.getvalue()


def test_the_tables_tell_routes_seconds_reasons_and_the_saving() -> None:
    report = ingest_report(
        document_report("a.pdf", {Route.TEXT_LAYER: 2, Route.OCR_DEGRADED: 1}, failed_pages=1),
        document_report("b.pdf", {Route.TEXT_LAYER: 1}, same_bytes_as="a.pdf"),
        failures=(FailureReport(source="c.pdf", code="empty_file", message="c.pdf: empty; send it again"),),
        pages_by_reason={"uncovered_ink": 1, "low_confidence": 3},
        visual_tokens_if_all=10_000,
        visual_tokens_triaged=2_500,
    )
    lines = [" ".join(line.split()) for line in printed(report).splitlines()]
    assert "document pages layer degraded failed seconds" in lines
    assert "a.pdf 4 2 1 1 1.5" in lines
    assert "b.pdf (same as a.pdf) 1 1 - - 1.5" in lines
    assert "2 documents 5 3 1 1 3.0" in lines
    assert "c.pdf empty_file c.pdf: empty; send it again" in lines
    reasons = [line for line in lines if "low_confidence" in line or "uncovered_ink" in line]
    assert [line.split()[-1] for line in reasons] == ["3", "1"]
    assert "10,000 2,500 7,500 (75%)" in lines
    assert "written to out" in lines


@pytest.mark.parametrize(
    ("cost_micro", "unpriced_entries", "told"),
    [
        (4_312, 0, "12,345 prompt and 678 completion tokens, 0.004312 USD"),
        (0, 0, "12,345 prompt and 678 completion tokens, 0 USD"),
        (4_312, 2, "12,345 prompt and 678 completion tokens, 0.004312 USD and 2 attempts unpriced"),
        (0, 2, "12,345 prompt and 678 completion tokens, unpriced"),
    ],
)
def test_the_end_tells_who_is_billed_and_never_calls_unpriced_nothing(
    cost_micro: int, unpriced_entries: int, told: str
) -> None:
    bill = SubmissionBill(
        cost_centre="harbour/ferries",
        currency="USD",
        prompt_tokens=12_345,
        completion_tokens=678,
        cost_micro=cost_micro,
        unpriced_entries=unpriced_entries,
    )
    lines = list(closing_lines(ingest_report(document_report(), bills=(bill,)), Path("out")))
    assert f"billed to harbour/ferries: {told}" in lines
    assert not any("billed" in line for line in closing_lines(ingest_report(document_report()), Path("out")))


def test_the_end_warns_of_a_budget_that_is_nearly_spent_in_yellow() -> None:
    budget = BudgetMonth(
        cost_centre="research",
        month="2026-11",
        money=Level(limit=200_000_000, spent=170_123_456, reserved=0),
        currency="USD",
        tokens=Level(limit=1_000, spent=1, reserved=0),
        warn_percent=80,
        when_spent=WhenSpent.HOLD,
    )
    report = ingest_report(document_report(), budgets=(budget,))
    assert printed(report).endswith("\nbudget of research for 2026-11: 85 % of 200.00 USD spent\n")
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, color_system="standard", width=200)
    print_report(console, report, Path("out"))
    assert "\x1b[33mbudget of research" in written.getvalue()


def test_a_route_that_no_page_took_has_no_column() -> None:
    shown = printed(ingest_report(document_report("a.pdf", {Route.BLANK: 1})))
    assert "blank" in shown
    assert "degraded" not in shown
    assert "failed" not in shown


def test_many_documents_are_summed_up_after_the_first() -> None:
    documents = [document_report(f"{number:04}.pdf", {Route.OCR: 2}) for number in range(1_000)]
    lines = [" ".join(line.split()) for line in printed(ingest_report(*documents)).splitlines()]
    assert (
        f"{1_000 - ROWS_SHOWN} more {2 * (1_000 - ROWS_SHOWN):,} {2 * (1_000 - ROWS_SHOWN):,} 1,425.0"
        in lines
    )
    assert len(lines) < ROWS_SHOWN + 20


def test_names_are_shown_whole_and_without_effect() -> None:
    shown = printed(ingest_report(document_report("folder/" * 9 + "x\x1b[31m[red]y[/red].pdf")), width=80)
    assert "\x1b" not in shown
    first_column = "".join(line.partition("  ")[0] for line in shown.splitlines())
    assert "x\\x1b[31m[red]y[/red].pdf" in first_column


def test_the_tables_fit_a_narrow_terminal() -> None:
    report = ingest_report(
        document_report("name " * 40, dict.fromkeys(Route, 123), failed_pages=4),
        failures=(FailureReport(source="c" * 200, code="document_encrypted", message="m " * 200),),
        pages_by_reason={"uncovered_ink": 3},
    )
    assert max(len(line) for line in printed(report, width=80).splitlines()) <= 80


def test_an_unfinished_document_says_so() -> None:
    assert "a.pdf (not finished)" in printed(ingest_report(document_report("a.pdf", is_written=False)))
