"""What the commands over labelled pages have in common: reading the pages, and the form of their tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from workers.cli.interrupts import INTERRUPTED, second_interrupt_ends_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from pipeline.settings import Settings
    from workers.corpus_reading import MeasuredPage


def measured_pages(corpora: Sequence[Path], out_dir: Path, settings: Settings) -> tuple[MeasuredPage, ...]:
    """Read the labelled pages that were not read before. Exits with 130 after Ctrl-C."""
    from workers.cli.progress import progress_display
    from workers.cli.terminal import open_console
    from workers.corpus_reading import read_labelled_pages
    from workers.labelled import read_corpora

    labels = read_corpora(corpora)
    with second_interrupt_ends_at_once(), progress_display(open_console(stderr=True)) as progress:
        reading = read_labelled_pages(labels, out_dir, settings=settings, on_event=progress.on_event)
    if reading.report.is_interrupted:
        typer.echo("stopped; finished pages are kept, and the same command goes on from here", err=True)
        raise typer.Exit(INTERRUPTED)
    return reading.pages


def new_table(title: str, first: str, headings: Sequence[str]) -> Table:
    """A name, then numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column(first, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def three_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
