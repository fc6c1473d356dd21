"""The rows of all files that a watch has read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.errors import OutputNotWritable
from workers.watch_rows import RowFile


def lines(*rows: tuple[str, str]) -> str:
    return "".join(json.dumps({"source": source, "message": text}) + "\n" for source, text in rows)


def written(path: Path, *rows: tuple[str, str]) -> Path:
    path.write_text(lines(*rows), encoding="utf-8")
    return path


def test_rows_of_a_batch_come_after_those_that_are_there(tmp_path: Path) -> None:
    pages = RowFile(written(tmp_path / "pages.jsonl", ("a", "1"), ("a", "2")))
    pages.replace({"b"}, written(tmp_path / "new", ("b", "1")))
    pages.replace({"c"}, written(tmp_path / "new", ("c", "1")))
    expected = lines(("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"))
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == expected


def test_rows_of_a_file_that_is_read_again_replace_its_earlier_ones(tmp_path: Path) -> None:
    pages = RowFile(written(tmp_path / "pages.jsonl", ("a", "1"), ("b", "old"), ("b", "old"), ("c", "1")))
    pages.replace({"b"}, written(tmp_path / "new", ("b", "new")))
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == lines(
        ("a", "1"), ("c", "1"), ("b", "new")
    )
    pages.replace({"b", "c"}, tmp_path / "none")
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == lines(("a", "1"))
    pages.replace({"b"}, written(tmp_path / "new", ("b", "newest")))
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == lines(("a", "1"), ("b", "newest"))


def test_rows_of_files_that_are_not_settled_are_left_out(tmp_path: Path) -> None:
    pages = RowFile(tmp_path / "pages.jsonl")
    pages.replace({"a"}, written(tmp_path / "new", ("a", "1"), ("b", "half")))
    assert (tmp_path / "pages.jsonl").read_text(encoding="utf-8") == lines(("a", "1"))


def test_a_row_that_a_crash_broke_off_is_dropped(tmp_path: Path) -> None:
    path = written(tmp_path / "pages.jsonl", ("a", "1"), ("b", "1"))
    path.write_bytes(path.read_bytes()[:-9])
    RowFile(path).replace({"c"}, written(tmp_path / "new", ("c", "1")))
    assert path.read_text(encoding="utf-8") == lines(("a", "1"), ("c", "1"))


def test_rows_that_are_none_of_ours_stay(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text("a note\n[1]\n" + lines(("a", "1")), encoding="utf-8")
    RowFile(path).replace({"a"}, written(tmp_path / "new", ("a", "2")))
    assert path.read_text(encoding="utf-8") == "a note\n[1]\n" + lines(("a", "2"))


def test_a_separator_inside_a_text_ends_no_row(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    row = json.dumps({"source": "a", "message": "one\u2028two"}, ensure_ascii=False) + "\n"
    path.write_text(row, encoding="utf-8")
    RowFile(path).replace({"b"}, written(tmp_path / "new", ("b", "1")))
    assert path.read_text(encoding="utf-8") == row + lines(("b", "1"))


def test_the_message_of_a_failure_is_found_again(tmp_path: Path) -> None:
    failures = RowFile(written(tmp_path / "failures.jsonl", ("a", "cut"), ("b", "empty")))
    assert failures.message_of("b") == "empty"
    assert failures.message_of("c") is None


def test_a_folder_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritable):
        RowFile(tmp_path / "gone" / "pages.jsonl").replace({"a"}, written(tmp_path / "new", ("a", "1")))
