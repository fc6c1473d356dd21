"""Figures of the pool for those who watch it, on both databases."""

from __future__ import annotations

import time

import pytest

from models.errors import WorkerLost
from models.tables import LedgerKind
from pipeline.store import Store
from pipeline.store.pool_figures import BookedKey, PoolFigures
from tests.fakes.ledger import QWEN, book, cpu_page, reversal, vlm_call
from tests.unit.store.pool_parts import LEASE_S, Pool, entry_of


@pytest.fixture
def figures(store: Store) -> PoolFigures:
    return PoolFigures(store.database)


def total(figures: PoolFigures, name: str, **wanted: object) -> int:
    return sum(
        getattr(booked, name)
        for key, booked in figures.booked(None, None).items()
        if all(getattr(key, field) == value for field, value in wanted.items())
    )


def test_what_was_booked_is_told_apart_by_route_verdict_and_team(store: Store, figures: PoolFigures) -> None:
    book(
        store,
        cpu_page("2026-11-02", cost_centre="harbour/ships", reason="skew"),
        cpu_page("2026-11-02", cost_centre="harbour/cranes", reason="skew"),
        cpu_page("2026-11-03", cost_centre="museum", route=None),
        vlm_call("2026-11-03", cost_centre="museum"),
        vlm_call("2026-11-03", cost_centre="museum", attempt=2, outcome="truncated", route=None),
    )
    key = BookedKey(
        kind=LedgerKind.CPU_PAGE,
        team="harbour",
        currency="USD",
        model_id=None,
        route="ocr",
        outcome="read",
        reason="skew",
    )
    assert figures.booked(None, None)[key].entries == 2
    assert total(figures, "entries", kind=LedgerKind.VLM_CALL, outcome="truncated", model_id=QWEN) == 1
    assert total(figures, "prompt_tokens", team="museum") == 2 * 2_330


def test_days_bound_what_is_summed(store: Store, figures: PoolFigures) -> None:
    book(
        store,
        *(cpu_page(day, page_number=n) for n, day in enumerate(("2026-11-01", "2026-11-02", "2026-11-03"))),
    )

    def entries(first: str | None, end: str | None) -> int:
        return sum(booked.entries for booked in figures.booked(first, end).values())

    assert [
        entries(None, "2026-11-02"),
        entries("2026-11-02", "2026-11-03"),
        entries("2026-11-02", None),
    ] == [1, 1, 2]


def test_a_reversal_is_a_sum_of_its_own(store: Store, figures: PoolFigures) -> None:
    mistaken = vlm_call("2026-11-05")
    book(store, mistaken)
    book(store, reversal(mistaken, "2026-11-06"))
    assert total(figures, "cost_micro", kind=LedgerKind.VLM_CALL) == mistaken.cost_micro
    assert total(figures, "cost_micro", kind=LedgerKind.REVERSAL) == -(mistaken.cost_micro or 0)


def test_entries_without_a_price_are_counted(store: Store, figures: PoolFigures) -> None:
    book(store, cpu_page("2026-11-02", cost_micro=None), cpu_page("2026-11-02", page_number=2))
    assert total(figures, "unpriced_entries") == 1


def test_dead_pages_are_counted_by_their_code(store: Store, figures: PoolFigures) -> None:
    pool = Pool(store)
    done = pool.submit(3)
    assert figures.dead_pages() == {}
    claimed = store.pool.claim_pages(owner="me", lease_s=LEASE_S, max_pages=2, weights={})
    assert claimed is not None
    for page_number in claimed.page_numbers:
        store.pages.fail_page(
            done.reading_id,
            page_number,
            owner="me",
            code=WorkerLost.code,
            message="lost",
            entry=entry_of(done.reading_id, page_number, done.document.document_id, done.submission_id),
        )
    assert figures.dead_pages() == {WorkerLost.code: 2}


def test_open_submissions_and_their_age(store: Store, figures: PoolFigures) -> None:
    assert figures.open_submissions().count == 0
    before_s = time.time()
    pool = Pool(store)
    first, _ = pool.open(), pool.open()
    assert store.pool.progress(first) is not None
    oldest_at_s = figures.open_submissions().oldest_at_s
    assert figures.open_submissions().count == 2
    assert oldest_at_s is not None
    assert before_s <= oldest_at_s <= time.time()


def test_a_place_whose_lease_has_ended_is_free(store: Store, figures: PoolFigures) -> None:
    assert store.slots.acquire("qwen http://gpu", 3, "me", 600.0) is not None
    assert store.slots.acquire("qwen http://gpu", 3, "you", -1.0) is not None
    [places] = figures.places()
    assert (places.service, places.capacity, places.taken) == ("qwen http://gpu", 3, 1)
