"""The tables of a quote. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.page import Route
from pipeline.chargeback.call_estimate import Estimate
from pipeline.chargeback.quote import Quote, QuotedDocument
from pipeline.chargeback.quote_pages import Way
from pipeline.chargeback.quote_sums import CALLED_AGAIN_ONE_IN, FAILED, Totals
from pipeline.chargeback.sample_size import CONFIDENCE_PERCENT
from workers.cli.chargeback_tables import UNPRICED, shown_amount
from workers.cli.printable import printable
from workers.cli.progress import ROUTE_NAMES
from workers.cli.table_parts import ROWS_SHOWN, new_table, not_read_table, plural, shown_count

WAY_NAMES: Final = {
    Way.TRIAGED: "as triage decides",
    Way.ALL_VLM: "every page to the VLM",
    Way.ALL_CPU: "on the CPU alone",
}
NAMES: Final = {**{route.value: name for route, name in ROUTE_NAMES.items()}, FAILED: "failed"}


def print_quote(console: Console, quote: Quote) -> None:
    for table in _tables(quote):
        console.print(table)
        console.print()
    for line in closing_lines(quote):
        console.print(Text(line))


def _tables(quote: Quote) -> Iterator[Table]:
    if quote.documents:
        yield documents_table(quote)
    if quote.refusals:
        yield not_read_table(quote.refusals, all_of_them="--json has them all")
    if quote.documents:
        yield costs_table(quote)


def documents_table(quote: Quote) -> Table:
    """A row a document: its pages by route (routes nobody takes are left out). Of a sample, those that were read, with
    all pages of all documents in the last row."""
    routes = [name for name, pages in quote.pages_by_route.items() if pages.high]
    is_sample = quote.sampled_pages is not None
    table = new_table("Pages")
    table.add_column("document", overflow="fold", min_width=12)
    table.add_column("pages", justify="right")
    if is_sample:
        table.add_column("read", justify="right")
    for name in routes:
        table.add_column(NAMES[name].replace(" ", "\n"), justify="right", style=_style(name))
    table.add_column("visual\ntokens", justify="right")
    for document in quote.documents[:ROWS_SHOWN]:
        table.add_row(Text(_name(document)), *_cells([document], routes, is_sample=is_sample))
    rest = quote.documents[ROWS_SHOWN:]
    if rest:
        table.add_row(Text(f"{len(rest)} more"), *_cells(rest, routes, is_sample=is_sample))
    table.add_section()
    table.add_row(Text(plural(len(quote.documents), "document")), *_total_cells(quote, routes), style="bold")
    return table


def _cells(documents: Sequence[QuotedDocument], routes: Sequence[str], *, is_sample: bool) -> Iterator[str]:
    pages = [page for document in documents for page in document.pages]
    yield f"{sum(document.page_count for document in documents):,}"
    if is_sample:
        yield shown_count(len(pages))
    for name in routes:
        yield shown_count(sum((FAILED if page.route is None else page.route.value) == name for page in pages))
    tokens = (page.call.visual_tokens for page in pages if page.call is not None and page.is_due)
    yield shown_count(sum(tokens))


def _total_cells(quote: Quote, routes: Sequence[str]) -> Iterator[str]:
    yield f"{quote.page_count:,}"
    if quote.sampled_pages is not None:
        yield f"{sum(len(document.pages) for document in quote.documents):,}"
    for name in routes:
        yield shown_range(quote.pages_by_route[name], shown_count, apart="\n")
    yield shown_range(quote.ways[Way.TRIAGED].visual_tokens, shown_count, apart="\n")


def costs_table(quote: Quote) -> Table:
    """A column for each way to read the pages."""
    currency = quote.terms.prices.currency
    ways = list(quote.ways.values())
    table = new_table("What reading them costs")
    table.add_column("", overflow="fold")
    for way in quote.ways:
        table.add_column(WAY_NAMES[way], justify="right", style="green" if way is Way.TRIAGED else "")
    for heading, count_of in COUNTS:
        table.add_row(heading, *(shown_range(count_of(totals), shown_count) for totals in ways))
    table.add_section()
    for heading, cost_of, units_of, style in COSTS:
        cells = (shown_range(cost_of(totals), shown_amount) if units_of(totals) else "-" for totals in ways)
        table.add_row(f"{heading}, {currency}", *cells, style=style)
    return table


COUNTS: Final[Sequence[tuple[str, Callable[[Totals], Estimate]]]] = (
    ("pages read on the CPU", lambda totals: totals.cpu_pages),
    ("pages sent to the VLM", lambda totals: totals.calls),
    ("visual tokens", lambda totals: totals.visual_tokens),
    ("prompt tokens", lambda totals: totals.prompt_tokens),
    ("completion tokens", lambda totals: totals.completion_tokens),
)
COSTS: Final[Sequence[tuple[str, Callable[[Totals], Estimate | None], Callable[[Totals], object], str]]] = (
    ("CPU", lambda totals: totals.cpu_micro, lambda totals: totals.cpu_pages.high, ""),
    ("VLM", lambda totals: totals.vlm_micro, lambda totals: totals.calls.high, ""),
    ("total", lambda totals: totals.total_micro, lambda totals: True, "bold"),
)
"""A heading, what it costs, and whether there is anything that it is for."""


def closing_lines(quote: Quote) -> Iterator[str]:
    terms = quote.terms
    prices = f"price book {terms.prices.book_version}, {terms.when.date()} (UTC)"
    yield f"{_cost_in_words(quote)} for {printable(terms.cost_centre)}, by {printable(terms.model_id)}; {prices}"
    if quote.sampled_pages is not None:
        yield (
            f"a sample of {quote.sampled_pages:,} of {plural(quote.page_count, 'page')}: what the others come to is "
            f"within its range {CONFIDENCE_PERCENT} times in 100"
        )
    if not quote.ways[Way.TRIAGED].completion_tokens.is_exact:
        again = f"one page in {CALLED_AGAIN_ONE_IN} called twice"
        yield f"answers are not written yet: the ranges are from short ones to as long as they may be, and {again}"
    saving = _saving(quote)
    if saving is not None:
        yield saving
    read_before = sum(page.was_read for document in quote.documents for page in document.pages)
    if read_before:
        yield f"{plural(read_before, 'page')} read by an earlier run cost nothing again on the CPU"
    yield "what was read is kept: an ingest with the same options and cost centre goes on from here"


def _cost_in_words(quote: Quote) -> str:
    """``about 3.2 USD, between 2.9 and 4.1``"""
    cost = quote.ways[Way.TRIAGED].total_micro
    if cost is None:
        return UNPRICED
    currency = quote.terms.prices.currency
    if cost.is_exact:
        return f"{shown_amount(cost.about)} {currency}"
    low, high = shown_amount(cost.low), shown_amount(cost.high)
    return f"about {shown_amount(cost.about)} {currency}, between {low} and {high},"


def _saving(quote: Quote) -> str | None:
    triaged, all_vlm = (quote.ways[way].total_micro for way in (Way.TRIAGED, Way.ALL_VLM))
    if triaged is None or all_vlm is None or not all_vlm.about:
        return None
    share = 1 - Decimal(triaged.about) / all_vlm.about
    return f"{share:.0%} less than every page to the VLM" if triaged.about < all_vlm.about else None


def shown_range(estimate: Estimate | None, shown: Callable[[int], str], *, apart: str = " ") -> str:
    """``about 12 (8 – 17)``, or the number alone where it is known."""
    if estimate is None:
        return UNPRICED
    if estimate.is_exact:
        return shown(estimate.about)
    return f"about {shown(estimate.about)}{apart}({shown(estimate.low)} – {shown(estimate.high)})"


def _name(document: QuotedDocument) -> str:
    first, *others = map(printable, document.sources)
    return f"{first} (and {len(others):,} with the same bytes)" if others else first


def _style(name: str) -> str:
    return {Route.VLM.value: "cyan", Route.OCR_DEGRADED.value: "yellow", FAILED: "red"}.get(name, "")
