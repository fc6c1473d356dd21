"""Does one page of another cost centre wait for the many that were there before it? ``python -m benchmarks.pool_turns``
times a command that has one scanned page read by a pool with nothing else to do, then submits 2,000 pages, and times it
again while those are read. Some minutes; the machine should do nothing else.

The pool is one of two OCR processes, on this machine. What is read of the 2,000 pages when the last of the single ones
has come back is enough; they are cancelled then.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.pages import write_scanned_pdf
from benchmarks.pool import BROKERS, broker_server
from tests.acceptance.pool.house import House, opened_house
from tests.postgres import running_postgres

PAGES_EACH: Final = 100
WARM_UP_PAGES: Final = 6
UNDER_WAY_PAGES: Final = 4
MOST_RATIO: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Seconds of one page: from the command's start to its end, and from the page's arrival until it was settled."""

    command_s: float
    pool_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; {options.broker}")
    with (
        TemporaryDirectory() as folder,
        broker_server(options.broker) as new_broker,
        running_postgres() as postgres,
        postgres.database() as database,
        opened_house(new_broker(), postgres, database, Path(folder, "pool")) as house,
    ):
        house.workers.beat()
        house.begin_workers("intake,assemble", "ocr", concurrency=2)
        bench = Bench(house, Path(folder))
        bench.warm_up()
        alone = bench.turns("alone", options.rounds)
        read_before = bench.submit_many(options.pages)
        beside = bench.turns("beside", options.rounds)
        read = bench.read_of_many()
        console.print(_table(alone, beside))
        console.print(
            f"of the {options.pages:,} pages {read_before} were read before, {read - read_before} meanwhile"
        )
    for name, measured in (("the page", "pool_s"), ("the command", "command_s")):
        ratio = _median(beside, measured) / _median(alone, measured)
        console.print(
            f"{name}, beside against alone: {ratio:.2f} (under {MOST_RATIO:g}: {'yes' if ratio < MOST_RATIO else 'no'})"
        )


class Bench:
    """``folder`` takes what is submitted, and what comes back."""

    def __init__(self, house: House, folder: Path) -> None:
        self._house = house
        self._folder = folder

    def warm_up(self) -> None:
        write_scanned_pdf(self._folder / "warm-up.pdf", WARM_UP_PAGES)
        self._ingest(self._folder / "warm-up.pdf")

    def turns(self, name: str, rounds: int) -> tuple[Turn, ...]:
        return tuple(self._turn(f"{name}_{number}.pdf") for number in range(1, rounds + 1))

    def submit_many(self, pages: int) -> int:
        """How many of them were read when the pool was in the midst of it."""
        many = self._folder / "many"
        many.mkdir()
        for first in range(0, pages, PAGES_EACH):
            write_scanned_pdf(many / f"long_{first + 1:05}.pdf", min(PAGES_EACH, pages - first))
        self._ingest(many, "--cost-centre", "archive", "--detach")
        self._house.wait_until(lambda: self.read_of_many() >= UNDER_WAY_PAGES)
        return self.read_of_many()

    def read_of_many(self) -> int:
        return self._house.number(
            "SELECT count(*) FROM pages JOIN readings USING (reading_id) JOIN submissions USING (submission_id) "
            "WHERE pages.state = 'done' AND submissions.cost_centre = 'archive'"
        )

    def _turn(self, name: str) -> Turn:
        write_scanned_pdf(self._folder / name, 1)
        started_s = perf_counter()
        self._ingest(self._folder / name, "--cost-centre", "harbour")
        command_s = perf_counter() - started_s
        [(pool_s,)] = self._house.rows(
            "SELECT settled_at_s - created_at_s FROM sources JOIN submissions USING (submission_id) "
            f"WHERE name = '{name}'"
        )
        return Turn(command_s=command_s, pool_s=pool_s)

    def _ingest(self, source: Path, *options: str) -> None:
        done = self._house.ingest(source, "--out", self._folder / "out" / source.stem, *options)
        if done.returncode:
            raise RuntimeError(
                f"the pool did not take or read everything; the measurement is void: {done.stderr}"
            )


def _median(turns: Sequence[Turn], measured: str) -> float:
    return statistics.median(getattr(turn, measured) for turn in turns)


def _table(alone: Sequence[Turn], beside: Sequence[Turn]) -> Table:
    table = Table(title="Seconds for one page of another cost centre")
    for heading in ("", "page, median", "longest", "whole command, median", "longest"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, turns in (("alone", alone), ("beside the others", beside)):
        cells = (
            f"{figure:.2f}"
            for measured in ("pool_s", "command_s")
            for figure in (_median(turns, measured), max(getattr(turn, measured) for turn in turns))
        )
        table.add_row(name, *cells)
    return table


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool_turns", description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000, help="of the large submission (default: 2,000)")
    parser.add_argument("--rounds", type=int, default=7, help="single pages, each way (default: 7)")
    parser.add_argument("--broker", choices=BROKERS, default=BROKERS[0])
    options = parser.parse_args(arguments)
    if options.pages < 100 or options.rounds < 1:
        parser.error("--pages: at least 100; --rounds: at least 1")
    return options


if __name__ == "__main__":
    main()
