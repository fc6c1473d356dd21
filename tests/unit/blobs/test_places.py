"""Modes, full disks and missing mounts of the folders that blobs are kept in."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from models.errors import StoreUnavailable
from pipeline.blobs import BlobStore, open_blobs
from pipeline.settings import BlobSettings


def _kept(blobs: BlobStore, folder: Path, content: bytes = b"one page") -> Path:
    source = folder / "source"
    source.write_bytes(content)
    snapshot = blobs.take(source, max_bytes=2**30)
    blobs.keep(snapshot)
    return blobs.local_path(snapshot.document_id)


def _modes(root: Path) -> set[tuple[str, int]]:
    return {
        ("folder" if path.is_dir() else "file", stat.S_IMODE(path.stat().st_mode)) for path in root.rglob("*")
    }


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_the_state_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "home")
    _kept(blobs, tmp_path)
    blobs.write_result(1, ".md", b"text")
    assert _modes(tmp_path / "home") == {("folder", 0o700), ("file", 0o600)}


@pytest.mark.parametrize(("mode", "file_mode"), [(0o700, 0o600), (0o2770, 0o660), (0o755, 0o644)])
def test_a_share_is_as_open_as_its_own_folder(tmp_path: Path, mode: int, file_mode: int) -> None:
    share = tmp_path / "share"
    share.mkdir()
    share.chmod(mode)
    blobs = open_blobs(tmp_path / "home", BlobSettings(url=share.as_uri()))
    _kept(blobs, tmp_path)
    blobs.write_result(1, ".md", b"text")
    assert _modes(share) == {("folder", mode), ("file", file_mode)}


def test_a_share_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    share = tmp_path / "not mounted"
    blobs = open_blobs(tmp_path / "home", BlobSettings(url=share.as_uri()))
    with pytest.raises(StoreUnavailable, match="mount or make the folder that DOCTRIAGE_BLOBS__URL names"):
        _kept(blobs, tmp_path)
    assert not share.exists()


def test_a_share_that_goes_away_is_waited_for_and_not_made(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    blobs = open_blobs(tmp_path / "home", BlobSettings(url=share.as_uri()))
    document_id = _kept(blobs, tmp_path).name
    blobs.write_result(1, ".md", b"text")
    share.rename(tmp_path / "away")

    for ask in (
        lambda: blobs.local_path(document_id),
        lambda: blobs.byte_count(document_id),
        lambda: blobs.write_result(2, ".md", b"text"),
        lambda: blobs.results(1),
        blobs.require_readable,
        lambda: blobs.open_result(1, ".md").__enter__(),
    ):
        with pytest.raises(StoreUnavailable, match="mount or make the folder"):
            ask()
    assert not share.exists()

    share.mkdir()
    with pytest.raises(StoreUnavailable, match="mount or make the folder"):
        blobs.local_path(document_id)

    share.rmdir()
    (tmp_path / "away").rename(share)
    assert blobs.local_path(document_id).is_file()
    assert blobs.results(1) == (".md",)


def test_a_place_that_cannot_be_written_names_the_settings_that_name_it(tmp_path: Path) -> None:
    (tmp_path / "incoming").touch()
    blobs = open_blobs(tmp_path / "home", BlobSettings(url=tmp_path.as_uri()))
    with pytest.raises(StoreUnavailable, match="another folder in DOCTRIAGE_BLOBS__URL or DOCTRIAGE_HOME"):
        blobs.require()


@contextmanager
def _small_files_only() -> Iterator[None]:
    """The system lets this process write no file beyond 64 KiB, as a quota would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_write_that_the_system_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "home")
    (tmp_path / "source").write_bytes(bytes(2**20))
    with _small_files_only():
        with pytest.raises(StoreUnavailable, match="File too large"):
            blobs.take(tmp_path / "source", max_bytes=2**30)
        with pytest.raises(StoreUnavailable, match="File too large"):
            blobs.write_result(1, ".md", bytes(2**20))
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file()]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    blobs = BlobStore(tmp_path / "home")
    (tmp_path / "source").write_bytes(b"one page")
    snapshot = blobs.take(tmp_path / "source", max_bytes=100)

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StoreUnavailable, match="the disk is full; free some space"):
        blobs.keep(snapshot)
    with pytest.raises(StoreUnavailable, match="the disk is full; free some space"):
        blobs.write_result(1, ".md", b"text")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_disk_that_fills_up_while_an_output_is_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_the_full_device(*, dir: Path, prefix: str) -> tuple[int, str]:  # noqa: A002
        path = dir / "output"
        path.symlink_to("/dev/full")
        return os.open(path, os.O_RDWR), str(path)

    monkeypatch.setattr("tempfile.mkstemp", on_the_full_device)
    blobs = BlobStore(tmp_path / "home")
    with pytest.raises(StoreUnavailable, match="the disk is full; free some space"):
        blobs.write_result(1, ".md", lambda stream: stream.write(b"text " * 100_000))
    assert not list((tmp_path / "home" / "incoming").iterdir())
