"""The pictures of ``benchmarks.budgets``, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.budget_figures import (
    CEILING,
    HEIGHTS_PX,
    LIMITS_PX,
    SIZES,
    MeasuredPage,
    at,
    by_text,
    error_rate,
    fixed,
    heights_and_losses,
    in_sample,
    summary,
)
from pipeline.legibility import LEAST_TEXT_HEIGHT_PX

BLUE, GREY, GREEN, RED = "#1f5fa8", "#7a7a7a", "#2c8a4b", "#b8432f"
TALLEST_SHOWN_PX: Final = 24


def draw_legibility(pages: Sequence[MeasuredPage], path: Path) -> None:
    """Errors against tokens, and words lost against the height of small print."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    _draw_curve(left, in_sample(pages))
    _draw_losses(right, heights_and_losses(pages))
    _save(figure, (left, right), path)


def _draw_curve(axes: Axes, pages: Sequence[MeasuredPage]) -> None:
    rows = [summary(pages, at(size)) for size in SIZES]
    tokens = [row.tokens for row in rows]
    axes.plot(tokens, [100 * (row.error_rate or 0) for row in rows], "o-", color=RED, label="CER")
    axes.plot(tokens, [100 * (1 - row.kept) for row in rows], "s-", color=BLUE, label="words lost")
    own = error_rate(page.own for page in pages if page.own)
    if own is not None:
        axes.axhline(100 * own, color=RED, linestyle=":", label="CER at the pages' own size")
    axes.set(
        xlabel="visual tokens a page", ylabel="%", title=f"Pages shrunk to a budget ({len(pages)} pages)"
    )
    axes.set_ylim(bottom=-1)
    axes.legend(frameon=False)


def _draw_losses(axes: Axes, seen: Sequence[tuple[float, float]]) -> None:
    shown = [(height_px, loss) for height_px, loss in seen if height_px < TALLEST_SHOWN_PX]
    axes.plot(
        [height_px for height_px, _ in shown],
        [100 * loss for _, loss in shown],
        ".",
        color=GREY,
        alpha=0.5,
        label="one page at one size",
    )
    means = []
    for low, high in pairwise(HEIGHTS_PX):
        inside = [(height_px, loss) for height_px, loss in shown if low <= height_px < high]
        if inside:
            count = len(inside)
            means.append((sum(h for h, _ in inside) / count, 100 * sum(loss for _, loss in inside) / count))
    axes.plot(*zip(*means, strict=True), "o-", color=BLUE, label="mean")
    axes.axvline(
        LEAST_TEXT_HEIGHT_PX, color=GREEN, linestyle="--", label=f"limit, {LEAST_TEXT_HEIGHT_PX:g} px"
    )
    axes.set(
        xlabel="height of small print after the fit, px", ylabel="% of words lost", title="What is legible"
    )
    axes.legend(frameon=False)


def draw_adaptive(pages: Sequence[MeasuredPage], path: Path) -> None:
    """Words lost against tokens: every page in one budget, and each in the one its text needs."""
    sampled = in_sample(pages)
    figure, axes = pyplot.subplots(figsize=(7.2, 4.8), layout="constrained")
    same = [summary(sampled, at(size)) for size in SIZES]
    adaptive = [summary(sampled, by_text(limit)) for limit in LIMITS_PX]
    for rows, style, color, label in (
        (same, "s--", GREY, "one budget for all pages, trimmed"),
        (adaptive, "o-", BLUE, "the tier that the text needs, trimmed, by limit"),
    ):
        axes.plot(
            [row.tokens for row in rows],
            [100 * (1 - row.kept) for row in rows],
            style,
            color=color,
            label=label,
        )
    for name, row, color in (
        (f"limit of {LEAST_TEXT_HEIGHT_PX:g} px", summary(sampled, by_text()), GREEN),
        (f"fixed {CEILING:,}, whole pages", summary(sampled, fixed), RED),
    ):
        point = (row.tokens, 100 * (1 - row.kept))
        axes.plot(*point, "o", color=color, markersize=9)
        axes.annotate(
            f"{name}\n{row.tokens:,.0f} tokens",
            point,
            xytext=(0, 26),
            textcoords="offset points",
            ha="center",
            color=color,
        )
    axes.set(xlabel="visual tokens a page", ylabel="% of words lost", title=f"{len(sampled)} pages")
    axes.set_ylim(bottom=-0.5)
    axes.legend(frameon=False)
    _save(figure, (axes,), path)


def _save(figure: Figure, axes: Sequence[Axes], path: Path) -> None:
    for part in axes:
        part.spines[["top", "right"]].set_visible(False)
        part.grid(alpha=0.25)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
