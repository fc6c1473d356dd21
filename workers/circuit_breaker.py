"""Leaves a service alone that fails call after call, and finds out with one call at a time whether it is back.

Closed, open, half-open as in Nygard, "Release It!" (2nd edition, section 5.2). The breaker knows no event loop: who
calls asks ``wait_s``, takes a ``Passage`` and settles it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from models.errors import (
    VlmConnectionLost,
    VlmError,
    VlmOverloaded,
    VlmServerError,
    VlmTimedOut,
    VlmUnreachable,
)

SERVICE_FAULTS = (VlmUnreachable, VlmConnectionLost, VlmTimedOut, VlmServerError, VlmOverloaded)
"""What says that the service is ill. Any other answer, a refusal too, shows that it is there."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """``faults_to_open`` in a row open the breaker, for ``first_open_s``; each probe that fails doubles that, up
    to ``longest_open_s``. Jitter takes up to half of it away."""

    faults_to_open: int = 5
    first_open_s: float = 5.0
    longest_open_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Leave to make one call. ``era`` tells calls from before a change of state from those after it."""

    era: int
    is_probe: bool


class CircuitBreaker:
    """``clock`` gives seconds, ``jitter`` a number from 0 up to 1."""

    def __init__(
        self,
        limits: BreakerLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._limits = limits or BreakerLimits()
        self._clock = clock
        self._jitter = jitter
        self._era = 0
        self._faults = 0
        self._openings = 0
        self._open_until_s: float | None = None
        self._has_probe = False

    @property
    def state(self) -> BreakerState:
        if self._open_until_s is None:
            return BreakerState.CLOSED
        is_over = self._has_probe or self._clock() >= self._open_until_s
        return BreakerState.HALF_OPEN if is_over else BreakerState.OPEN

    def wait_s(self) -> float | None:
        """0 if a call may be made now, else the seconds to wait; None while the outcome of a probe decides."""
        if self._open_until_s is None:
            return 0.0
        return None if self._has_probe else max(0.0, self._open_until_s - self._clock())

    def admit(self) -> Passage:
        """Raises RuntimeError unless ``wait_s`` is 0. What it gives must be settled, or withdrawn."""
        if self.wait_s() != 0.0:
            raise RuntimeError("the circuit breaker is open")
        self._has_probe = self._open_until_s is not None
        return Passage(era=self._era, is_probe=self._has_probe)

    def settle(self, passage: Passage, error: VlmError | None) -> None:
        """The call ended, with an answer (None) or an error. A fault of a call made before the last change of
        state says nothing new; an answer closes the breaker whenever it comes."""
        if not isinstance(error, SERVICE_FAULTS):
            self._close()
        elif passage.era == self._era:
            self._faults += 1
            if passage.is_probe or self._faults >= self._limits.faults_to_open:
                self._open(error.retry_after_s or 0.0)

    def withdraw(self, passage: Passage) -> None:
        """The call was given up from this side: the next one may probe instead."""
        if passage.era == self._era and passage.is_probe:
            self._has_probe = False

    def _close(self) -> None:
        self._faults = 0
        if self._open_until_s is not None:
            self._era += 1
        self._open_until_s, self._openings, self._has_probe = None, 0, False

    def _open(self, at_least_s: float) -> None:
        limits = self._limits
        longest_s = min(limits.longest_open_s, limits.first_open_s * 2.0 ** min(self._openings, 30))
        open_s = max(at_least_s, longest_s * (1 - self._jitter() / 2))
        self._open_until_s = self._clock() + open_s
        self._openings += 1
        self._era += 1
        self._faults, self._has_probe = 0, False
