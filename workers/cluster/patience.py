"""A database or a blob store that is away is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog

from models.errors import StoreUnavailable

AWAY_S: Final = 2.0
"""How often it is asked again."""

Answer = TypeVar("Answer")

log = structlog.get_logger()


def patiently(
    act: Callable[[], Answer],
    *,
    patience_s: float,
    away: type[StoreUnavailable] = StoreUnavailable,
    **ids: object,
) -> Answer:
    """Acts again and again while that raises ``away``, for ``patience_s``; then raises it. ``ids`` go to the log."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            return act()
        except away as error:
            if time.monotonic() > until_s:
                raise
            log.warning("waiting_for_the_store", reason=str(error), **ids)
            time.sleep(AWAY_S)
