"""Does a worker of the pool hold more and more memory? ``python -m benchmarks.pool_memory`` has one OCR process read
1,000 scanned pages without being replaced, as it would be sooner by itself, and compares the memory of it, its parent
and the programs it runs around page 1,000 with that around page 100. Half an hour and more; other work does not matter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from rich.console import Console

from benchmarks.memory import MemoryRun, Sampler, print_table, write_plot
from benchmarks.pages import write_scanned_pdf
from tests.acceptance.pool.house import opened_house
from tests.postgres import running_postgres
from tests.redis_server import running_redis

BASE_PAGE: Final = 100
MOST_RATIO: Final = 1.1
LOOK_EVERY_S: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    run, children = measure(options.pages)
    print_table(run, console, base_page=BASE_PAGE)
    ratio = run.peak_near(options.pages) / run.peak_near(BASE_PAGE)
    console.print(f"processes that read: {children}")
    console.print(
        f"page {options.pages:,} against page {BASE_PAGE}: {ratio:.2f} "
        f"(at most {MOST_RATIO:g}: {'yes' if ratio <= MOST_RATIO else 'no'})"
    )
    if options.plot is not None:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        write_plot(run, options.plot)
        console.print(f"Plot: {options.plot}")


def measure(pages: int) -> tuple[MemoryRun, int]:
    """With it the number of processes that read: one, unless the one was lost."""
    with (
        TemporaryDirectory() as folder,
        running_redis() as redis,
        running_postgres() as postgres,
        postgres.database() as database,
        opened_house(redis.broker(), postgres, database, Path(folder, "pool")) as house,
    ):
        write_scanned_pdf(Path(folder, "long.pdf"), pages)
        house.workers.beat()
        house.workers.worker("intake,assemble", 1)
        worker = house.workers.worker("ocr", 1, DOCTRIAGE_EXECUTOR__MAX_PAGES_PER_WORKER=str(2 * pages))
        readers: set[int] = set()
        submitted = house.ingest(Path(folder, "long.pdf"), "--out", Path(folder, "out"), "--detach")
        if submitted.returncode:
            raise RuntimeError(f"nothing was submitted; the measurement is void: {submitted.stderr}")
        with Sampler(psutil.Process(worker.pid)) as sampler:
            while sampler.pages_done < pages:
                time.sleep(LOOK_EVERY_S)
                readers |= {one.pid for one in worker.workers()}
                sampler.pages_done = house.settled_pages("long.pdf")
        failed = house.number("SELECT count(*) FROM pages WHERE state = 'failed'")
    if failed:
        raise RuntimeError(f"{failed} of {pages} pages failed; the measurement is void")
    return MemoryRun(page_count=pages, jobs=1, samples=tuple(sampler.samples)), len(readers)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool_memory", description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000, help="of the scanned PDF (default: 1,000)")
    parser.add_argument("--plot", type=Path, help="where a picture of it goes (PNG)")
    options = parser.parse_args(arguments)
    if options.pages < 2 * BASE_PAGE:
        parser.error(f"--pages: at least {2 * BASE_PAGE}")
    return options


if __name__ == "__main__":
    main()
