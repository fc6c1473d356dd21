"""The tables that close an ingest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.page import Route
from models.transcription import DegradedCode
from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text
from pipeline.chargeback.bills import SubmissionBill
from pipeline.chargeback.budget_words import warning
from workers.cli.printable import printable
from workers.cli.progress import ROUTE_NAMES
from workers.cli.table_parts import ROWS_SHOWN, new_table, not_read_table, plural, shown_count
from workers.events import DocumentReport, IngestReport
from workers.signal_words import signal_in_words

DEGRADED_WORDS = {
    DegradedCode.NO_VLM: "without the VLM that would read them better: none is configured (DOCTRIAGE_VLM__URL)",
    DegradedCode.AWAITING_VLM: "still waiting for the VLM",
    DegradedCode.VLM_UNAVAILABLE: "without an answer from the VLM; the same command tries again",
    DegradedCode.WORKER_LOST: "that cost the pool worker after worker on the way to the VLM; the same command tries "
    "again",
    DegradedCode.VLM_REFUSED: "refused by the VLM's service; `doctriage explain` has its words, the same command tries "
    "again",
    DegradedCode.ANSWERS_REFUSED: "with answers that are no transcript; `doctriage explain` says why, and --force asks "
    "again",
    DegradedCode.PAGE_NOT_SENT: "not drawn for the VLM",
    DegradedCode.BUDGET_SPENT: "beyond the budget; `doctriage explain` and `doctriage budget show` say whose",
    DegradedCode.BUDGET_HELD: "held back by the budget; the same command sends them once there is room",
}
"""After a number of pages. Their text is the CPU's."""


def print_report(console: Console, report: IngestReport, out_dir: Path) -> None:
    for table in _tables(report):
        console.print(table)
        console.print()
    for line in closing_lines(report, out_dir):
        console.print(Text(line))
    for budget in report.budgets:
        console.print(Text(printable(warning(budget)), style="yellow"))


def _tables(report: IngestReport) -> Iterator[Table]:
    if report.documents:
        yield documents_table(report)
    if report.failures:
        yield not_read_table(report.failures, all_of_them="see failures.jsonl")
    if report.pages_by_reason:
        yield reasons_table(report)
    if report.documents:
        yield tokens_table(report)
    if report.vlm_calls:
        yield vlm_table(report)


def documents_table(report: IngestReport) -> Table:
    """A row a document: pages by route (routes nobody took are left out), and the seconds its pages took."""
    routes = [route for route in ROUTE_NAMES if any(_pages(row, route) for row in report.documents)]
    table = new_table("Documents")
    table.add_column("document", overflow="fold", min_width=12)
    table.add_column("pages", justify="right")
    for route in routes:
        table.add_column(
            ROUTE_NAMES[route].replace(" ", "\n"),
            justify="right",
            style="yellow" if route is Route.OCR_DEGRADED else "",
        )
    if report.failed_pages:
        table.add_column("failed", justify="right", style="red")
    table.add_column("seconds", justify="right")
    for row in report.documents[:ROWS_SHOWN]:
        table.add_row(Text(_name(row)), *_cells((row,), routes, report))
    if len(report.documents) > ROWS_SHOWN:
        rest = report.documents[ROWS_SHOWN:]
        table.add_row(Text(f"{len(rest)} more"), *_cells(rest, routes, report))
    table.add_section()
    table.add_row(Text(plural(len(report.documents), "document")), *_cells(report.documents, routes, report))
    return table


def reasons_table(report: IngestReport) -> Table:
    """Why pages need the VLM; a page with two reasons is in two rows."""
    table = new_table("Reasons for the VLM")
    table.add_column("reason", overflow="fold")
    table.add_column("signal", overflow="fold", style="dim")
    table.add_column("pages", justify="right")
    for signal, pages in sorted(report.pages_by_reason.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(Text(signal_in_words(signal)), Text(signal), f"{pages:,}")
    return table


def tokens_table(report: IngestReport) -> Table:
    saved = report.visual_tokens_if_all - report.visual_tokens_triaged
    share = f" ({saved / report.visual_tokens_if_all:.0%})" if report.visual_tokens_if_all else ""
    table = new_table("Visual tokens")
    table.add_column("if every page went to the VLM", justify="right")
    table.add_column("triaged", justify="right")
    table.add_column("saved", justify="right", style="green")
    table.add_row(
        f"{report.visual_tokens_if_all:,}", f"{report.visual_tokens_triaged:,}", f"{saved:,}{share}"
    )
    return table


def vlm_table(report: IngestReport) -> Table:
    """What the VLM's service billed, or is taken to have billed where it did not say."""
    table = new_table("VLM, all calls about these pages")
    for heading in ("calls", "pages transcribed", "prompt tokens", "completion tokens"):
        table.add_column(heading, justify="right")
    transcribed = sum(_pages(row, Route.VLM) for row in report.documents if row.same_bytes_as is None)
    counts = (report.vlm_calls, transcribed, report.vlm_prompt_tokens, report.vlm_completion_tokens)
    table.add_row(*(f"{count:,}" for count in counts))
    return table


def closing_lines(report: IngestReport, out_dir: Path) -> Iterator[str]:
    earlier = (
        f", {report.pages_from_earlier_run:,} kept from an earlier run"
        if report.pages_from_earlier_run
        else ""
    )
    failed = f", {report.failed_pages:,} failed" if report.failed_pages else ""
    read = f"{plural(report.pages_read, 'page')} read in {report.elapsed_s:.1f} s"
    yield f"{read}{_rate(report)}{earlier}{failed}"
    for code, pages in sorted(report.pages_by_degradation.items()):
        yield f"ocr degraded: {plural(pages, 'page')} {DEGRADED_WORDS[DegradedCode(code)]}"
    for bill in report.bills:
        yield _bill_line(bill)
    yield f"written to {printable(str(out_dir))}"


def _bill_line(bill: SubmissionBill) -> str:
    """What has no price is said to have none, and is not called 0."""
    tokens = f"{bill.prompt_tokens:,} prompt and {bill.completion_tokens:,} completion tokens"
    amount = f"{amount_text(bill.cost_micro, MONEY_DECIMALS)} {bill.currency}"
    if bill.unpriced_entries:
        unpriced = f"{plural(bill.unpriced_entries, 'attempt')} unpriced"
        amount = f"{amount} and {unpriced}" if bill.cost_micro else "unpriced"
    return f"billed to {printable(bill.cost_centre)}: {tokens}, {amount}"


def _rate(report: IngestReport) -> str:
    if not report.pages_read or report.elapsed_s <= 0:
        return ""
    return f" ({60 * report.pages_read / report.elapsed_s:.1f} pages/min)"


def _cells(rows: Sequence[DocumentReport], routes: Sequence[Route], report: IngestReport) -> Iterator[str]:
    yield f"{sum(row.page_count for row in rows):,}"
    for route in routes:
        yield shown_count(sum(_pages(row, route) for row in rows))
    if report.failed_pages:
        yield shown_count(sum(row.failed_pages for row in rows))
    yield f"{sum(row.elapsed_s for row in rows):,.1f}"


def _pages(row: DocumentReport, route: Route) -> int:
    return row.pages_by_route.get(route, 0)


def _name(row: DocumentReport) -> str:
    note = "" if row.same_bytes_as is None else f" (same as {printable(row.same_bytes_as)})"
    unfinished = "" if row.is_written else " (not finished)"
    return f"{printable(row.source)}{note}{unfinished}"
