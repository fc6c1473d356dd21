"""What the tables of all commands are made of. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from rich import box
from rich.table import Table
from rich.text import Text

from workers.cli.printable import printable

ROWS_SHOWN: Final = 50
"""Rows of a table; the files that a command writes have all of them."""


class Refused(Protocol):
    @property
    def source(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...


def new_table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )


def not_read_table(refusals: Sequence[Refused], *, all_of_them: str) -> Table:
    """``all_of_them`` says where those are that have no room here."""
    table = new_table("Not read")
    table.add_column("source", overflow="fold")
    table.add_column("code", style="red", overflow="fold")
    table.add_column("message", overflow="fold")
    for row in refusals[:ROWS_SHOWN]:
        table.add_row(Text(printable(row.source)), Text(row.code), Text(printable(row.message)))
    if len(refusals) > ROWS_SHOWN:
        table.add_row(Text(f"{len(refusals) - ROWS_SHOWN} more"), "", Text(all_of_them))
    return table


def shown_count(number: int) -> str:
    return f"{number:,}" if number else "-"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
