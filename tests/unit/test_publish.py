"""Files are written whole or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from models.errors import OutputNotWritable
from pipeline.publish import DiskFull, not_writable, prepare_folder, write_rows, written_whole

RUN_FILES = ("pages.jsonl", "failures.jsonl")


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "a.md"
    with written_whole(target) as stream:
        stream.write("ü")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "ü"
    assert [path.name for path in target.parent.iterdir()] == ["a.md"]


def test_folders_are_made_however_deep(tmp_path: Path) -> None:
    target = tmp_path / ("d/" * 1_100) / "a.md"
    try:
        with written_whole(target) as stream:
            stream.write("deep")
        assert target.read_text(encoding="utf-8") == "deep"
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


def test_an_error_on_the_way_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(ZeroDivisionError), written_whole(target) as stream:
        stream.write(f"half{1 / 0}")
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]


def test_files_are_as_readable_as_the_users_mask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_rows(tmp_path / "rows.jsonl", [{"a": 1}])
    finally:
        os.umask(before)
    assert (tmp_path / "rows.jsonl").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("in_the_way", ["folder where the file goes", "file where the folder goes"])
def test_what_is_in_the_way_is_named(tmp_path: Path, in_the_way: str) -> None:
    if in_the_way.startswith("folder"):
        (tmp_path / "sub" / "a.md").mkdir(parents=True)
    else:
        (tmp_path / "sub").write_bytes(b"")
    with pytest.raises(OutputNotWritable, match="sub"), written_whole(tmp_path / "sub" / "a.md") as stream:
        stream.write("text")


def test_a_full_disk_is_its_own_error(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device")
    assert isinstance(not_writable(tmp_path, full), DiskFull)
    assert "free some space" in str(not_writable(tmp_path, full))


def test_an_output_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(OutputNotWritable, match="is a file, not a folder"):
        prepare_folder(tmp_path / "out", RUN_FILES)
    with pytest.raises(OutputNotWritable):
        prepare_folder(tmp_path / "out" / "deeper", RUN_FILES)
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_preparing_a_folder_again_keeps_what_is_in_it(tmp_path: Path) -> None:
    prepare_folder(tmp_path, RUN_FILES)
    (tmp_path / "pages.jsonl").write_text("{}\n", encoding="utf-8")
    prepare_folder(tmp_path, RUN_FILES)
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == "{}\n"
