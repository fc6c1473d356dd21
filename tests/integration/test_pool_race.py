"""Many workers at one database, some of which end without a word: every page is read once, every attempt is booked,
and no more places are taken than there are."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from models.pool import SubmissionState
from pipeline.chargeback.price_book import load_price_book
from pipeline.store import Store, connect_store, open_store
from tests.unit.store.pool_parts import Pool
from workers.owner import is_alive

ROOT = Path(__file__).parent.parent.parent
PAGES = (1, 2, 5, 9, 14, 3)
WORKERS = 4
CLAIMS_OF_THE_LOST = (1, 2, 3)
CAPACITY = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> SecretStr | None:
    """None for the file in the home."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def start(home: Path, url: SecretStr | None, claims: int) -> subprocess.Popen[bytes]:
    place = "" if url is None else url.get_secret_value()
    command = [sys.executable, "-m", "tests.fakes.pool_racer", home, place, str(claims)]
    return subprocess.Popen(command, cwd=ROOT)


def lost_after_all(store: Store, home: Path, url: SecretStr | None) -> int:
    """Workers are started, and one more for each that was lost, until all is finished; how many were lost."""
    still_to_lose = list(CLAIMS_OF_THE_LOST)
    ready = home / "ready"
    ready.mkdir()
    running = [start(home, url, still_to_lose.pop(0) if still_to_lose else 0) for _ in range(WORKERS)]
    while len(list(ready.iterdir())) < WORKERS:
        assert all(process.poll() is None for process in running)
        time.sleep(0.05)
    (home / "go").touch()
    lost = 0
    while running:
        time.sleep(0.2)
        ended = [process for process in running if process.poll() is not None]
        running = [process for process in running if process not in ended]
        for process in ended:
            assert process.returncode in (0, 1)
            if process.returncode:
                lost += 1
                running.append(start(home, url, 0))
        store.pool.reclaim(is_alive, max_losses=10, price_book=load_price_book())
        store.pool.repair()
    return lost


@pytest.mark.slow
def test_every_page_is_read_once_whoever_is_lost(tmp_path: Path, url: SecretStr | None) -> None:
    store = open_store(tmp_path, url)
    pool = Pool(store)
    for number, pages in enumerate(PAGES):
        pool.submit(pages, f"team {number % 2}")
    lost = lost_after_all(store, tmp_path, url)
    assert 1 <= lost <= len(CLAIMS_OF_THE_LOST), "others may have read all before one had its claims"
    assert store.pool.submissions(limit=10, state=SubmissionState.OPEN) == ()
    with store.database.read() as session:
        pages_by_state = session.execute(text("SELECT state, count(*) FROM pages GROUP BY state")).all()
        outcomes = Counter(session.scalars(text("SELECT outcome FROM ledger")).all())
        attempts, losses = session.execute(text("SELECT sum(attempts), sum(losses) FROM pages")).one()
    assert [tuple(row) for row in pages_by_state] == [("done", sum(PAGES))]
    assert outcomes == {"read": sum(PAGES), "worker_lost": lost}
    assert (attempts, losses) == (sum(PAGES) + lost, lost)
    store.close()


def test_no_more_places_are_taken_than_there_are_however_many_want_one(
    tmp_path: Path, postgres_url: SecretStr
) -> None:
    open_store(tmp_path, postgres_url).close()
    counting = threading.Lock()
    taken: set[int] = set()
    most = 0
    served = Counter[str]()

    def compete(name: str) -> None:
        nonlocal most
        store = connect_store(tmp_path, postgres_url)
        while served[name] < 10:
            slot = store.slots.acquire("vlm", CAPACITY, name, 600)
            if slot is None:
                continue
            with counting:
                assert slot not in taken
                taken.add(slot)
                most = max(most, len(taken))
            served[name] += 1
            time.sleep(0.01)  # so that others find it taken
            with counting:
                taken.remove(slot)
            store.slots.release("vlm", slot, name)
        store.close()

    threads = [threading.Thread(target=compete, args=(f"worker {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(served.values()) == [10] * 6
    assert 1 < most <= CAPACITY
