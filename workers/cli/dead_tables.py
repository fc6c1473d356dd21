"""The tables of ``doctriage dead``. Import this inside a command, never at start."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.document import MediaType
from models.tables import LedgerKind
from models.transcription import Attempt
from pipeline.store import BookedEntry, DeadPage, PageEvidence
from workers.cli.chargeback_tables import UNPRICED, shown_amount
from workers.cli.measures import at_words
from workers.cli.printable import printable
from workers.cli.table_parts import ROWS_SHOWN, new_table, plural, shown_count
from workers.dead_pages import DeadPageRecord, Retried

ID_DIGITS_SHOWN: Final = 12
KIND_WORDS: Final[Mapping[LedgerKind, str]] = {
    LedgerKind.CPU_PAGE: "CPU",
    LedgerKind.VLM_CALL: "VLM",
    LedgerKind.CACHE_HIT: "earlier run",
    LedgerKind.REVERSAL: "taken back",
}


def print_dead_pages(console: Console, pages: Sequence[DeadPage]) -> None:
    console.print(dead_pages_table(pages))
    console.print()
    first = pages[0]
    console.print(
        Text(f"`doctriage dead show {_named(first)}` says what is on record about the first of them")
    )
    console.print(
        Text("`doctriage dead retry DOCUMENT PAGE`, or with --submission N or --all, reads them again")
    )


def dead_pages_table(pages: Sequence[DeadPage]) -> Table:
    table = new_table(f"{plural(len(pages), 'page')} failed")
    table.add_column("sub-\nmission", justify="right", no_wrap=True)
    table.add_column("document", overflow="fold", min_width=12)
    table.add_column("page", justify="right", no_wrap=True)
    table.add_column("code", style="red", overflow="fold")
    table.add_column("attempts", justify="right", no_wrap=True)
    table.add_column("workers\nlost", justify="right", no_wrap=True)
    table.add_column("failed (UTC)", no_wrap=True)
    for page in pages[:ROWS_SHOWN]:
        table.add_row(
            str(page.submission_id),
            Text(printable(page.source_name)),
            f"{page.page_number:,}",
            Text(page.code),
            shown_count(page.attempts),
            shown_count(page.losses),
            "" if page.settled_at_s is None else at_words(page.settled_at_s),
        )
    if len(pages) > ROWS_SHOWN:
        table.add_row("", Text(f"{len(pages) - ROWS_SHOWN:,} more; --submission N has fewer"))
    return table


def print_evidence(console: Console, record: DeadPageRecord) -> None:
    for line in _facts(record):
        console.print(Text(line))
    console.print()
    if record.evidence.entries:
        console.print(attempts_table(record.evidence))
        console.print()
    for line in _next_lines(record):
        console.print(Text(line))


def attempts_table(evidence: PageEvidence) -> Table:
    """What the ledger booked about the page, each call with what the VLM's service said or why its answer was no
    good."""
    calls = {call.attempt: call for call in evidence.calls}
    table = new_table("Attempts")
    table.add_column("booked (UTC)", no_wrap=True)
    table.add_column("on", no_wrap=True)
    table.add_column("no.", justify="right", no_wrap=True)
    table.add_column("outcome", overflow="fold")
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("details", overflow="fold")
    for booked in evidence.entries:
        is_call = booked.entry.kind is LedgerKind.VLM_CALL
        call = calls.get(booked.entry.attempt or 0) if is_call else None
        table.add_row(*_attempt_row(booked, call))
    return table


def question_before(pages: Sequence[DeadPage]) -> str:
    submissions = {page.submission_id for page in pages}
    return f"read {plural(len(pages), 'page')} of {plural(len(submissions), 'submission')} again?"


def retried_lines(retried: Retried) -> Iterator[str]:
    if retried.pages:
        where = " and ".join(f"{number}" for number in retried.submissions)
        noun = "submission" if len(retried.submissions) == 1 else "submissions"
        yield (
            f"{plural(len(retried.pages), 'page')} will be read again for {noun} {where}; "
            "the outputs are written again when all are done"
        )
    if retried.broker_problem is not None:
        yield f"no ticket was sent ({printable(retried.broker_problem)}); `doctriage beat` sends it once it can"
    if retried.refused:
        stays = "left as it is" if len(retried.refused) == 1 else "left as they are"
        yield (
            f"{plural(len(retried.refused), 'page')} {stays}: the submission was cancelled, or somebody else was "
            "faster; submit the document anew"
        )


def _named(page: DeadPage) -> str:
    return f"{page.document_id[:ID_DIGITS_SHOWN]} {page.page_number}"


def _facts(record: DeadPageRecord) -> Iterator[str]:
    page, evidence, document = record.page, record.evidence, record.document
    yield f"{printable(page.source_name)}, page {page.page_number}, submission {page.submission_id}"
    yield f"failed: {evidence.error_code or page.code}: {printable(evidence.error_message or page.message)}"
    if page.settled_at_s is not None:
        yield f"at: {datetime.fromtimestamp(page.settled_at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield f"attempts: {evidence.attempts}; workers lost over it: {evidence.losses}"
    size = "" if document is None else f" ({_media_name(document.media_type)}, {document.byte_count:,} bytes)"
    yield f"document: {page.document_id}{size}"
    yield f"its bytes: {printable(record.blob_place)}"


def _next_lines(record: DeadPageRecord) -> Iterator[str]:
    page, document = record.page, record.document
    is_pdf_here = document is not None and document.media_type is MediaType.PDF
    if is_pdf_here and record.blob_place.startswith("/"):
        place = shlex.quote(printable(record.blob_place))
        number = page.page_number
        yield f"`pdftoppm -r 100 -png -f {number} -l {number} {place} page` draws the page"
    yield f"`doctriage chargeback explain {page.document_id[:ID_DIGITS_SHOWN]} --page {page.page_number}` has the costs"
    yield f"`doctriage dead retry {_named(page)}` reads it again"


def _attempt_row(booked: BookedEntry, call: Attempt | None) -> tuple[str | Text, ...]:
    entry = booked.entry
    elapsed_s = entry.cpu_s if call is None else call.elapsed_s
    tokens = entry.prompt_tokens + entry.completion_tokens
    style = "" if not entry.is_wasted else "red"
    return (
        f"{entry.booked_at:%Y-%m-%d %H:%M:%S}",
        KIND_WORDS[entry.kind],
        "" if entry.attempt is None else str(entry.attempt),
        Text(printable(entry.outcome).replace("_", " "), style),
        "" if elapsed_s is None else f"{elapsed_s:,.1f}",
        shown_count(tokens),
        UNPRICED if entry.cost_micro is None else f"{shown_amount(entry.cost_micro)} {entry.prices.currency}",
        Text(_call_words(call)),
    )


def _call_words(call: Attempt | None) -> str:
    if call is None:
        return ""
    numbers = ", ".join(f"{one.name} {one.measured:.4g}, limit {one.limit:.4g}" for one in call.evidence)
    size = f"{call.model_id}, {call.tier}, {call.width_px} x {call.height_px} px"
    return printable("; ".join(part for part in (size, numbers, call.message) if part))


def _media_name(media_type: MediaType) -> str:
    return media_type.value.rpartition("/")[2].upper()
