"""Measures speed and memory, prints tables, and writes a plot of memory against pages."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from benchmarks import memory, throughput
from benchmarks.pages import write_page_images

PARTS = ("throughput", "memory")


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
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--pages", type=int, default=24, help="page images a run (default: 24)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default: 3)")
    parser.add_argument("--memory-pages", type=int, default=300, help="pages of the long PDF (default: 300)")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where the plot goes")
    parser.add_argument("--quick", action="store_true", help="a few pages, to see that it works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.pages, options.rounds, options.memory_pages = 3, 1, 6
    return options


if __name__ == "__main__":
    main()
