"""Pages for which the budget has no room: those that wait for calls under way to cost less than they may, and those
that go without the VLM."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Final

from models.budget import WhenSpent
from models.errors import BudgetSpent, BudgetUnusable
from models.transcription import Degradation, DegradedCode

LOOK_EVERY_S: Final = 5.0
"""How soon a page finds out what calls of other processes have left it."""


class BudgetRoom:
    """For the pages of one event loop. Whoever closes a call says ``freed``, and one of those that ``wait`` goes on;
    the others do after ``LOOK_EVERY_S``."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Event] = deque()

    def freed(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()

    async def wait(self) -> None:
        goes_on = asyncio.Event()
        self._waiting.append(goes_on)
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await goes_on.wait()
        except TimeoutError:
            with contextlib.suppress(ValueError):
                self._waiting.remove(goes_on)


def degradation_of(error: BudgetSpent | BudgetUnusable) -> Degradation:
    """A page whose cost is not known waits until it is."""
    is_final = isinstance(error, BudgetSpent) and error.budget.when_spent is not WhenSpent.HOLD
    code = DegradedCode.BUDGET_SPENT if is_final else DegradedCode.BUDGET_HELD
    return Degradation(code=code, message=str(error))
