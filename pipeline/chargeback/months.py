"""Calendar months in UTC, written 2026-11."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from pipeline.chargeback.echoes import echoed

_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def month_of(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m}"


def month_after(month: str) -> str:
    year, number = int(month[:4]), int(month[5:])
    return f"{year + number // 12:04}-{number % 12 + 1:02}"


def month_name(text: str) -> str:
    """The month itself. Raises ValueError for text that is none."""
    if _MONTH.fullmatch(text) is None:
        raise ValueError(f"{echoed(text)} is no month; write one like 2026-11")
    return text
