"""``doctriage chargeback reverse``: an entry of the ledger, taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.printable import printable

if TYPE_CHECKING:
    from workers.ledger_corrections import TakenBack

GREATEST_ENTRY_ID = 2**63 - 1
"""That a database has room for."""


def reverse_command(
    entry_id: Annotated[
        int,
        typer.Argument(
            metavar="ENTRY_ID",
            min=1,
            max=GREATEST_ENTRY_ID,
            help="The entry's number, as `doctriage chargeback explain` shows it.",
        ),
    ],
) -> None:
    """Take an entry back: another one with the opposite sign is booked, and what it spent of a budget is free again. No
    entry is changed, and what is taken back stays so."""
    from pipeline.settings import load_settings
    from workers.ledger_corrections import reverse_entry

    for line in _lines(reverse_entry(load_settings(), entry_id)):
        typer.echo(printable(line))


def _lines(taken: TakenBack) -> list[str]:
    from models.tables import LedgerKind
    from workers.cli.chargeback_tables import shown_amount

    entry = taken.entry
    page = "" if entry.page_number is None else f", page {entry.page_number}"
    kind = entry.kind.value.replace("_", " ").replace("vlm", "VLM").replace("cpu", "CPU")
    what = f"{kind} about {taken.source}{page}"
    tokens = f"{entry.prompt_tokens:,} prompt and {entry.completion_tokens:,} completion tokens"
    unit = "" if entry.cost_micro is None else f" {entry.prices.currency}"
    lines = [
        f"entry {taken.entry_id} is taken back by entry {taken.reversal_id}: {what}",
        f"less for {entry.payer.cost_centre}: {tokens}, {shown_amount(entry.cost_micro)}{unit}",
    ]
    if entry.kind is LedgerKind.VLM_CALL:
        lines.append("`doctriage budget show` has what that leaves of its budget")
    return lines
