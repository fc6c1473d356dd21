"""Which files of a folder a watch sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.watch_files import FileVersion
from workers.watch_look import GONE, IGNORED, FolderAway, WatchedFolder, is_ignored, version_of


@pytest.mark.parametrize(
    ("name", "is_passed_over"),
    [
        ("scan.pdf", False),
        ("letters/scan 1.TIF", False),
        ("scan.pdf.part", True),
        ("scan.PDF.CRDOWNLOAD", True),
        ("scan.pdf.filepart", True),
        ("upload.tmp", True),
        ("~$report.docx", True),
        ("letters/~$report.docx", True),
        ("THUMBS.DB", True),
        ("letters/Desktop.ini", True),
        ("@eaDir/scan.pdf/SYNOPHOTO_THUMB_XL.jpg", True),
        ("#recycle/old.pdf", True),
        ("failed/scan.pdf.error.txt", True),
        ("scan.pdf~", True),
        ("partners.pdf", False),
    ],
)
def test_names_that_programs_give_to_unfinished_files_are_passed_over(
    name: str, is_passed_over: bool
) -> None:
    assert is_ignored(name, IGNORED) is is_passed_over


@pytest.mark.parametrize("pattern", ["*.PDF", "drafts", "drafts/*", "drafts/a.*"])
def test_a_pattern_fits_a_name_a_folder_or_the_whole_path(pattern: str) -> None:
    assert is_ignored("drafts/a.pdf", [pattern])
    assert not is_ignored("final/b.tif", [pattern])


def names(folder: WatchedFolder, *taken: str) -> list[str]:
    return [sighting.source.name for sighting in folder.look(taken)]


def test_subfolders_are_walked_and_those_for_results_are_not(tmp_path: Path) -> None:
    for name in ("a.pdf", "letters/b.pdf", "out/c.pdf", "done/d.pdf", "letters/.hidden.pdf", "x.part"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"1")
    folder = WatchedFolder(path=tmp_path, left_out=(tmp_path / "out", tmp_path / "done"))
    assert names(folder) == ["a.pdf", "letters/b.pdf"]


def test_a_name_that_another_document_bears_is_given_a_number(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(b"1")
    folder = WatchedFolder(path=tmp_path, left_out=())
    assert names(folder, "scan.pdf") == ["scan (2).pdf"]
    assert names(folder, "scan.pdf", "scan (2).pdf") == ["scan (3).pdf"]


def test_a_folder_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FolderAway, match="in: "):
        WatchedFolder(path=tmp_path / "in", left_out=()).look(())


def test_a_version_is_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"123")
    assert version_of(path) == FileVersion(byte_count=3, mtime_ns=path.stat().st_mtime_ns)
    assert version_of(tmp_path / "gone.pdf") == GONE
