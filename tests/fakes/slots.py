"""Places for calls in memory, with the interface of ``SlotStore``."""

from __future__ import annotations

from dataclasses import dataclass, field

from models.errors import StoreUnavailable


@dataclass(slots=True)
class MemorySlots:
    """Who holds which place of which service; ``looks`` are the owners that asked, in their order. Leases last."""

    held: dict[tuple[str, int], str] = field(default_factory=dict)
    looks: list[str] = field(default_factory=list)
    peak: int = 0
    is_down: bool = False

    def acquire(self, service: str, capacity: int, owner: str, lease_s: float) -> int | None:
        if self.is_down:
            raise StoreUnavailable("the database does not answer; start it")
        self.looks.append(owner)
        free = (number for number in range(1, capacity + 1) if (service, number) not in self.held)
        place = next(free, None)
        if place is not None:
            self.held[service, place] = owner
            self.peak = max(self.peak, len(self.held))
        return place

    def release(self, service: str, slot: int, owner: str) -> None:
        assert self.held.pop((service, slot)) == owner
