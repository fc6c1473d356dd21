"""Reviewed pages as a table. Import this inside a command, never at start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from pipeline.store.review_records import ReviewedPage
from workers.cli.printable import printable
from workers.cli.table_parts import new_table


def print_reviewed_pages(console: Console, pages: Sequence[ReviewedPage]) -> None:
    table = new_table("Reviewed pages (times are UTC)")
    table.add_column("document", overflow="fold")
    table.add_column("page", justify="right")
    table.add_column("needs the VLM", no_wrap=True)
    table.add_column("classes", overflow="fold")
    table.add_column("reviewers", justify="right")
    table.add_column("last reviewed", no_wrap=True)
    table.add_column("remark", overflow="fold")
    for page in pages:
        table.add_row(
            Text(printable(page.name)),
            f"{page.page_number:,}",
            ("yes" if page.needs_vlm else "no") + (", reviewers differ" if page.differ else ""),
            Text(printable(", ".join(page.classes))),
            f"{page.reviewers:,}",
            datetime.fromtimestamp(page.reviewed_at_s, UTC).strftime("%Y-%m-%d %H:%M"),
            Text(printable(page.remark or "")),
        )
    console.print(table, crop=False)
