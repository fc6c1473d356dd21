"""Files that were read are moved, and never over another."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from workers.watch_files import FileVersion
from workers.watch_look import version_of
from workers.watch_moves import NotMoved, move_file, write_report


@pytest.fixture(params=["one file system", "two file systems"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to move, on the file system of where it goes, or on another."""
    path = tmp_path / "in" / "letters" / "scan.pdf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"the scan")
    if request.param == "two file systems":
        rename = Path.replace

        def across(self: Path, target: Path) -> Path:
            if self.is_relative_to(tmp_path / "in"):
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            return rename(self, target)

        monkeypatch.setattr(Path, "replace", across)
    return path


def test_a_file_keeps_its_folders_and_its_name(source: Path, tmp_path: Path) -> None:
    target = move_file(source, tmp_path / "done", "letters/scan.pdf", version_of(source))
    assert target == tmp_path / "done" / "letters" / "scan.pdf"
    assert target.read_bytes() == b"the scan"
    assert not source.exists()
    assert [path.name for path in target.parent.iterdir()] == ["scan.pdf"]


def test_a_name_that_is_taken_is_numbered(source: Path, tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "scan.pdf").write_bytes(b"another")
    (tmp_path / "done" / "scan (2).pdf").write_bytes(b"another")
    target = move_file(source, tmp_path / "done", "scan.pdf", version_of(source))
    assert target.name == "scan (3).pdf"
    assert (tmp_path / "done" / "scan.pdf").read_bytes() == b"another"


def test_a_file_that_has_changed_stays(source: Path, tmp_path: Path) -> None:
    with pytest.raises(NotMoved, match="has changed"):
        move_file(source, tmp_path / "done", "scan.pdf", FileVersion(byte_count=1, mtime_ns=1))
    assert source.read_bytes() == b"the scan"
    assert list((tmp_path / "done").iterdir()) == []


def test_a_place_that_cannot_be_made_leaves_the_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "done").write_bytes(b"a file")
    with pytest.raises(NotMoved, match="done"):
        move_file(source, tmp_path / "done", "scan.pdf", version_of(source))
    assert source.exists()


def test_why_a_file_failed_is_said_beside_it(tmp_path: Path) -> None:
    moved = tmp_path / "scan.pdf"
    first = write_report(moved, "scan.pdf: damaged\ud800")
    assert first.name == "scan.pdf.error.txt"
    assert first.read_text(encoding="utf-8").startswith("scan.pdf: damaged")
    assert write_report(moved, "again") != first
    assert write_report(tmp_path / ("ü" * 120 + ".pdf"), "long").exists()
