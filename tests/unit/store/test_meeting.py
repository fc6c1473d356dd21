"""Many at the same database at once: threads with connections of their own, and processes."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from models.document import Document, MediaType
from models.page import Route
from models.tables import PageState
from pipeline.store import Store, connect_store, open_store
from pipeline.store.page_statements import make_reading, read_again
from tests.unit.store.booking import BOOK, cpu_entry

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = 24
DOCUMENT = Document(document_id="ab" * 32, media_type=MediaType.PDF, byte_count=10, page_count=PAGES)
FINGERPRINT = "f" * 64

Connect = Callable[[], Store]
Waits = Callable[[], bool]


@pytest.fixture
def connect(tmp_path: Path, database_url: SecretStr | None) -> Connect:
    return lambda: connect_store(tmp_path, database_url)


@pytest.fixture
def reading_id(store: Store) -> int:
    store.pages.save_document(DOCUMENT)
    return store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False).reading_id


def finish(store: Store, reading_id: int, page_number: int, owner: str) -> bool:
    return store.pages.finish_page(
        reading_id,
        page_number,
        owner=owner,
        page={"by": owner},
        summary={},
        route=Route.OCR,
        elapsed_s=1,
        entry=cpu_entry(reading_id, page_number),
    )


def finish_all(store: Store, reading_id: int) -> None:
    store.pages.claim_pages(reading_id, range(1, PAGES + 1), owner="me", lease_s=60)
    for number in range(1, PAGES + 1):
        assert finish(store, reading_id, number, "me")


def test_whoever_opens_first_makes_the_tables_and_the_others_find_them(
    tmp_path: Path, request: pytest.FixtureRequest, database_url: SecretStr | None
) -> None:
    url = None if database_url is None else request.getfixturevalue("empty_postgres_url")
    home = tmp_path / "fresh"
    with ThreadPoolExecutor(6) as threads:
        stores = list(threads.map(lambda _: open_store(home, url), range(6)))
    for number, store in enumerate(stores):
        store.pages.save_document(DOCUMENT)
        opened = store.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
        assert opened.reading_id == 1, number
        store.close()


def test_one_reading_comes_of_many_who_open_it_at_once(store: Store, connect: Connect) -> None:
    def open_it(_: int) -> tuple[int, tuple[int, ...]]:
        own = connect()
        own.pages.save_document(DOCUMENT)
        opened = own.pages.open_reading(DOCUMENT, FINGERPRINT, force=False)
        own.close()
        return opened.reading_id, opened.pending

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(open_it, range(6))) == {(1, tuple(range(1, PAGES + 1)))}


def test_a_reading_is_not_completed_while_it_is_opened_anew(
    store: Store, reading_id: int, connect: Connect, waits: Waits
) -> None:
    finish_all(store, reading_id)
    own = connect()
    with ThreadPoolExecutor(1) as thread:
        with store.database.write() as session:
            make_reading(session, DOCUMENT, FINGERPRINT, None, is_fresh=False)
            session.execute(read_again(reading_id, PageState.DONE))
            completes = thread.submit(own.pages.complete_reading, reading_id)
            while not (completes.done() or waits()):
                time.sleep(0.01)
        assert not completes.result()
    assert not own.pages.is_complete(reading_id)
    own.close()


def test_the_last_page_completes_the_reading_whichever_is_last(
    store: Store, reading_id: int, connect: Connect
) -> None:
    """Each of many finishes one page and then asks; one of them has completed it."""
    barrier = threading.Barrier(PAGES // 4)

    def finish_some(first: int) -> int:
        own, owner = connect(), f"t{first}"
        numbers = range(first, PAGES + 1, PAGES // 4)
        assert own.pages.claim_pages(reading_id, numbers, owner=owner, lease_s=60) == tuple(numbers)
        barrier.wait()
        completed = 0
        for number in numbers:
            assert finish(own, reading_id, number, owner)
            completed += own.pages.complete_reading(reading_id)
        own.close()
        return completed

    with ThreadPoolExecutor(PAGES // 4) as threads:
        assert sum(threads.map(finish_some, range(1, PAGES // 4 + 1))) == 1
    assert store.pages.is_complete(reading_id)


def test_nobody_waits_for_one_who_waits_for_him(store: Store, reading_id: int, connect: Connect) -> None:
    """Claims of many pages in any order, pages given back, leases reclaimed and the reading opened anew, all at
    once: nothing fails, and what a page holds was written by who held it."""
    finished: Counter[int] = Counter()

    def work(seed: int) -> Counter[int]:
        own, owner, chance = connect(), f"t{seed}", random.Random(seed)
        mine: Counter[int] = Counter()
        for _ in range(12):
            wanted = chance.sample(range(1, PAGES + 1), 8)
            claimed = own.pages.claim_pages(reading_id, wanted, owner=owner, lease_s=chance.choice([-1, 60]))
            for number in claimed[: len(claimed) // 2]:
                mine[number] += finish(own, reading_id, number, owner)
            match chance.randrange(4):
                case 0:
                    own.pages.reclaim_leases(lambda owner: True)
                case 1:
                    own.pages.open_reading(DOCUMENT, FINGERPRINT, force=chance.random() < 0.5)
                case 2:
                    own.transcriptions.close_abandoned(BOOK)
            own.pages.release_leases(owner)
            own.pages.complete_reading(reading_id)
        own.close()
        return mine

    with ThreadPoolExecutor(5) as threads:
        for mine in threads.map(work, range(5)):
            finished += mine
    assert sum(finished.values()) > 0
    store.pages.claim_pages(reading_id, range(1, PAGES + 1), owner="last", lease_s=60)
    for record in list(store.pages.stream_pages(reading_id)):
        assert record.state == "done" or finish(store, reading_id, record.page_number, "last")
    store.pages.complete_reading(reading_id)
    assert store.pages.is_complete(reading_id)


CLAIMS = """
import sys
from pathlib import Path
from pydantic import SecretStr
from models.page import Route
from pipeline.store import connect_store
from tests.unit.store.booking import cpu_entry

home, url, reading_id, owner = sys.argv[1:]
store = connect_store(Path(home), SecretStr(url) if url else None)
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 25):
    if store.pages.claim_pages(int(reading_id), [number], owner=owner, lease_s=60):
        store.pages.finish_page(
            int(reading_id), number, owner=owner, page={"by": owner}, summary={}, route=Route.OCR, elapsed_s=1,
            entry=cpu_entry(int(reading_id), number),
        )
        print(number, store.pages.complete_reading(int(reading_id)))
store.close()
"""


def test_processes_share_the_pages_and_one_completes_the_reading(
    store: Store, reading_id: int, tmp_path: Path, database_url: SecretStr | None
) -> None:
    url = "" if database_url is None else database_url.get_secret_value()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMS, tmp_path, url, str(reading_id), f"p{number}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said = [line.split() for process in processes for line in process.communicate("go\n")[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(int(number) for number, _ in said) == list(range(1, PAGES + 1))
    assert [completed for _, completed in said].count("True") == 1
