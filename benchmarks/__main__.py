"""Measures speed and memory, prints tables, and writes a plot of memory against pages."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console

from benchmarks import memory, throughput
from benchmarks.pages import write_page_images

PARTS = ("throughput", "memory")

OTHERS: Final[Mapping[str, tuple[str, str, str]]] = {
    "budgets": ("how small a page may be", "labelled pages", "half an hour"),
    "handwriting": ("trains the detector of handwriting", "labelled pages, fonts of handwriting", "long"),
    "pictures": ("drawing a page anew beside keeping its picture", "nothing more", "a minute"),
    "pool": (
        "the pool of workers beside the embedded executor",
        "Redis or RabbitMQ, PostgreSQL",
        "some minutes",
    ),
    "pool_database": ("what a page costs the pool's database", "PostgreSQL", "some minutes"),
    "pool_memory": ("a worker's memory over a thousand pages", "Redis, PostgreSQL", "half an hour"),
    "pool_turns": ("one page beside a large submission", "Redis or RabbitMQ, PostgreSQL", "some minutes"),
    "statements": ("a statement over a million entries", "PostgreSQL, 2 GB of disk", "some minutes"),
    "triage": ("CPU seconds a page by stage", "nothing more", "some minutes"),
    "uploads": ("200 uploads at once", "2 GB of disk", "some minutes"),
    "vlm_client": ("whether the client keeps a VLM service busy", "nothing more", "some minutes"),
}
"""Of each module what it measures, what it needs and how long it takes. None is imported here: that is heavy."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    console = Console(width=None if Console().is_terminal else 110)
    options.out.mkdir(parents=True, exist_ok=True)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    if "throughput" in options.only:
        with TemporaryDirectory() as folder:
            images = write_page_images(Path(folder), options.pages)
            throughput.print_tables(throughput.measure(images, rounds=options.rounds), console)
    if "memory" in options.only:
        run = memory.measure(options.memory_pages, jobs=2)
        memory.print_table(run, console)
        plot = options.out / "memory.png"
        memory.write_plot(run, plot)
        console.print(f"Plot: {plot}")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=_others(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--pages", type=int, default=24, help="page images a run (default: 24)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default: 3)")
    parser.add_argument("--memory-pages", type=int, default=300, help="pages of the long PDF (default: 300)")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where the plot goes")
    parser.add_argument("--quick", action="store_true", help="a few pages, to see that it works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.pages, options.rounds, options.memory_pages = 3, 1, 2
    return options


def _others() -> str:
    """What is not run here, a line each."""
    lines = (
        f"  python -m benchmarks.{name:<14} {what}; needs {needs}; {duration}"
        for name, (what, needs, duration) in OTHERS.items()
    )
    servers = "Servers are throw-away ones, from the packages that `make test` installs."
    return "\n".join(("others, each a command of its own with a --help of its own:", *lines, servers))


if __name__ == "__main__":
    main()
