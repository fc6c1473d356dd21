"""How many calls may be in flight: additive increase, multiplicative decrease, as TCP does it (RFC 5681)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workers.vllm_metrics import VllmMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """What in vLLM's metrics says that it has too much to do, and for how many readings on end it must."""

    most_kv_cache_usage: float = 0.95
    patience: int = 3


class AdaptiveLimit:
    """Starts at ``cap``, which it never exceeds, and never falls under 1.

    ``era`` changes with every decrease: of many calls that fail at once, only the first one halves the limit, and
    calls from before a decrease do not undo it.
    """

    def __init__(self, cap: int, pressure: Pressure | None = None) -> None:
        if cap < 1:
            raise ValueError(f"at least one call must be allowed, not {cap}")
        self.cap = cap
        self.limit = cap
        self.era = 0
        self._pressure = pressure or Pressure()
        self._answers = 0
        self._pressed_readings = 0

    def answered(self, era: int) -> None:
        """A call of ``era`` went well. As many of this era as the limit, without pressure, raise it by one."""
        self._answers += era == self.era
        if self._answers >= self.limit and not self._pressed_readings:
            self.limit = min(self.cap, self.limit + 1)
            self._answers = 0

    def overloaded(self, era: int) -> None:
        """A call of ``era`` was refused for want of room, or took too long."""
        if era == self.era:
            self._decrease_to(self.limit // 2)

    def observe(self, metrics: VllmMetrics | None, *, in_flight: int) -> None:
        """A reading of the service's metrics, None where it has none. Pressure that lasts takes away our share of
        what waits there, or a tenth where nothing waits but the cache is full."""
        if metrics is None or not self._is_pressed(metrics):
            self._pressed_readings = 0
            return
        self._pressed_readings += 1
        if self._pressed_readings >= self._pressure.patience and in_flight:
            self._decrease_to(min(self.limit, in_flight - _excess(metrics, in_flight)))
            self._pressed_readings = 0

    def _is_pressed(self, metrics: VllmMetrics) -> bool:
        usage = metrics.kv_cache_usage
        return metrics.waiting > 0 or (usage is not None and usage > self._pressure.most_kv_cache_usage)

    def _decrease_to(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.era += 1
        self._answers = 0


def _excess(metrics: VllmMetrics, in_flight: int) -> int:
    if not metrics.waiting:
        return max(1, in_flight // 10)
    everybody = max(in_flight, metrics.waiting + metrics.running)
    return math.ceil(metrics.waiting * in_flight / everybody)
