"""What ``doctriage purge`` erases and leaves. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from workers.cli.printable import printable
from workers.cli.table_parts import new_table, shown_count
from workers.purging import ErasedDocument

ID_DIGITS: Final = 12


def print_erased(console: Console, documents: Sequence[ErasedDocument], *, title: str) -> None:
    table = new_table(title)
    table.add_column("document", overflow="fold")
    table.add_column("id")
    for heading in ("bytes", "names", "pages", "outputs", "calls emptied", "ledger rows kept"):
        table.add_column(heading, justify="right")
    for one in documents:
        held = one.held
        counts = (one.byte_count or 0, held.sources, held.pages, one.outputs, held.calls, held.ledger_entries)
        table.add_row(
            Text(printable(one.reference)),
            held.document_id[:ID_DIGITS],
            *(shown_count(count) for count in counts),
        )
    console.print(table)


def print_left_over(console: Console, documents: Sequence[ErasedDocument]) -> None:
    """What only the user can erase."""
    folders = sorted({folder for one in documents for folder in one.held.out_dirs})
    if folders:
        console.print(Text("outputs were written here too; those files are yours to delete:"))
        for folder in folders:
            console.print(Text(f"  {printable(folder)}"))
    watched = sorted({pair for one in documents for pair in one.held.watched})
    if watched:
        console.print(Text("files that are still in a watched folder are read again; delete them too:"))
        for folder, name in watched:
            console.print(Text(f"  {printable(name)} in {printable(folder)}"))
