"""How much may wait in the pool: altogether, and of one team."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from models.errors import PoolBusy
from pipeline.store import PoolLimits, Store
from tests.unit.store.pool_parts import Pool, new_document
from tests.unit.store.upload_parts import new_upload

FEW = PoolLimits(max_waiting_pages=16, max_waiting_sources=4)
NOW = {"now": 4e9}


@pytest.fixture
def pool(store: Store) -> Pool:
    return Pool(store)


def send(pool: Pool, cost_centre: str, limits: PoolLimits = FEW) -> None:
    """A document of a submission that was opened while there was room for all."""
    pool.add(pool.open(cost_centre), limits=limits)


def upload(pool: Pool, cost_centre: str, limits: PoolLimits = FEW) -> None:
    note = pool.store.uploads.note_arriving("ab" * 32, "me")
    pool.store.uploads.accept(new_upload(cost_centre=cost_centre), arriving_blob_id=note, limits=limits)


def read_one(pool: Pool, *, awaits_vlm: bool = False) -> None:
    work = pool.claim()
    assert work is not None
    pool.finish(work, awaits_vlm=awaits_vlm)


def test_no_more_sources_wait_than_may(pool: Pool) -> None:
    for cost_centre in ("harbour", "mill", "quay", "attic"):
        send(pool, cost_centre)
    busy = r"4 documents wait, and at most 4 may .*MAX_WAITING_SOURCES.* 60 s"
    with pytest.raises(PoolBusy, match=busy):
        send(pool, "mill")
    with pytest.raises(PoolBusy, match=busy):
        pool.store.uploads.require_room(FEW, None)
    pool.take_in(new_document(1))
    send(pool, "mill")


def test_no_more_pages_wait_than_may_and_the_wait_follows_from_the_rate(pool: Pool) -> None:
    submitted = pool.submit(9)
    pool.submit(8, "mill")
    with pytest.raises(PoolBusy, match="17 pages wait, and at most 16 may") as refused:
        pool.open("quay", limits=FEW)
    assert refused.value.retry_after_s == 60
    read_one(pool)
    with pytest.raises(PoolBusy) as slow:
        pool.open("quay", limits=FEW)
    assert (
        slow.value.retry_after_s == 480
    )  # 1.6 pages over nine tenths, and one was settled in the last 300 s
    with pool.store.database.write() as session:
        session.execute(text("UPDATE pages SET settled_at_s = :now"), NOW)
    with pytest.raises(PoolBusy) as fast:
        pool.open("quay", limits=FEW)
    assert fast.value.retry_after_s == 29
    pool.store.pool.cancel(submitted.submission_id)
    assert pool.open("quay", limits=FEW)


@pytest.mark.parametrize("enter", [send, upload])
def test_one_team_has_three_quarters_of_the_sources_and_others_the_rest(
    pool: Pool, enter: Callable[[Pool, str], None]
) -> None:
    for cost_centre in ("harbour/crane", "harbour", "harbour/lock"):
        enter(pool, cost_centre)
    for cost_centre in ("harbour", "harbour/crane", "harbour/new"):
        with pytest.raises(
            PoolBusy,
            match=r"3 documents of this team wait, and of one team at most 3 may \(three quarters of "
            r"DOCTRIAGE_POOL__MAX_WAITING_SOURCES\); try again in 60 s",
        ):
            enter(pool, cost_centre)
        with pytest.raises(PoolBusy, match="the pool has enough of harbour for now"):
            pool.store.uploads.require_room(FEW, cost_centre)
        with pytest.raises(PoolBusy, match="harbour"):
            pool.open(cost_centre, limits=FEW)
    pool.store.uploads.require_room(FEW, None)
    pool.store.uploads.require_room(FEW, "harbours")
    enter(pool, "harbours")
    with pytest.raises(PoolBusy, match="4 documents wait, and at most 4 may"):
        enter(pool, "mill")


def test_one_team_has_three_quarters_of_the_pages_and_waits_for_its_own(pool: Pool) -> None:
    pool.submit(7, "harbour/crane")
    pool.submit(6, "harbour")
    pool.submit(2, "mill", priority=9)
    for awaits_vlm in (False, True):
        read_one(pool, awaits_vlm=awaits_vlm)
    enough = r"13 pages of this team wait, and of one team at most 12 may \(three quarters of .*_PAGES\)"
    with pytest.raises(PoolBusy, match=enough) as refused:
        pool.open("harbour/new", limits=FEW)
    assert refused.value.retry_after_s == 60  # what was settled is another team's
    pool.open("mill", limits=FEW)
    read_one(pool, awaits_vlm=True)
    with pytest.raises(PoolBusy, match=enough):
        pool.open("harbour", limits=FEW)
    read_one(pool)
    with pytest.raises(PoolBusy, match="12 pages of this team wait") as known:
        pool.open("harbour", limits=FEW)
    assert (
        known.value.retry_after_s == 360
    )  # 1.2 pages over nine tenths, and one was settled in the last 300 s


def test_a_long_count_holds_for_a_while_and_a_short_one_does_not(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(
        "pipeline.store.pool_bounds.time", SimpleNamespace(time=time.time, monotonic=lambda: now_s)
    )
    for pages, holds_s in ((999, 0.0), (2_500, 0.1)):
        submitted = pool.submit(pages)
        with pytest.raises(PoolBusy):
            pool.open(limits=FEW)
        pool.store.pool.cancel(submitted.submission_id)
        if holds_s:
            now_s += holds_s - 0.01
            with pytest.raises(PoolBusy, match=f"{pages:,} pages of this team"):
                pool.open(limits=FEW)
            now_s += 0.02
        assert pool.open(limits=FEW)
