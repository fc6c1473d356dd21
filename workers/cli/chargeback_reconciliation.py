"""How the ledger and the counters of the VLM's service compare, as a table. Import this inside a command."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from pipeline.chargeback.reconciliation import ModelDifference, Reconciliation
from workers.cli.chargeback_tables import signed
from workers.cli.printable import printable
from workers.cli.table_parts import new_table


def reconciliation_table(reconciliation: Reconciliation, tolerance_tokens: int) -> Table:
    table = new_table("Tokens")
    table.add_column("model", overflow="fold")
    table.add_column("")
    for heading in ("counted", "booked", "difference"):
        table.add_column(heading, justify="right")
    for model in reconciliation.models:
        style = "green" if model.is_within(tolerance_tokens) else "bold red"
        for kind, counted, booked, difference in _token_rows(model):
            name = printable(model.model_id) if kind == "prompt" else ""
            table.add_row(
                Text(name), kind, f"{counted:,}", f"{booked:,}", Text(signed(difference), style=style)
            )
    return table


def _token_rows(model: ModelDifference) -> Iterator[tuple[str, int, int, int]]:
    yield "prompt", model.counted_prompt_tokens, model.booked.prompt_tokens, model.prompt_tokens
    yield (
        "completion",
        model.counted_completion_tokens,
        model.booked.completion_tokens,
        model.completion_tokens,
    )


def window_words(reconciliation: Reconciliation) -> str:
    """When the counters were read, and where."""
    since, until = reconciliation.since, reconciliation.until
    moments = (f"{datetime.fromtimestamp(one.read_at_s, UTC):%Y-%m-%d %H:%M:%S}" for one in (since, until))
    elsewhere = "" if since.url == until.url else f"; the first reading is of {printable(since.url)}"
    return f"{printable(until.url)}, from {' to '.join(moments)} (UTC){elsewhere}"


def verdict(reconciliation: Reconciliation, tolerance_tokens: int) -> str:
    if reconciliation.is_within(tolerance_tokens):
        tolerated = f", to {tolerance_tokens:,} tokens" if tolerance_tokens else ", to the token"
        return f"the ledger and the service agree{tolerated}"
    return "the ledger and the service differ. What may explain it:"
