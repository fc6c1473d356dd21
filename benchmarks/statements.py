"""How long does a month's statement take? ``python -m benchmarks.statements`` books a million entries of one month in
SQLite and in PostgreSQL, states them by team and otherwise, books another million of other months, and states that
month again. It prints seconds, what the other months cost, and how the databases go about it. Some minutes, and 2 GB.

PostgreSQL is the tests' own server, with a cache of 32 MB; it is vacuumed and analysed after each million, as its own
autovacuum would.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from sqlalchemy import String, cast, func, insert, literal, select, text, true

from models.tables import LedgerKind, LedgerRow
from pipeline.chargeback.statement import Statement, statement_of
from pipeline.chargeback.statement_lines import StatementBy
from pipeline.store import Store, open_store
from pipeline.store.statements import StatementStore, prefer_the_index, sums_query
from tests.postgres import running_postgres

MONTH: Final = "2026-11"
FIRST_DAY, END_DAY = "2026-11-01", "2026-12-01"
OTHER_MONTHS: Final = tuple(f"2026-{number:02}" for number in range(1, 11))
SEEDS: Final = 10_000
"""Entries that are made one by one; the others are copies of them."""

DATABASES: Final = ("SQLite", "PostgreSQL")
ROUNDS: Final = 5
LIMIT_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of each round, before the other months were booked and after."""

    database: str
    by: StatementBy
    before_s: tuple[float, ...]
    after_s: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Of the quickest rounds: what else the machine did is least in them."""
        return min(self.after_s) / min(self.before_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A database, and what is done after many rows were added to it."""

    name: str
    store: Store
    settle: Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    measured: list[Measured] = []
    plans: list[tuple[str, str]] = []
    with _contestants() as contestants:
        for contestant in contestants:
            if contestant.name not in options.database:
                continue
            measured += _measure(contestant, options.entries, options.by)
            plans.append((contestant.name, _plan(contestant.store)))
    console.print(_table(measured, options.entries))
    for name, plan in plans:
        console.print(f"\n{name}, by team:\n{plan}", highlight=False, soft_wrap=True)
    slow = [one for one in measured if one.by is StatementBy.TEAM and max(_medians(one)) > LIMIT_S]
    console.print(f"load {os.getloadavg()[0]:.1f} at the end")
    console.print(f"\nby team in under {LIMIT_S:g} s: {'no' if slow else 'yes'}")


def _measure(contestant: Contestant, entries: int, by: Sequence[StatementBy]) -> list[Measured]:
    store = contestant.store
    _book_seeds(store)
    _copy_seeds(store, MONTH, entries // SEEDS - 1)
    contestant.settle()
    before = _timed(store, by, entries)
    for month in OTHER_MONTHS:
        _copy_seeds(store, month, entries // SEEDS // len(OTHER_MONTHS))
    contestant.settle()
    after = _timed(store, by, entries)
    return [
        Measured(database=contestant.name, by=one, before_s=before[one], after_s=after[one]) for one in by
    ]


def _timed(store: Store, by: Sequence[StatementBy], entries: int) -> dict[StatementBy, tuple[float, ...]]:
    """Round by round, so that whatever else the machine does meets all of them. The first round warms up."""
    seconds: dict[StatementBy, list[float]] = {one: [] for one in by}
    for _ in range(ROUNDS + 1):
        for one in by:
            started_s = time.perf_counter()
            statement = _state(store, one)
            seconds[one].append(time.perf_counter() - started_s)
            bills = [total.bill for total in statement.totals]
            booked = sum(bill.cpu_attempts + bill.vlm_calls for bill in bills)
            if booked != entries:
                raise RuntimeError(f"{booked:,} of {entries:,} entries were stated; the measurement is void")
    return {one: tuple(rounds[1:]) for one, rounds in seconds.items()}


def _state(store: Store, by: StatementBy) -> Statement:
    ledger = StatementStore(store.database)
    return statement_of(
        ledger.sums((by,), FIRST_DAY, END_DAY),
        by=by,
        first_day=FIRST_DAY,
        end_day=END_DAY,
        open_calls=ledger.open_calls(0.0),
    )


def _book_seeds(store: Store) -> None:
    chance = random.Random(5)
    with store.database.write() as session:
        session.execute(insert(LedgerRow), [_entry(number, chance) for number in range(SEEDS)])


def _copy_seeds(store: Store, month: str, copies: int) -> None:
    """Within the database: so many copies of each seed, in that month and with keys of their own, day by day."""
    numbers = select(literal(1).label("number")).cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.number + 1).where(numbers.c.number < copies))
    changed: dict[str, Any] = {
        "entry_key": LedgerRow.entry_key + f"/{month}/" + cast(numbers.c.number, String),
        "day": literal(month) + func.substr(LedgerRow.day, 8),
    }
    names = [column.key for column in LedgerRow.__table__.columns if column.key != "entry_id"]
    rows = (
        select(*(changed.get(name, getattr(LedgerRow, name)) for name in names))
        .join_from(LedgerRow, numbers, true())
        .where(LedgerRow.entry_key.not_like("%/%"))
        .order_by(LedgerRow.day, numbers.c.number)
    )
    with store.database.write() as session:
        session.execute(insert(LedgerRow).from_select(names, rows))


def _entry(number: int, chance: random.Random) -> dict[str, Any]:
    """Four pages in five stay with the CPU."""
    is_call = chance.random() < 0.2
    team = f"team {chance.randrange(20)}"
    cost_centre = team if chance.random() < 0.4 else f"{team}/project {chance.randrange(5)}"
    same = {
        "entry_key": f"seed {number}",
        "booked_at_s": 1_796_000_000.0 + number,
        "day": f"{MONTH}-{chance.randrange(1, 31):02}",
        "cost_centre": cost_centre,
        "team": team,
        "submitter": "ada",
        "document_id": f"{chance.randrange(2_000):064x}",
        "reading_id": number,
        "page_number": chance.randrange(1, 300),
        "attempt": 1,
        "is_audit": False,
        "price_book_version": "ours-000000000001",
        "currency": "USD",
        "prompt_price_micro": 125_718,
        "cached_price_micro": 125_718,
        "completion_price_micro": 502_874,
        "cpu_page_price_micro": 27_777_778,
    }
    return same | (_call(chance) if is_call else _cpu_page(chance))


def _call(chance: random.Random) -> dict[str, Any]:
    prompt_tokens, completion_tokens = chance.randrange(600, 2_800), chance.randrange(50, 900)
    is_wasted = chance.random() < 0.06
    return {
        "kind": LedgerKind.VLM_CALL,
        "model_id": chance.choice(("qwen2.5-vl-7b-fp8", "qwen3-vl-8b-fp8")),
        "outcome": "truncated" if is_wasted else "accepted",
        "reason": chance.choice(
            ("table_ruled_cells", "handwriting_probability", "stamp_strength", "forced_vlm")
        ),
        "is_forced": chance.random() < 0.05,
        "is_wasted": is_wasted,
        "vlm_pages": int(not is_wasted),
        "predicted_visual_tokens": prompt_tokens - 60,
        "predicted_prompt_tokens": prompt_tokens - 2,
        "prompt_tokens": prompt_tokens,
        "cached_tokens": 128,
        "completion_tokens": completion_tokens,
        "cost_micro": (prompt_tokens * 125_718 + completion_tokens * 502_874) // 1_000_000,
        "avoided_micro": 0,
    }


def _cpu_page(chance: random.Random) -> dict[str, Any]:
    avoided_tokens = chance.randrange(600, 2_800)
    return {
        "kind": LedgerKind.CPU_PAGE,
        "outcome": "read",
        "route": "ocr",
        "is_forced": False,
        "is_wasted": False,
        "pages": 1,
        "cpu_pages": 1,
        "cpu_s": chance.uniform(0.1, 5.0),
        "avoided_tokens": avoided_tokens,
        "cost_micro": 28,
        "avoided_micro": avoided_tokens // 4,
    }


@contextmanager
def _contestants() -> Iterator[tuple[Contestant, ...]]:
    with TemporaryDirectory() as folder, running_postgres() as server:
        server.execute("CREATE DATABASE ledger")
        on_postgresql = open_store(Path(folder, "other"), server.url("ledger"))
        on_sqlite = open_store(Path(folder, "home"))
        yield (
            Contestant(name="SQLite", store=on_sqlite, settle=lambda: _checkpoint(on_sqlite)),
            Contestant(
                name="PostgreSQL",
                store=on_postgresql,
                settle=lambda: server.execute("VACUUM (ANALYZE) ledger", "ledger"),
            ),
        )
        on_sqlite.close()
        on_postgresql.close()


def _checkpoint(store: Store) -> None:
    """A run writes little at a time, and leaves no million entries in the log beside the file."""
    with store.database.server.engine.connect() as connection:
        connection.execution_options(sqlite_begin="SELECT 1").exec_driver_sql(
            "PRAGMA wal_checkpoint(TRUNCATE)"
        )


def _plan(store: Store) -> str:
    """The database's own words."""
    with store.database.read() as session:
        is_sqlite = session.get_bind().dialect.name == "sqlite"
        if not is_sqlite:
            prefer_the_index(session)
        query = sums_query((StatementBy.TEAM,), FIRST_DAY, END_DAY, is_sqlite=is_sqlite)
        spelled = query.compile(session.connection(), compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN (COSTS OFF)"
        return "\n".join(f"  {row[-1]}" for row in session.execute(text(f"{explain} {spelled}")))


def _table(measured: Sequence[Measured], entries: int) -> Table:
    table = Table(title=f"Seconds to state {MONTH}, {entries:,} entries (median; least to most)")
    for heading in ("database", "by", "alone", f"with {entries:,} of other months", "ratio"):
        table.add_column(heading, justify="left" if heading in ("database", "by") else "right")
    for one in measured:
        table.add_row(
            one.database, one.by.value, _words(one.before_s), _words(one.after_s), f"{one.ratio:.2f}"
        )
    return table


def _medians(one: Measured) -> tuple[float, float]:
    return statistics.median(one.before_s), statistics.median(one.after_s)


def _words(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f}; {min(seconds):.2f} to {max(seconds):.2f}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.statements", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the month (default: 1,000,000)")
    parser.add_argument(
        "--by",
        type=StatementBy,
        nargs="+",
        choices=tuple(StatementBy),
        default=(StatementBy.TEAM, StatementBy.COST_CENTRE, StatementBy.MODEL, StatementBy.DOCUMENT),
    )
    parser.add_argument("--database", nargs="+", choices=DATABASES, default=DATABASES)
    options = parser.parse_args(arguments)
    if options.entries < 2 * SEEDS * len(OTHER_MONTHS) or options.entries % (SEEDS * len(OTHER_MONTHS)):
        parser.error(f"--entries: a multiple of {SEEDS * len(OTHER_MONTHS):,}, at least twice that")
    return options


if __name__ == "__main__":
    main()
