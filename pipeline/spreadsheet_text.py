"""Text for CSV files, which people open in spreadsheets."""

from __future__ import annotations

from typing import Final

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """The text, after an apostrophe where a spreadsheet would take it for a formula and compute it."""
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text
