"""A quote and the bill side by side. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.chargeback.quote_comparison import Compared, Comparison, DifferingPage
from pipeline.chargeback.saved_quote import SavedQuote
from workers.cli.chargeback_tables import UNPRICED, shown_amount
from workers.cli.printable import printable
from workers.cli.quote_tables import NAMES, shown_range
from workers.cli.table_parts import ROWS_SHOWN, new_table, plural, shown_count
from workers.events import DocumentReport

PAGES_NAMED: Final = 20
DOCUMENTS_NAMED: Final = 3
HEADINGS: Final = {
    **NAMES,
    "cpu_pages": "read on the CPU",
    "calls": "sent to the VLM",
    "visual_tokens": "visual tokens, first calls",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "cpu_micro": "CPU",
    "vlm_micro": "VLM",
    "total_micro": "total",
}


def documents_apart(quote: SavedQuote, documents: Sequence[DocumentReport]) -> Iterator[str]:
    """A line each about documents of a run that are not in the quote, and those of the quote that are not in the run:
    what is compared is the bill of the quote's documents."""
    quoted_ids = {document.document_id for document in quote.documents}
    run_ids = {document.document_id for document in documents}
    firsts = [one for one in documents if one.same_bytes_as is None]
    unquoted = [one.source for one in firsts if one.document_id not in quoted_ids]
    elsewhere = [one for one in quote.documents if one.document_id not in run_ids]
    if unquoted:
        yield (
            f"{_not_in(unquoted, 'of this run', 'the quote')}; what follows is about the quote's documents "
            "alone"
        )
    if elsewhere:
        names = [one.sources[0] if one.sources else one.document_id for one in elsewhere]
        yield f"{_not_in(names, 'of the quote', 'this run')}; what other runs were billed for them is in the table"


def _not_in(names: Sequence[str], whose: str, where: str) -> str:
    """Such as ``2 documents of this run are not in the quote: a.pdf, b.pdf``."""
    named = ", ".join(printable(name) for name in names[:DOCUMENTS_NAMED])
    more = len(names) - DOCUMENTS_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{plural(len(names), 'document')} {whose} {verb} not in {where}: {named}{rest}"


def print_comparison(console: Console, comparison: Comparison) -> None:
    if not comparison.entries:
        console.print(Text(_nothing_billed(comparison)))
        return
    console.print(comparison_table(comparison))
    console.print()
    if comparison.differing:
        console.print(differing_table(comparison.differing))
        console.print()
    for line in closing_lines(comparison):
        console.print(Text(line))


def comparison_table(comparison: Comparison) -> Table:
    table = new_table("Quoted and billed")
    table.add_column("", overflow="fold")
    for heading in ("quoted", "billed", "difference"):
        table.add_column(heading, justify="right")
    table.add_column("")
    shown = {name: one for name, one in comparison.pages.items() if one.billed or _is_quoted(one)}
    _add_rows(table, shown, shown_count)
    table.add_section()
    _add_rows(table, comparison.tokens, shown_count)
    table.add_section()
    _add_rows(table, comparison.costs, shown_amount, unit=f", {comparison.quote.currency}")
    return table


def _is_quoted(compared: Compared) -> bool:
    return compared.quoted is not None and compared.quoted.high > 0


def _add_rows(
    table: Table, rows: Mapping[str, Compared], shown: Callable[[int], str], *, unit: str = ""
) -> None:
    for name, compared in rows.items():
        billed = UNPRICED if compared.billed is None else shown(compared.billed)
        place, style = _place(compared)
        table.add_row(
            f"{HEADINGS[name]}{unit}",
            shown_range(compared.quoted, shown),
            billed,
            _difference(compared),
            Text(place, style=style),
        )


def _difference(compared: Compared) -> str:
    difference = compared.difference
    if difference is None:
        return ""
    return f"{difference:+.1%}" if difference else "-"


def _place(compared: Compared) -> tuple[str, str]:
    if compared.is_within is None:
        return "", ""
    return ("as quoted", "green") if compared.is_within else ("not as quoted", "yellow")


def differing_table(pages: Sequence[DifferingPage]) -> Table:
    table = new_table("Pages whose first call took other visual tokens than were quoted")
    table.add_column("source", overflow="fold")
    for heading in ("page", "quoted", "billed"):
        table.add_column(heading, justify="right")
    for page in pages[:ROWS_SHOWN]:
        quoted = "not sent" if page.quoted_tokens is None else f"{page.quoted_tokens:,}"
        table.add_row(
            Text(printable(page.source)), str(page.page_number), quoted, f"{page.billed_tokens or 0:,}"
        )
    if len(pages) > ROWS_SHOWN:
        table.add_row(f"{len(pages) - ROWS_SHOWN} more", "", "", "")
    return table


def closing_lines(comparison: Comparison) -> Iterator[str]:
    called = comparison.pages["calls"].billed or 0
    if not comparison.differing and called:
        yield f"{plural(called, 'page')} sent, each first call with the visual tokens that were quoted for it"
    if comparison.calls > called:
        again = plural(comparison.calls - called, "call")
        yield f"{again} made again: their tokens are in the bill"
    if comparison.waiting:
        named = ", ".join(
            f"{printable(one.source)} {one.page_number}" for one in comparison.waiting[:PAGES_NAMED]
        )
        more = len(comparison.waiting) - PAGES_NAMED
        rest = f" and {more:,} more" if more > 0 else ""
        yield f"{plural(len(comparison.waiting), 'page')} quoted for the VLM had no call yet: {named}{rest}"
    if comparison.unpriced:
        yield f"{plural(comparison.unpriced, 'attempt')} unpriced"
    if comparison.elsewhere:
        yield (
            f"{plural(comparison.elsewhere, 'attempt')} booked in another currency than the quote's "
            f"{comparison.quote.currency}, in no cost above"
        )


def _nothing_billed(comparison: Comparison) -> str:
    quote = comparison.quote
    return (
        f"nothing is billed to {printable(quote.cost_centre)} for these documents since the quote of "
        f"{quote.begun_at:%Y-%m-%d %H:%M} (UTC)"
    )
