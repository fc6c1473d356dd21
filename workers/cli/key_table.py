"""The keys of the API as a table. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from pipeline.store.api_keys import ApiKeyRecord
from workers.cli.printable import printable
from workers.cli.table_parts import new_table


def print_keys(console: Console, records: Sequence[ApiKeyRecord], now_s: float) -> None:
    table = new_table("Keys of the API (times are UTC)")
    for heading in ("prefix", "name", "cost centre", "scopes"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "prefix")
    for heading in ("a minute", "open", "priority"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("made", "ends", "last used", "state"):
        table.add_column(heading, no_wrap=True)
    for record in records:
        terms = record.terms
        table.add_row(
            record.prefix,
            Text(printable(terms.name)),
            Text(printable(terms.cost_centre)),
            " ".join(terms.scopes),
            _limit(terms.requests_per_min),
            _limit(terms.max_open_documents),
            str(terms.max_priority),
            _minute(record.created_at_s),
            _minute(terms.expires_at_s),
            _minute(record.last_used_at_s),
            _state(record, now_s),
        )
    console.print(table, crop=False)


def _limit(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _minute(at_s: float | None) -> str:
    return "-" if at_s is None else datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def _state(record: ApiKeyRecord, now_s: float) -> Text:
    if record.holds_at(now_s):
        return Text("holds", "green")
    return Text("expired", "yellow") if record.revoked_at_s is None else Text("revoked", "red")
