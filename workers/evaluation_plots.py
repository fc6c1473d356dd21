"""The pictures of an evaluation, as PNG."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workers.cost_quality import CostPoint, CostQuality
from workers.evaluation import Calibration

BLUE, GREY, GREEN, RED = "#1f5fa8", "#7a7a7a", "#2c8a4b", "#b8432f"


def draw_reliability(calibration: Calibration, path: Path) -> None:
    """The share of pages that need the model against the probability the policy gave them, and the pages in each
    bin."""
    figure, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(5.6, 6.2), height_ratios=(4, 1), sharex=True, layout="constrained"
    )
    top.plot((0, 1), (0, 1), color=GREY, linestyle="--", label="perfect")
    probabilities = [one.probability for one in calibration.bins]
    top.plot(probabilities, [one.share for one in calibration.bins], "o-", color=BLUE, label="policy")
    top.set(ylabel="share that needs the model", xlim=(0, 1), ylim=(-0.03, 1.03))
    top.set_title(f"ECE {calibration.ece:.3f}, Brier score {calibration.brier:.3f}")
    top.legend(loc="upper left", frameon=False)
    bars = bottom.bar(probabilities, [one.pages for one in calibration.bins], width=0.05, color=BLUE)
    bottom.bar_label(bars, fontsize=8)
    bottom.set(xlabel="probability by the policy", ylabel="pages")
    bottom.margins(y=0.3)
    _save(figure, (top, bottom), path)


def draw_cost_quality(result: CostQuality, path: Path) -> None:
    """Pages that got what they need against visual tokens a page."""
    figure, axes = pyplot.subplots(figsize=(7.2, 4.8), layout="constrained")
    _line(axes, [result.all_cpu, result.all_vlm], color=GREY, linestyle="--", label="pages at random")
    _line(
        axes,
        [result.all_cpu, result.oracle, result.all_vlm],
        color=GREEN,
        linestyle=":",
        label="oracle",
    )
    _line(axes, result.curve, color=BLUE, label="policy at every threshold")
    for name, point, color, offset in (
        ("all CPU", result.all_cpu, GREY, (8, -4)),
        ("all VLM", result.all_vlm, GREY, (-2, 8)),
        ("oracle", result.oracle, GREEN, (0, 8)),
        ("ours", result.ours, BLUE, (8, -14)),
        ("random at the same cost", result.random, RED, (8, -12)),
    ):
        axes.plot(point.tokens_per_page, point.served, "o", color=color)
        axes.annotate(
            f"{name} {point.served:.0%}",
            (point.tokens_per_page, point.served),
            xytext=offset,
            textcoords="offset points",
            ha="right" if offset[0] < 0 else "center" if offset[0] == 0 else "left",
            color=color,
        )
    axes.set(xlabel="visual tokens a page", ylabel="pages that got what they need")
    axes.set_ylim(top=1.05)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}" if value <= 1 else "")
    axes.legend(loc="lower right", frameon=False)
    _save(figure, (axes,), path)


def _line(axes: Axes, points: tuple[CostPoint, ...] | list[CostPoint], **style: str) -> None:
    axes.plot([point.tokens_per_page for point in points], [point.served for point in points], **style)  # type: ignore[arg-type]


def _save(figure: Figure, axes: tuple[Axes, ...], path: Path) -> None:
    for part in axes:
        part.spines[["top", "right"]].set_visible(False)
        part.grid(alpha=0.25)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
