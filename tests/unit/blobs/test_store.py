"""Our copy of a source's bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from models.errors import BlobDamaged, SourceUnreadable, StoreUnavailable, TooManyBytes
from pipeline.blobs import BlobStore, sha256_of


def test_the_copy_is_named_by_its_bytes_and_outlives_the_source(tmp_path: Path) -> None:
    source = tmp_path / "a.pdf"
    source.write_bytes(b"page" * 700_000)
    blobs = BlobStore(tmp_path / "home")
    snapshot = blobs.take(source, max_bytes=2**30)
    blobs.keep(snapshot)
    source.unlink()
    kept = blobs.local_path(snapshot.document_id)
    assert snapshot.document_id == hashlib.sha256(b"page" * 700_000).hexdigest()
    assert sha256_of(kept) == snapshot.document_id
    assert kept.stat().st_mode & 0o077 == 0


def test_equal_bytes_are_kept_once_and_nothing_is_left_over(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "home")
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"same")
        blobs.keep(blobs.take(tmp_path / name, max_bytes=10))
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(files) == 1


def test_a_blob_that_was_damaged_is_mended_by_the_next_copy(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"good")
    blobs = BlobStore(tmp_path / "home")
    snapshot = blobs.take(tmp_path / "a", max_bytes=10)
    blobs.keep(snapshot)
    kept = blobs.local_path(snapshot.document_id)
    kept.write_bytes(b"")
    with pytest.raises(BlobDamaged, match="submit the file again"):
        blobs.local_path(snapshot.document_id)
    blobs.keep(blobs.take(tmp_path / "a", max_bytes=10))
    assert kept.read_bytes() == b"good"


def test_one_blob_that_cannot_be_read_is_no_reason_to_wait_for_the_store(tmp_path: Path) -> None:
    """Whoever waited for it would never get to the documents behind it."""
    (tmp_path / "a").write_bytes(b"good")
    blobs = BlobStore(tmp_path / "home")
    snapshot = blobs.take(tmp_path / "a", max_bytes=10)
    blobs.keep(snapshot)
    kept = blobs.local_path(snapshot.document_id)
    kept.unlink()
    kept.symlink_to(kept)
    with pytest.raises(BlobDamaged, match=r"cannot be read \(.*\); check that the workers may read it"):
        blobs.local_path(snapshot.document_id)
    blobs.keep(blobs.take(tmp_path / "a", max_bytes=10))
    assert kept.read_bytes() == b"good"
    kept.unlink()
    kept.parent.rmdir()
    kept.parent.write_bytes(b"a file where the folder should be")
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        blobs.local_path(snapshot.document_id)


def test_a_file_over_the_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"12345")
    with pytest.raises(TooManyBytes, match="5 bytes"):
        BlobStore(tmp_path / "home").take(tmp_path / "big", max_bytes=4)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "loop", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "device":
        path = Path("/dev/zero")
    with pytest.raises(SourceUnreadable):
        BlobStore(tmp_path / "home").take(path, max_bytes=100)


def test_a_state_folder_that_cannot_hold_blobs_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "home").write_bytes(b"a file where the folder should be")
    with pytest.raises(StoreUnavailable, match="DOCTRIAGE_HOME"):
        BlobStore(tmp_path / "home").take(tmp_path / "a", max_bytes=100)


def test_half_made_copies_of_killed_runs_are_removed_when_they_are_old(tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for name, age_s in (("old", 200_000), ("new", 10)):
        (incoming / name).write_bytes(b"x")
        at_s = (incoming / name).stat().st_mtime - age_s
        os.utime(incoming / name, (at_s, at_s))
    BlobStore(tmp_path).remove_abandoned()
    assert [path.name for path in incoming.iterdir()] == ["new"]


def test_what_a_dead_owner_left_unfinished_goes_at_once(tmp_path: Path) -> None:
    owners = ("host/boot/1/1", "host/boot/2/2", None)
    for owner in owners:
        with BlobStore(tmp_path, owner=owner).incoming() as (writer, _):
            writer.write(b"half a document")
    store = BlobStore(tmp_path)
    store.remove_abandoned()
    assert len(list((tmp_path / "incoming").iterdir())) == 3
    store.remove_abandoned(lambda owner: owner != "host/boot/1/1")
    left = sorted(path.name for path in (tmp_path / "incoming").iterdir())
    assert len(left) == 2
    assert not any(name.startswith("host+boot+1+1~") for name in left)
