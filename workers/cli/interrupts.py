"""Ctrl-C: the first stops cleanly, the second at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command stopped by Ctrl-C: 128 + SIGINT, as shells count."""


@dataclass(slots=True)
class Interrupts:
    """``first`` is the signal that came first, None before any did."""

    first: int | None = None


@contextmanager
def second_interrupt_ends_at_once() -> Iterator[Interrupts]:
    """Inside, the first SIGINT or SIGTERM raises KeyboardInterrupt; the next kills our children and exits."""
    import multiprocessing

    from workers.pool import kill_group

    def end_at_once() -> None:
        """No clean-up: what the database holds is kept, the rest is read again by the next run."""
        for child in multiprocessing.active_children():
            kill_group(child)
        os._exit(INTERRUPTED)

    interrupts = Interrupts()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if interrupts.first is not None:
            end_at_once()
        interrupts.first = number
        with suppress(OSError):
            os.write(2, b"\nstopping; press Ctrl-C again to end at once\n")
        raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
