"""What the ledger says of one page, as a table. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from models.tables import LedgerKind
from pipeline.chargeback.amounts import EXACT_COST_DECIMALS, TOKEN_PRICE_DECIMALS, amount_text
from pipeline.chargeback.charges import Charge, ChargeKind, Quantities, charges_of
from pipeline.chargeback.entries import LedgerEntry
from pipeline.store.ledger import BookedEntry
from workers.cli.chargeback_tables import UNPRICED, shown_amount
from workers.cli.printable import printable
from workers.cli.table_parts import new_table

INDENT: Final = (0, 0, 0, 2)
FURTHER_INDENT: Final = (0, 0, 0, 4)

CHARGE_WORDS: Final[Mapping[ChargeKind, str]] = {
    ChargeKind.CPU_PAGES: "page on the CPU",
    ChargeKind.CACHED_PAGES: "pages of an earlier run",
    ChargeKind.PROMPT_TOKENS: "prompt tokens",
    ChargeKind.CACHED_PROMPT_TOKENS: "cached prompt tokens",
    ChargeKind.COMPLETION_TOKENS: "completion tokens",
}


def entries_table(entries: Sequence[BookedEntry]) -> Table:
    """Lines of each entry: what it is and what it was rounded to, then its charges with quantity, price and product."""
    table = new_table("Entries")
    table.add_column("entry, booked (UTC), cost centre", overflow="fold")
    table.add_column("quantity", justify="right", no_wrap=True)
    table.add_column("price for\na million", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    for booked in entries:
        _add_entry(table, booked)
    return table


def entry_totals(entries: Sequence[BookedEntry]) -> Iterator[str]:
    """A line for each currency."""
    for currency in sorted({booked.entry.prices.currency for booked in entries}):
        same = [booked.entry for booked in entries if booked.entry.prices.currency == currency]
        costs = [entry.cost_micro for entry in same if entry.cost_micro is not None]
        missing = len(same) - len(costs)
        unpriced = f"; {missing:,} without a price" if missing else ""
        yield f"together: {shown_amount(sum(costs) if costs else None)} {currency}{unpriced}"


def _add_entry(table: Table, booked: BookedEntry) -> None:
    entry = booked.entry
    currency = entry.prices.currency
    cost = UNPRICED if entry.cost_micro is None else f"{shown_amount(entry.cost_micro)} {currency}"
    style = "bold magenta" if entry.kind is LedgerKind.REVERSAL else "bold"
    table.add_row(Text(_title(booked)), "", "", "", style=style)
    table.add_row(Padding(Text(_words(entry)), INDENT), "", "", cost, style=style)
    for charge in _charges(entry):
        what = Padding(Text(CHARGE_WORDS[charge.kind]), FURTHER_INDENT)
        table.add_row(what, f"{charge.quantity:,}", _price(charge), _exact(charge))
    if entry.avoided_tokens:
        words = f"kept from the VLM, with its transcript {shown_amount(entry.avoided_micro)} {currency}"
        what = Padding(Text(words, style="green"), FURTHER_INDENT)
        table.add_row(what, f"{entry.avoided_tokens:,}", "", "")
    table.add_section()


def _title(booked: BookedEntry) -> str:
    entry = booked.entry
    return f"{booked.entry_id}  {entry.booked_at:%Y-%m-%d %H:%M:%S}  {printable(entry.payer.cost_centre)}"


def _words(entry: LedgerEntry) -> str:
    attempt = "" if entry.attempt is None else f" {entry.attempt}"
    what = {
        LedgerKind.CPU_PAGE: f"CPU attempt{attempt}: {entry.outcome.replace('_', ' ')}",
        LedgerKind.VLM_CALL: f"VLM call{attempt}: {entry.outcome.replace('_', ' ')}",
        LedgerKind.CACHE_HIT: "taken from an earlier run",
        LedgerKind.REVERSAL: f"takes back entry {entry.reverses_entry_id}",
    }
    return ", ".join((what[entry.kind], *_remarks(entry)))


def _remarks(entry: LedgerEntry) -> Iterator[str]:
    if entry.model_id is not None:
        yield printable(entry.model_id)
        if entry.is_forced:
            yield "forced"
    if entry.is_audit:
        yield "audit"
    if entry.is_wasted:
        yield "wasted"
    if entry.usage_is_estimated:
        yield "tokens estimated"
    if entry.predicted_prompt_tokens:
        yield f"{entry.predicted_prompt_tokens:,} prompt tokens predicted"
    if entry.reasoning_tokens:
        yield f"{entry.reasoning_tokens:,} tokens of reasoning"
    if entry.cpu_s is not None:
        yield f"{entry.cpu_s:,.1f} CPU s"


def _charges(entry: LedgerEntry) -> tuple[Charge, ...]:
    quantities = Quantities(
        cpu_pages=entry.cpu_pages,
        cached_pages=entry.cached_pages,
        prompt_tokens=entry.prompt_tokens,
        cached_tokens=entry.cached_tokens,
        completion_tokens=entry.completion_tokens,
    )
    return charges_of(quantities, entry.prices)


def _price(charge: Charge) -> str:
    if charge.micro_per_million is None:
        return UNPRICED
    return f"× {Decimal(amount_text(charge.micro_per_million, TOKEN_PRICE_DECIMALS)):,.6f}"


def _exact(charge: Charge) -> str:
    return "" if charge.exact_cost is None else f"= {amount_text(charge.exact_cost, EXACT_COST_DECIMALS)}"
