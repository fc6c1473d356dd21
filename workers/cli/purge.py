"""``doctriage purge``: documents are erased everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.asking import can_be_asked
from workers.cli.printable import printable

if TYPE_CHECKING:
    from workers.purging import ErasedDocument


def purge_command(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT…",
            help="A source's name, the file itself, or 8 digits or more of its document's id.",
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be erased, and erase nothing.")
    ] = False,
) -> None:
    """Erase documents: our copies of them, their names, pages, outputs, errors and passwords.

    What was paid for them stays in the ledger. Files in folders given with --out are yours to delete.
    """
    from pipeline.settings import load_settings
    from workers.cli.purge_tables import print_erased, print_left_over
    from workers.cli.terminal import open_console
    from workers.purging import opened_purge

    console = open_console()
    with opened_purge(load_settings()) as purge:
        found = purge.find(documents)
        if dry_run or not yes:
            print_erased(console, found, title="Would be erased")
        if dry_run:
            print_left_over(console, found)
            return
        if not yes:
            _require_consent(found)
        erased = purge.erase(found)
        is_gone = purge.end()
    print_erased(console, erased, title="Erased")
    print_left_over(console, erased)
    if not is_gone:
        typer.echo(
            "another program has the database open, and its log still holds what was erased; it is gone once "
            "no program has it open",
            err=True,
        )
        raise typer.Exit(1)


def _require_consent(found: Sequence[ErasedDocument]) -> None:
    from models.errors import SettingsError

    if not can_be_asked():
        raise SettingsError("nobody can be asked here whether to erase; say --yes")
    names = ", ".join(printable(one.reference) for one in found)
    typer.confirm(f"erase {names} for ever?", abort=True)
