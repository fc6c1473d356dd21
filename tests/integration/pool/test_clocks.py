"""A machine whose clock is wrong is told so before it can do harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from models.errors import SettingsError
from models.pool import Queue
from pipeline.settings import Settings, load_settings
from pipeline.store import PoolStore, open_store, pool_clock
from tests.server_parts import Broker
from workers.cluster import beat
from workers.cluster.clocks import require_clock_for_leases, require_clock_for_submitting
from workers.cluster.ingesting import PoolRequest, submit_sources
from workers.cluster.start_checks import _check
from workers.cluster.wishes import Wishes
from workers.cluster.worker_plan import plan_worker
from workers.events import IngestRequest

SetClock = Callable[[float], None]


@pytest.fixture
def clock_ahead_s(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    def set_clock(ahead_s: float) -> None:
        monkeypatch.setattr(pool_clock, "time", SimpleNamespace(time=lambda: time.time() + ahead_s))

    return set_clock


@pytest.fixture
def pool(tmp_path: Path, postgres_url: SecretStr) -> Iterator[PoolStore]:
    with closing(open_store(tmp_path, postgres_url)) as store:
        yield store.pool


@pytest.mark.parametrize(("ahead_s", "words"), [(75, "75 s ahead of"), (-75, "75 s behind")])
def test_a_clock_that_is_off_by_more_than_half_a_lease_is_refused(
    pool: PoolStore, clock_ahead_s: SetClock, ahead_s: float, words: str
) -> None:
    clock_ahead_s(ahead_s)
    with pytest.raises(SettingsError, match=f"clock is {words} the database server's, and at most 30 s"):
        require_clock_for_leases(pool, lease_s=60)
    with pytest.raises(SettingsError, match="at most 60 s are allowed; set both by NTP"):
        require_clock_for_submitting(pool)
    require_clock_for_leases(pool, lease_s=600)


def test_a_clock_that_is_off_by_little_is_not(pool: PoolStore, clock_ahead_s: SetClock) -> None:
    for ahead_s in (-20, 0, 20):
        clock_ahead_s(ahead_s)
        require_clock_for_leases(pool, lease_s=60)
        require_clock_for_submitting(pool)


def test_worker_beat_and_submitter_look_at_the_clock_first(
    tmp_path: Path,
    postgres_url: SecretStr,
    redis_broker: Broker,
    clock_ahead_s: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beat, "set_up_service_logs", lambda settings: None)
    settings = load_settings(
        {"home": tmp_path, "database_url": postgres_url, "pool": {"broker_url": redis_broker.url}}
    )
    clock_ahead_s(-75)
    for start in (
        lambda: _check(settings, plan_worker(settings, [Queue.ASSEMBLE])),
        lambda: beat.run_beat(settings, every_s=1, once=True),
        lambda: submit_nothing(settings, tmp_path),
    ):
        with pytest.raises(SettingsError, match="clock is 75 s behind"):
            start()


def submit_nothing(settings: Settings, folder: Path) -> None:
    submit_sources(
        (),
        PoolRequest(request=IngestRequest(paths=(), out_dir=folder / "out"), wishes=Wishes()),
        settings=settings,
        on_event=lambda event: None,
        on_busy=lambda error: None,
    )
