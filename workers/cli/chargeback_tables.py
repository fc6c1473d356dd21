"""The tables of ``doctriage chargeback``. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from rich.table import Table
from rich.text import Text

from pipeline.chargeback.amounts import MONEY_DECIMALS, amount_text
from pipeline.chargeback.statement import Bill, Statement, sorted_names
from pipeline.chargeback.statement_lines import StatementBy
from workers.cli.printable import printable
from workers.cli.table_parts import ROWS_SHOWN, new_table, plural, shown_count
from workers.signal_words import signal_in_words

UNPRICED: Final = "unpriced"
ID_DIGITS_SHOWN: Final = 8

WITHOUT_KEY: Final[Mapping[StatementBy, str]] = {
    StatementBy.PROJECT: "no project",
    StatementBy.MODEL: "no model (CPU)",
    StatementBy.REASON: "no reason",
}


@dataclass(frozen=True, slots=True)
class _Column:
    """``is_shown``: always, or only where a line has such a thing."""

    heading: str
    cell: Callable[[Bill], str]
    style: str = ""
    is_shown: Callable[[Bill], object] = lambda bill: True


def _count(name: str) -> Callable[[Bill], str]:
    return lambda bill: shown_count(getattr(bill, name))


def _has(name: str) -> Callable[[Bill], object]:
    return lambda bill: getattr(bill, name)


BILL: Final = (
    _Column("pages", _count("pages")),
    _Column("VLM\npages", _count("vlm_pages")),
    _Column("from an\nearlier run", _count("cached_pages"), is_shown=_has("cached_pages")),
    _Column("CPU\nattempts", _count("cpu_attempts")),
    _Column("CPU\nseconds", lambda bill: f"{bill.cpu_s:,.1f}"),
    _Column("VLM\ncalls", _count("vlm_calls")),
    _Column("without\na price", _count("unpriced_entries"), "yellow", _has("unpriced_entries")),
    _Column("cost", lambda bill: shown_amount(bill.known_cost_micro), "bold"),
)

TOKENS: Final = (
    _Column("prompt", _count("prompt_tokens")),
    _Column("of them\ncached", _count("cached_tokens"), is_shown=_has("cached_tokens")),
    _Column("completion", _count("completion_tokens")),
    _Column("of them\nreasoning", _count("reasoning_tokens"), is_shown=_has("reasoning_tokens")),
    _Column("prompt,\npredicted", _count("predicted_prompt_tokens")),
    _Column("and\nbilled", _count("billed_prompt_tokens")),
    _Column("difference", lambda bill: _difference(bill)),
)
"""Predicted and billed are of the calls for which the server said what it billed."""

SAVINGS: Final = (
    _Column("tokens\navoided", _count("avoided_tokens"), "green"),
    _Column("cost\navoided", lambda bill: shown_amount(bill.known_avoided_micro), "green"),
    _Column("attempts\nwasted", _count("wasted_attempts"), "red"),
    _Column("tokens\nwasted", _count("wasted_tokens"), "red"),
    _Column("cost\nwasted", lambda bill: shown_amount(bill.known_wasted_micro), "red"),
)


def statement_tables(statement: Statement, names: Mapping[str, str]) -> Iterator[Table]:
    """``names`` are those of documents, by id."""
    yield _statement_table("Bill", BILL, statement, names)
    yield _statement_table("Tokens", TOKENS, statement, names)
    yield _statement_table("Avoided by triage, and wasted", SAVINGS, statement, names)


def notes(statement: Statement) -> Iterator[str]:
    """What has to be known beside the table."""
    for total in statement.totals:
        if total.forced is not None:
            share = "" if total.forced_share is None else f" ({total.forced_share:.1%} of the cost)"
            yield (
                f"forced VLM: {plural(total.forced.vlm_calls, 'call')}, {shown_amount(total.forced.known_cost_micro)} "
                f"{total.currency}{share}"
            )
    if statement.unpriced:
        yield unpriced_note(statement.unpriced)
    if statement.open_calls.calls:
        most = statement.open_calls.reserved_tokens
        up_to = f", up to {most:,} tokens" if most else ""
        yield f"open: {plural(statement.open_calls.calls, 'call')} to the VLM{up_to}; booked when they end"


def unpriced_note(entries: Mapping[str | None, int]) -> str:
    """``entries`` without a price, by model; None is the CPU."""
    named = ", ".join(
        f"{'CPU' if model is None else printable(model)} {count:,}"
        for model, count in sorted_names(entries)
        if count
    )
    return f"entries without a price, in no cost: {named}; `doctriage prices show` lists what has one"


def _statement_table(
    title: str, columns: Sequence[_Column], statement: Statement, names: Mapping[str, str]
) -> Table:
    totals = [total.bill for total in statement.totals]
    shown = [column for column in columns if any(column.is_shown(bill) for bill in totals)]
    table = new_table(title)
    table.add_column(statement.by.value.replace("-", " "), overflow="fold", min_width=12)
    table.add_column("", no_wrap=True)
    for column in shown:
        table.add_column(column.heading, justify="right", style=column.style, no_wrap=True)
    for line in statement.lines[:ROWS_SHOWN]:
        forced = Text(", forced VLM", style="yellow") if line.is_forced_vlm else Text("")
        name = Text(_key_words(line.key, statement.by, names)).append_text(forced)
        table.add_row(name, line.currency, *(column.cell(line.bill) for column in shown))
    table.add_section()
    for total in statement.totals:
        cells = (column.cell(total.bill) for column in shown)
        table.add_row(Text(_total_words(statement)), total.currency, *cells, style="bold")
    return table


def _key_words(key: str | None, by: StatementBy, names: Mapping[str, str]) -> str:
    if key is None:
        return WITHOUT_KEY.get(by, "-")
    if by is StatementBy.DOCUMENT:
        name = names.get(key)
        return key[:ID_DIGITS_SHOWN] if name is None else f"{printable(name)} ({key[:ID_DIGITS_SHOWN]})"
    return signal_in_words(key) if by is StatementBy.REASON else printable(key)


def _total_words(statement: Statement) -> str:
    hidden = len(statement.lines) - ROWS_SHOWN
    return f"all, with {hidden:,} lines not shown" if hidden > 0 else "all"


def shown_amount(micro: int | None) -> str:
    """As a column shows it: six decimals, all of them."""
    return UNPRICED if micro is None else f"{Decimal(amount_text(micro, MONEY_DECIMALS)):,.6f}"


def _difference(bill: Bill) -> str:
    if bill.prediction_error is None:
        return "-"
    return (
        f"{signed(bill.billed_prompt_tokens - bill.predicted_prompt_tokens)} ({bill.prediction_error:+.1%})"
    )


def signed(number: int) -> str:
    return f"{number:+,}" if number else "0"
