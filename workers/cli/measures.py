"""Times and shares, as the tables of all commands show them. Import this inside a command, never at start."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text


def duration_words(seconds: float) -> str:
    """Like ``40 s``, ``12 min``, ``3 h 5 min``, ``2 d 7 h``."""
    whole_s = max(0, round(seconds))
    if whole_s < 90:
        return f"{whole_s} s"
    minutes = round(whole_s / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def at_words(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"


def share_bar(share: float, style: str, cells: int) -> Text:
    """Full alone where nothing is left."""
    filled = cells if share >= 1 else min(cells - 1, round(share * cells))
    return Text.assemble(("█" * filled, style), ("░" * (cells - filled), "dim"))


def percent(share: float) -> str:
    """Rounded to neither 0 nor 100 where that would be wrong."""
    whole = round(100 * share)
    if whole == 100 and share < 1:
        whole = 99
    return "<1 %" if whole == 0 and share > 0 else f"{whole} %"
