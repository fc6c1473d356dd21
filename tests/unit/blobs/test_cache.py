"""Copies of a network store's blobs: bounded, and never taken from whoever uses one."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from pipeline.blobs.cache import BlobCache, CopyDamaged

MAX_BYTES = 10_000
BLOB_BYTES = 2_000


@dataclass(slots=True)
class Origin:
    """What copies are fetched from; ``arrives`` is what arrives, where that is something else."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    arrives: list[bytes] = field(default_factory=list)

    def add(self, number: int) -> str:
        content = bytes([number]) * BLOB_BYTES
        document_id = hashlib.sha256(content).hexdigest()
        self.blobs[document_id] = content
        return document_id

    def fetch(self, document_id: str) -> Iterator[bytes]:
        self.fetched.append(document_id)
        yield self.arrives.pop(0) if self.arrives else self.blobs[document_id]


@pytest.fixture
def origin() -> Origin:
    return Origin()


@pytest.fixture
def cache(origin: Origin, tmp_path: Path) -> BlobCache:
    return BlobCache(tmp_path / "cache", max_bytes=MAX_BYTES, fetch=origin.fetch)


def _read(cache: BlobCache, document_id: str) -> bytes:
    with cache.lent(document_id, lambda: BLOB_BYTES) as path:
        return path.read_bytes()


def _held_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("cache/??/*"))


def test_a_copy_is_fetched_once_and_private(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    document_id = origin.add(1)
    assert _read(cache, document_id) == _read(cache, document_id) == origin.blobs[document_id]
    assert origin.fetched == [document_id]
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "cache").rglob("*")}
    assert modes == {0}


def test_the_copies_used_longest_ago_make_room(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    ids = [origin.add(number) for number in range(5)]
    for age_s, document_id in zip((50, 40, 30, 20, 10), ids, strict=True):
        _read(cache, document_id)
        [copy] = (tmp_path / "cache").glob(f"??/{document_id}")
        used_ns = copy.stat().st_mtime_ns - age_s * 10**9
        os.utime(copy, ns=(used_ns, copy.stat().st_mtime_ns))
    _read(cache, ids[0])  # used again, and so not the next to go
    newest = origin.add(9)
    _read(cache, newest)
    assert _held_bytes(tmp_path) <= MAX_BYTES
    held = set(cache.document_ids())
    assert {ids[0], newest} <= held
    assert ids[1] not in held


def test_many_copies_stay_within_the_bound(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    for number in range(40):
        document_id = origin.add(number)
        assert _read(cache, document_id) == origin.blobs[document_id]
        assert _held_bytes(tmp_path) <= MAX_BYTES


def test_a_copy_in_use_stays_however_little_room_there_is(
    cache: BlobCache, origin: Origin, tmp_path: Path
) -> None:
    used = origin.add(200)
    with cache.lent(used, lambda: BLOB_BYTES) as path:
        for number in range(20):
            _read(cache, origin.add(number))
        assert path.read_bytes() == origin.blobs[used]
    for number in range(20, 30):
        _read(cache, origin.add(number))
    assert used not in cache.document_ids()


def test_a_copy_that_another_process_uses_stays(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    used = origin.add(200)
    _read(cache, used)
    ours, theirs = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(
        target=_use_until_told, args=(theirs, tmp_path / "cache", used)
    )
    other.start()
    try:
        ours.recv()
        for number in range(20):
            _read(cache, origin.add(number))
        assert used in cache.document_ids()
    finally:
        ours.send("enough")
        other.join()
        ours.close()
        theirs.close()
    for number in range(20, 30):
        _read(cache, origin.add(number))
    assert used not in cache.document_ids()


def _use_until_told(connection: Connection, folder: Path, document_id: str) -> None:
    cache = BlobCache(folder, max_bytes=MAX_BYTES, fetch=_nothing)
    with cache.lent(document_id, lambda: BLOB_BYTES):
        connection.send("in use")
        connection.recv()


def _nothing(document_id: str) -> Iterator[bytes]:
    raise AssertionError(f"{document_id} is there already")


def test_a_document_larger_than_the_cache_is_lent_all_the_same(origin: Origin, tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "cache", max_bytes=BLOB_BYTES // 2, fetch=origin.fetch)
    document_id = origin.add(1)
    assert _read(cache, document_id) == origin.blobs[document_id]


@pytest.mark.parametrize("counted", ["", "no number", "-5", "9" * 20, "1"])
def test_a_lost_count_of_bytes_is_made_again(
    cache: BlobCache, origin: Origin, tmp_path: Path, counted: str
) -> None:
    ids = [origin.add(number) for number in range(4)]
    for document_id in ids:
        _read(cache, document_id)
    (tmp_path / "cache" / "locks" / "bytes").write_text(counted)
    for number in range(4, 30):
        _read(cache, origin.add(number))
    assert _held_bytes(tmp_path) <= 2 * MAX_BYTES


def test_what_arrives_damaged_is_fetched_once_more(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    document_id = origin.add(1)
    origin.arrives = [b"cut sho"]
    assert _read(cache, document_id) == origin.blobs[document_id]
    other_id = origin.add(2)
    origin.arrives = [b"cut sho", b"again"]
    with pytest.raises(CopyDamaged):
        _read(cache, other_id)
    assert cache.document_ids() == (document_id,)
    assert not list((tmp_path / "cache" / "incoming").iterdir())


def test_threads_that_want_the_same_copy_fetch_it_once(cache: BlobCache, origin: Origin) -> None:
    document_id = origin.add(1)
    threads = [threading.Thread(target=_read, args=(cache, document_id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert origin.fetched == [document_id]


def test_a_fetch_that_breaks_off_leaves_nothing(cache: BlobCache, origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        _read(cache, "ab" * 32)
    assert not list((tmp_path / "cache" / "incoming").iterdir())
    assert cache.document_ids() == ()
