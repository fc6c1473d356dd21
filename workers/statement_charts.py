"""Pictures of a statement: what teams cost by day, and the tokens that triage avoided. PNG, or HTML with the picture
in it."""

from __future__ import annotations

import base64
import html
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from pipeline.chargeback.amounts import MILLION
from pipeline.chargeback.statement import LedgerSum

TEAM_COLORS: Final = ("#1f5fa8", "#e08a1e", "#2c8a4b", "#b8432f", "#7d5ba6", "#4fb3bf", "#c2679b", "#8a6d3b")
OTHERS_COLOR: Final = "#9a9a9a"
MOST_DAYS: Final = 92
"""Above, a bar is a month."""

DPI: Final = 130
BAR_WIDTH: Final = 0.85
MOST_LABELS: Final = 15
NAME_CHARACTERS: Final = 28

Series = Mapping[str, Mapping[date, int]]
"""Micro-units or tokens by team and day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFigures:
    """What the picture shows, of the days from ``first_day`` up to, not including, ``end_day``."""

    first_day: date
    end_day: date
    cost_micro: Mapping[str, Series]
    avoided_tokens: Series

    @property
    def is_monthly(self) -> bool:
        return (self.end_day - self.first_day).days > MOST_DAYS

    @property
    def bars(self) -> tuple[date, ...]:
        """Each day, or the first of each month."""
        days = (
            self.first_day + timedelta(days=number) for number in range((self.end_day - self.first_day).days)
        )
        return tuple(dict.fromkeys(day.replace(day=1) if self.is_monthly else day for day in days))


def chart_figures(sums: Iterable[LedgerSum], first_day: str, end_day: str) -> ChartFigures:
    """``sums`` tell teams and days apart."""
    cost: dict[str, dict[str, dict[date, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    avoided: dict[str, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    begin, end = date.fromisoformat(first_day), date.fromisoformat(end_day)
    is_monthly = (end - begin).days > MOST_DAYS
    for one in sums:
        day = date.fromisoformat(one.day or first_day)
        bar = day.replace(day=1) if is_monthly else day
        team = one.team or ""
        cost[one.currency][team][bar] += one.cost_micro or 0
        avoided[team][bar] += one.avoided_tokens
    return ChartFigures(first_day=begin, end_day=end, cost_micro=cost, avoided_tokens=avoided)


def chart_png(figures: ChartFigures) -> bytes:
    return _drawn(figures, "png")


def chart_html(figures: ChartFigures) -> str:
    """One file that asks the network for nothing."""
    picture = base64.b64encode(_drawn(figures, "svg")).decode("ascii")
    title = f"Cost by team, {_window_words(figures)}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        "<style>body{font-family:sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
        "img{width:100%;height:auto}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n"
        f'<img alt="Stacked bars: cost by team, and tokens avoided" src="data:image/svg+xml;base64,{picture}">\n'
        "</body></html>\n"
    )


def _drawn(figures: ChartFigures, file_format: str) -> bytes:
    colors = _colors(figures)
    currencies = sorted(figures.cost_micro) or [""]
    with mpl.rc_context({"text.parse_math": False, "svg.hashsalt": "doctriage"}):
        figure, panels = pyplot.subplots(
            len(currencies) + 1,
            1,
            figsize=(10.5, 1.2 + 3.1 * (len(currencies) + 1)),
            sharex=True,
            squeeze=False,
            layout="constrained",
        )
        *cost_panels, avoided_panel = panels[:, 0]
        for axes, currency in zip(cost_panels, currencies, strict=True):
            series = figures.cost_micro.get(currency, {})
            _stack(axes, _gathered(series, colors), figures, scale=MILLION)
            axes.set_ylabel(f"cost, {currency}" if currency else "cost")
        _stack(avoided_panel, _gathered(figures.avoided_tokens, colors), figures, scale=1)
        avoided_panel.set_ylabel("prompt tokens avoided")
        avoided_panel.yaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
        _date_axis(avoided_panel, figures)
        _legend(figure, colors)
        figure.suptitle(f"By team and {'month' if figures.is_monthly else 'day'}, {_window_words(figures)}")
        drawn = _saved(figure, file_format)
        pyplot.close(figure)
    return drawn


def _saved(figure: Figure, file_format: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, dpi=DPI)
    return buffer.getvalue()


def _colors(figures: ChartFigures) -> dict[str, str]:
    """The teams with the most cost in any currency have a colour each; the rest are ``others``."""
    weights: defaultdict[str, int] = defaultdict(int)
    for team, days in figures.avoided_tokens.items():
        weights[team] += sum(abs(tokens) for tokens in days.values())
    ranks: defaultdict[str, int] = defaultdict(int)
    for series in figures.cost_micro.values():
        for team, days in series.items():
            ranks[team] += sum(abs(micro) for micro in days.values())
    teams = sorted(weights, key=lambda team: (-ranks[team], -weights[team], team))
    kept = len(TEAM_COLORS) if len(teams) <= len(TEAM_COLORS) else len(TEAM_COLORS) - 1
    colors = dict(zip(teams[:kept], TEAM_COLORS, strict=False))
    if len(teams) > kept:
        colors[_others(len(teams) - kept)] = OTHERS_COLOR
    return colors


def _others(count: int) -> str:
    return f"{count} other teams"


def _gathered(series: Series, colors: Mapping[str, str]) -> list[tuple[str, Mapping[date, int]]]:
    """Colour and values of what is drawn, from the bottom up."""
    rest: defaultdict[date, int] = defaultdict(int)
    for team, days in series.items():
        if team not in colors:
            for day, value in days.items():
                rest[day] += value
    drawn = [(color, series.get(team, {})) for team, color in colors.items() if color != OTHERS_COLOR]
    return [*drawn, (OTHERS_COLOR, rest)]


def _stack(
    axes: Axes, layers: Sequence[tuple[str, Mapping[date, int]]], figures: ChartFigures, *, scale: int
) -> None:
    """What was taken back hangs below zero."""
    places = {day: place for place, day in enumerate(figures.bars)}
    tops: defaultdict[tuple[date, bool], float] = defaultdict(float)
    for color, values in layers:
        bars = [(day, value / scale) for day, value in sorted(values.items()) if value]
        ends = [(day, height > 0) for day, height in bars]
        axes.bar(
            [places[day] for day, _ in bars],
            [height for _, height in bars],
            width=BAR_WIDTH,
            bottom=[tops[end] for end in ends],
            color=color,
            edgecolor="white",
            linewidth=0.4,
        )
        for end, (_, height) in zip(ends, bars, strict=True):
            tops[end] += height
    if not tops:
        axes.set(ylim=(0, 1), yticks=[])
        axes.text(0.5, 0.5, "nothing", transform=axes.transAxes, ha="center", color="#777777")
    axes.axhline(0, color="#444444", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)


def _date_axis(axes: Axes, figures: ChartFigures) -> None:
    """A label under every bar, or under as many as there is room for."""
    bars = figures.bars
    step = -(-len(bars) // MOST_LABELS)
    form = "%b\n%Y" if figures.is_monthly else "%-d %b"
    axes.set_xlim(-0.5, len(bars) - 0.5)
    axes.set_xticks(range(0, len(bars), step), [f"{bar:{form}}" for bar in bars[::step]])


def _legend(figure: Figure, colors: Mapping[str, str]) -> None:
    if colors:
        patches = [Patch(color=color) for color in colors.values()]
        names = [_cut(team) for team in colors]
        figure.legend(patches, names, loc="outside right upper", frameon=False, title="team")


def _cut(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"


def _window_words(figures: ChartFigures) -> str:
    last = figures.end_day - timedelta(days=1)
    return f"{figures.first_day} to {last} (UTC)"
