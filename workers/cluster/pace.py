"""How many pages a process takes at a time: as many as it lately read in a second. Pages with a text layer are taken a
few at a time, as a claim costs a third of one, and scanned ones singly, so that nobody waits for those behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from workers.task_limits import TURN_S


class Pace:
    """``most`` pages at a time at most. ``pages_read`` are those of all turns."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._page_s = TURN_S
        self._begun_s = 0.0
        self.pages_read = 0

    @property
    def pages(self) -> int:
        """Of the next turn."""
        return max(1, min(self._most, int(TURN_S / self._page_s))) if self._page_s else self._most

    def turn_ends(self, is_stopping: Callable[[], bool]) -> Callable[[], bool]:
        """What says, from now on, whether no other page is to be begun: the process is to end, or the turn is over,
        as where pages are slower than those before them."""
        self._begun_s = monotonic()
        return lambda: is_stopping() or monotonic() - self._begun_s >= TURN_S

    def note_turn(self, pages: int) -> None:
        """So many were read since ``turn_ends``."""
        if pages:
            self._page_s = (monotonic() - self._begun_s) / pages
            self.pages_read += pages
