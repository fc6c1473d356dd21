"""The tables of ``benchmarks.budgets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from benchmarks.budget_figures import (
    CEILING,
    FIXED,
    HEIGHTS_PX,
    LIMITS_PX,
    SIZES,
    SPOILED,
    MeasuredPage,
    Summary,
    at,
    by_text,
    error_rate,
    fixed,
    heights_and_losses,
    held_out,
    in_sample,
    summary,
)
from pipeline.legibility import LEAST_TEXT_HEIGHT_PX

SPOILED_PAGES = f"pages that lose over {SPOILED:.0%}"


def print_tables(pages: Sequence[MeasuredPage], console: Console) -> None:
    sampled = in_sample(pages)
    for table in (
        _size_table(sampled),
        _height_table(sampled),
        _limit_table(sampled),
        _kind_table(sampled),
        _token_table(pages),
    ):
        console.print(table)
    result, limits = held_out(sampled)
    console.print(
        f"Limit chosen without the page's own source ({', '.join(map(str, limits))} px): "
        f"{result.tokens:,.0f} tokens a page, {result.kept:.1%} of the words, {result.spoiled:.1%} spoiled"
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _size_table(pages: Sequence[MeasuredPage]) -> Table:
    table = _table(
        f"What a budget keeps, {len(pages)} pages",
        "budget",
        "tokens a page",
        "CER",
        "of own CER",
        "words kept",
        SPOILED_PAGES,
    )
    own = error_rate(page.own for page in pages if page.own)
    for size in SIZES:
        row = summary(pages, at(size))
        table.add_row(
            f"{size:,}",
            f"{row.tokens:,.0f}",
            _share(row.error_rate),
            _ratio(row.error_rate, own),
            *_kept(row),
        )
    row = summary(pages, fixed)
    table.add_row(
        f"{CEILING:,}, whole pages",
        f"{row.tokens:,.0f}",
        _share(row.error_rate),
        _ratio(row.error_rate, own),
        *_kept(row),
    )
    table.add_row("own size", "", _share(own), _ratio(own, own), _share(1.0), _share(0.0))
    return table


def _height_table(pages: Sequence[MeasuredPage]) -> Table:
    table = _table(
        "Words lost by the height of small print",
        "height, px",
        "readings",
        "mean",
        "one in ten from",
        "worst",
    )
    seen = heights_and_losses(pages)
    for low, high in pairwise(HEIGHTS_PX):
        losses = sorted(loss for height_px, loss in seen if low <= height_px < high)
        if losses:
            mean, tenth = sum(losses) / len(losses), losses[len(losses) * 9 // 10]
            table.add_row(
                f"{low} to {high}", str(len(losses)), *(_share(loss) for loss in (mean, tenth, losses[-1]))
            )
    return table


def _limit_table(pages: Sequence[MeasuredPage]) -> Table:
    table = _table(
        "Budgets by text height",
        "least height, px",
        "tokens a page",
        "saved",
        "CER",
        "words kept",
        SPOILED_PAGES,
    )
    whole = summary(pages, fixed)
    rows = [(f"{limit}", summary(pages, by_text(limit))) for limit in LIMITS_PX]
    for name, row in [*rows, (f"fixed {CEILING:,}, whole pages", whole)]:
        table.add_row(
            name,
            f"{row.tokens:,.0f}",
            _share(1 - row.tokens / whole.tokens),
            _share(row.error_rate),
            *_kept(row),
            style="bold" if name == f"{LEAST_TEXT_HEIGHT_PX:g}" else None,
        )
    return table


def _kind_table(pages: Sequence[MeasuredPage]) -> Table:
    table = _table(
        f"Fixed {CEILING:,}, whole | trimmed, by text height, {LEAST_TEXT_HEIGHT_PX:g} px",
        "kind",
        "pages",
        "tokens",
        "saved",
        "words kept",
        "CER",
    )
    for kind, some in _by_kind(pages):
        whole, adaptive = summary(some, fixed), summary(some, by_text())
        table.add_row(
            kind,
            str(whole.pages),
            f"{whole.tokens:,.0f} | {adaptive.tokens:,.0f}",
            _share(1 - adaptive.tokens / whole.tokens),
            f"{_share(whole.kept)} | {_share(adaptive.kept)}",
            "" if whole.error_rate is None else f"{_share(whole.error_rate)} | {_share(adaptive.error_rate)}",
        )
    return table


def _token_table(pages: Sequence[MeasuredPage]) -> Table:
    table = _table(
        "Tokens of every page",
        "kind",
        "pages",
        "text unknown",
        f"fixed {CEILING:,}",
        "by text height",
        "saved",
    )
    for kind, some in [*_by_kind(pages), ("needs the model", [page for page in pages if page.needs_vlm])]:
        whole = sum(page.tokens(FIXED) for page in some)
        adaptive = sum(page.tokens(page.by_text(LEAST_TEXT_HEIGHT_PX)) for page in some)
        if some:
            table.add_row(
                kind,
                str(len(some)),
                str(sum(page.text_height_px is None for page in some)),
                f"{whole / len(some):,.0f}",
                f"{adaptive / len(some):,.0f}",
                _share(1 - adaptive / whole),
            )
    return table


def _by_kind(pages: Sequence[MeasuredPage]) -> Iterator[tuple[str, list[MeasuredPage]]]:
    for kind in sorted({page.kind for page in pages}):
        yield kind, [page for page in pages if page.kind == kind]
    yield "all", list(pages)


def _kept(row: Summary) -> tuple[str, str]:
    return _share(row.kept), _share(row.spoiled)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _ratio(value: float | None, of: float | None) -> str:
    return f"{value / of:.2f}" if value is not None and of else ""
