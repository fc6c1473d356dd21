"""Places for calls in PostgreSQL: each process that calls the service has a store and an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from models.errors import VlmServerError
from models.tables import VlmSlotRow
from pipeline.store import Store, connect_store
from workers.adaptive_limit import AdaptiveLimit
from workers.circuit_breaker import BreakerLimits, CircuitBreaker
from workers.shared_places import DatabasePlaces
from workers.vlm_admission import VlmAdmission

SERVICE = "http://gpu:8000/v1"
CAPACITY, CALLERS, CALLS = 3, 4, 8


@pytest.fixture
def store(tmp_path: Path, postgres_url: SecretStr) -> Iterator[Store]:
    with contextlib.closing(connect_store(tmp_path, postgres_url)) as opened:
        yield opened


def owners(store: Store) -> dict[int, str | None]:
    """Of each place."""
    with store.database.read() as session:
        return {row.slot: row.owner for row in session.scalars(select(VlmSlotRow))}


@dataclass(slots=True)
class Service:
    """Counts the calls under way; every third fails."""

    under_way: int = 0
    peak: int = 0
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    async def call(self) -> None:
        with self.lock:
            self.calls += 1
            is_good = self.calls % 3 > 0
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
        await asyncio.sleep(0.01)
        with self.lock:
            self.under_way -= 1
        if not is_good:
            raise VlmServerError("died; see its log")


async def make_calls(service: Service, store: Store, owner: str) -> None:
    admission = VlmAdmission(
        AdaptiveLimit(CALLS),
        CircuitBreaker(BreakerLimits(faults_to_open=1_000)),
        places=DatabasePlaces(store.slots, SERVICE, CAPACITY, owner, 60),
    )

    async def call() -> None:
        with contextlib.suppress(VlmServerError):
            async with admission.slot():
                await service.call()

    await asyncio.gather(*(call() for _ in range(CALLS)))


def test_all_who_call_a_service_together_have_no_more_calls_under_way_than_places(
    store: Store, tmp_path: Path, postgres_url: SecretStr
) -> None:
    service = Service()

    def caller(number: int) -> None:
        with contextlib.closing(connect_store(tmp_path, postgres_url)) as own:
            asyncio.run(make_calls(service, own, f"caller {number}"))

    with ThreadPoolExecutor(CALLERS) as threads:
        list(threads.map(caller, range(CALLERS)))
    assert service.calls == CALLERS * CALLS
    assert 1 <= service.peak <= CAPACITY
    assert owners(store) == dict.fromkeys(range(1, CAPACITY + 1))


def test_the_place_of_an_owner_that_is_gone_goes_to_another_and_a_late_release_does_not_free_it(
    store: Store,
) -> None:
    gone = DatabasePlaces(store.slots, SERVICE, 1, "gone", -1)
    here = DatabasePlaces(store.slots, SERVICE, 1, "here", 60)

    async def handed_on() -> int:
        place = await gone.acquire()
        assert await here.acquire() == place
        await gone.release(place)
        return place

    place = asyncio.run(handed_on())
    assert owners(store) == {place: "here"}


def test_places_of_one_service_are_none_of_another(store: Store) -> None:
    async def both() -> None:
        for service in (SERVICE, "http://other:8000/v1"):
            assert await DatabasePlaces(store.slots, service, 1, "a", 60).acquire() == 1

    asyncio.run(both())
