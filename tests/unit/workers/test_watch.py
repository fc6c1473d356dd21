"""What becomes of files in a watched folder as time passes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.errors import BudgetUnusable, EngineUnavailable, OutputNotWritable, StoreUnreachable
from tests.fakes.watched import FakeFolder, whole
from workers.watch_events import (
    FileFailed,
    FileFailedForNow,
    FileMoved,
    FileNotMoved,
    FileRead,
    FileSeen,
    FileUnfinished,
    Waiting,
    WentOn,
)
from workers.watch_files import Outcome
from workers.watch_look import FolderAway


@pytest.fixture
def folder(tmp_path: Path) -> FakeFolder:
    return FakeFolder(tmp_path)


def when(folder: FakeFolder, kind: type) -> list[float]:
    return [passed_s for passed_s, event in folder.events if isinstance(event, kind)]


def write_in_pieces(folder: FakeFolder, stored: bytes, pauses_s: list[float]) -> float:
    """When the last piece is there."""
    step, now_s = len(stored) // len(pauses_s) + 1, 1.0
    folder.at(now_s, lambda: folder.put("scan.png", b""))
    for number, pause_s in enumerate(pauses_s, start=1):
        folder.at(now_s, lambda end=number * step: folder.put("scan.png", stored[:end]))
        now_s += pause_s
    return now_s - pauses_s[-1]


@pytest.mark.parametrize(
    "pauses_s", [[3, 8, 3, 12, 0], [12, 0], [0, 0, 30, 0], [55, 55, 0], [4.9, 4.9, 4.9, 4.9, 0]]
)
def test_a_file_that_is_written_with_pauses_is_read_once_and_whole(
    folder: FakeFolder, pauses_s: list[float]
) -> None:
    end_s = write_in_pieces(folder, whole("weekly log, third sheet"), pauses_s)
    folder.run(end_s + 200)
    assert folder.reader.batches == [["scan.png"]]
    assert folder.output("scan.png") == "weekly log, third sheet"
    assert folder.told(FileFailed) == folder.told(FileFailedForNow) == []
    assert folder.rows("failures.jsonl") == []
    assert end_s + 5 <= when(folder, FileRead)[0] <= end_s + 10


def test_a_pause_beyond_the_grace_gives_a_failure_that_the_rest_takes_back(folder: FakeFolder) -> None:
    end_s = write_in_pieces(folder, whole("weekly log, third sheet"), [3, 100, 0])
    folder.run(90)
    assert [row["source"] for row in folder.rows("failures.jsonl")] == ["scan.png"]
    folder.run(end_s + 30)
    assert folder.rows("failures.jsonl") == []
    assert [row["text"] for row in folder.rows("pages.jsonl")] == ["weekly log, third sheet"]


def test_what_looks_whole_and_grows_on_is_read_again_and_replaced(folder: FakeFolder) -> None:
    folder.at(1, lambda: folder.put("scan.png", whole("first sheet")))
    folder.at(30, lambda: folder.put("scan.png", whole("first sheet, second sheet")))
    folder.run(60)
    assert folder.output("scan.png") == "first sheet, second sheet"
    assert [row["text"] for row in folder.rows("pages.jsonl")] == ["first sheet, second sheet"]
    assert [event.is_changed for event in folder.told(FileSeen)] == [False, True]


def test_a_whole_file_that_cannot_be_read_yet_has_not_failed_before_the_grace_is_over(
    folder: FakeFolder,
) -> None:
    folder.at(1, lambda: folder.put("scan.png", whole("damaged")))
    folder.run(50)
    assert len(folder.told(FileFailedForNow)) == 1
    assert folder.rows("failures.jsonl") == []
    folder.at(52, lambda: folder.put("scan.png", whole("mended!")))
    folder.run(150)
    assert folder.told(FileFailed) == []
    assert folder.output("scan.png") == "mended!"


def test_a_damaged_file_fails_once_and_again_only_when_it_changes(folder: FakeFolder) -> None:
    folder.at(1, lambda: folder.put("scan.png", whole("damaged")))
    folder.at(1, lambda: folder.put("empty.png", b""))
    folder.run(500)
    assert {event.code for event in folder.told(FileFailed)} == {"document_corrupt", "empty_file"}
    assert all(61 <= passed_s <= 66 for passed_s in when(folder, FileFailed))
    assert sum(map(len, folder.reader.batches)) == 3
    folder.at(500, lambda: folder.put("scan.png", whole("whole")))
    folder.run(600)
    assert folder.output("scan.png") == "whole"
    assert [row["source"] for row in folder.rows("failures.jsonl")] == ["empty.png"]


def test_an_unfinished_file_is_mentioned_once(folder: FakeFolder) -> None:
    write_in_pieces(folder, whole("weekly log, third sheet"), [12, 12, 12, 0])
    folder.run(100)
    assert len(folder.told(FileUnfinished)) == 1


def test_one_bad_file_costs_itself(folder: FakeFolder) -> None:
    folder.put("bad.png", whole("damaged"))
    folder.put("good.png", whole("good"))
    (folder.path / "link.png").symlink_to("nowhere")
    folder.run(200)
    assert folder.output("good.png") == "good"
    assert {row["source"] for row in folder.rows("failures.jsonl")} == {"bad.png", "link.png"}


def test_what_could_not_be_opened_is_read_once_it_can(folder: FakeFolder) -> None:
    (folder.path / "link.png").symlink_to(folder.root / "later.png")
    folder.run(100)
    assert folder.memory.files["link.png"].outcome is Outcome.UNREADABLE
    folder.at(100, lambda: (folder.root / "later.png").write_bytes(whole("here")))
    folder.run(200)
    assert folder.output("link.png") == "here"
    assert folder.rows("failures.jsonl") == []


def test_a_restart_reads_only_what_is_new_or_changed(folder: FakeFolder) -> None:
    for name in ("a.png", "b.png", "c.png"):
        folder.put(name, whole(name))
    folder.run(20)
    folder.reader.batches.clear()
    folder.put("b.png", whole("changed"))
    folder.put("d.png", whole("new"))
    folder.run(60)
    assert sorted(name for batch in folder.reader.batches for name in batch) == ["b.png", "d.png"]
    texts = {row["source"]: row["text"] for row in folder.rows("pages.jsonl")}
    assert texts == {"a.png": "a.png", "b.png": "changed", "c.png": "c.png", "d.png": "new"}


def test_a_share_that_is_away_and_comes_back_brings_nothing_new(folder: FakeFolder) -> None:
    folder.put("a.png", whole("a"))
    away = folder.root / "away"
    folder.at(20, lambda: folder.path.rename(away))
    folder.at(100, lambda: away.rename(folder.path))
    folder.run(200)
    assert folder.reader.batches == [["a.png"]]
    assert len(folder.told(Waiting)) == len(folder.told(WentOn)) == 1


def test_a_change_while_it_is_read_is_read_too(folder: FakeFolder) -> None:
    changes = [whole("second")]

    def change(path: Path) -> None:
        if changes:
            path.write_bytes(changes.pop())

    folder.reader.before_reading = change
    folder.put("a.png", whole("first"))
    folder.run(60)
    assert folder.output("a.png") == "second"
    assert len(folder.reader.batches) == 2


def test_files_that_lay_there_are_not_waited_for(folder: FakeFolder) -> None:
    folder.put("old.png", whole("old"))
    folder.put("broken.png", whole("damaged"))
    folder.passed_s = 3_600
    folder.run(3_601)
    assert folder.reader.batches == [["broken.png", "old.png"]]
    assert len(folder.told(FileFailed)) == 1


def test_a_copy_with_an_old_time_that_was_under_way_before_the_watch_is_waited_for(
    folder: FakeFolder,
) -> None:
    path = folder.put("scan.png", whole("old")[:9])
    os.utime(path, ns=(5, 5))
    folder.at(20, lambda: folder.put("scan.png", whole("old")))
    folder.run(60, failed_dir=folder.root / "failed")
    assert folder.reader.batches == [["scan.png"]]
    assert folder.output("scan.png") == "old"


def test_a_copy_that_keeps_its_old_time_is_waited_for(folder: FakeFolder) -> None:
    folder.at(10, lambda: os.utime(folder.put("scan.png", whole("old")[:9]), ns=(5, 5)))
    folder.run(60)
    assert folder.reader.batches == []


def test_a_folder_that_can_be_walked_again_has_not_failed(
    folder: FakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put("letters/a.png", whole("a"))
    scan, is_closed = os.scandir, True

    def guarded(path: str) -> object:
        if is_closed and str(path).endswith("letters"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    folder.run(100)
    assert [row["source"] for row in folder.rows("failures.jsonl")] == ["letters"]
    is_closed = False
    folder.run(200)
    assert folder.rows("failures.jsonl") == []
    assert folder.output("letters/a.png") == "a"
    assert set(folder.memory.files) == {"letters/a.png"}


# Moving


def test_what_was_read_is_moved_when_it_has_not_changed_for_the_grace(tmp_path: Path) -> None:
    folder = FakeFolder(tmp_path, done_dir=tmp_path / "done")
    folder.at(1, lambda: folder.put("letters/a.png", whole("a")))
    folder.run(50)
    assert (folder.path / "letters" / "a.png").exists()
    folder.run(80)
    assert not (folder.path / "letters" / "a.png").exists()
    assert (tmp_path / "done" / "letters" / "a.png").read_bytes() == whole("a")
    assert len(folder.reader.batches) == 1


def test_a_name_that_a_scanner_uses_again_overwrites_nothing(tmp_path: Path) -> None:
    folder = FakeFolder(tmp_path, done_dir=tmp_path / "done")
    folder.at(1, lambda: folder.put("scan.png", whole("first")))
    folder.at(100, lambda: folder.put("scan.png", whole("second")))
    folder.run(120)
    folder.run(200)  # a restart before the second was moved changes nothing
    assert (folder.output("scan.png"), folder.output("scan (2).png")) == ("first", "second")
    assert (tmp_path / "done" / "scan (2).png").read_bytes() == whole("second")
    assert [row["text"] for row in folder.rows("pages.jsonl")] == ["first", "second"]
    assert len(folder.reader.batches) == 2


def test_a_file_that_failed_is_moved_with_the_reason_beside_it(tmp_path: Path) -> None:
    folder = FakeFolder(tmp_path, failed_dir=tmp_path / "in" / "failed")
    folder.put("letters/a.png", whole("damaged"))
    folder.put("b.png", whole("b"))
    folder.run(200)
    assert (tmp_path / "in" / "failed" / "letters" / "a.png").exists()
    reason = tmp_path / "in" / "failed" / "letters" / "a.png.error.txt"
    assert reason.read_text(encoding="utf-8") == "letters/a.png: it is damaged\n"
    assert (folder.path / "b.png").exists()
    folder.at(200, lambda: folder.put("letters/a.png", whole("mended")))
    folder.run(300)
    assert folder.output("letters/a.png") == "mended"
    assert folder.rows("failures.jsonl") == []


def test_a_file_that_cannot_be_moved_stays_and_is_said_once(tmp_path: Path) -> None:
    folder = FakeFolder(tmp_path, done_dir=tmp_path / "done")
    (tmp_path / "done").write_bytes(b"")
    folder.put("a.png", whole("a"))
    folder.run(200)
    assert len(folder.told(FileNotMoved)) == 1
    (tmp_path / "done").unlink()
    folder.run(210)
    assert len(folder.told(FileMoved)) == 1
    assert len(folder.reader.batches) == 1


# What is away, and stops


@pytest.mark.parametrize(
    "trouble", [StoreUnreachable("db: away"), OutputNotWritable("out: full"), BudgetUnusable("no price")]
)
def test_what_is_away_is_waited_for_and_then_read(folder: FakeFolder, trouble: Exception) -> None:
    folder.at(1, lambda: folder.put("a.png", whole("a")))
    folder.reader.troubles = [trouble] * 3  # type: ignore[list-item]
    folder.run(100)
    assert [event.message for event in folder.told(Waiting)] == [str(trouble)]
    assert len(folder.told(WentOn)) == 1
    assert folder.output("a.png") == "a"


def test_the_pauses_grow_up_to_a_minute(folder: FakeFolder) -> None:
    folder.put("a.png", whole("a"))
    folder.reader.troubles = [StoreUnreachable("db: away")] * 1_000
    folder.run(1_005)
    assert 15 <= len(folder.reader.batches) <= 30


def test_an_engine_that_is_missing_from_the_start_ends_the_watch(folder: FakeFolder) -> None:
    folder.put("a.png", whole("a"))
    folder.reader.troubles = [EngineUnavailable("no such language; install it")]
    with pytest.raises(EngineUnavailable):
        folder.run(100)


def test_a_folder_for_results_that_is_none_ends_the_watch_at_the_start(folder: FakeFolder) -> None:
    folder.out_dir.write_bytes(b"a file")
    with pytest.raises(OutputNotWritable):
        folder.run(100)


def test_what_was_read_before_a_stop_is_noted_and_the_rest_is_read_next_time(folder: FakeFolder) -> None:
    for name in ("a.png", "b.png"):
        folder.put(name, whole(name))
    folder.reader.stops_after = 1
    watch = folder.watch()
    with pytest.raises(KeyboardInterrupt):
        watch.run()
    assert set(folder.memory.files) == {"a.png"}
    folder.reader.stops_after = None
    folder.reader.batches.clear()
    folder.run(folder.passed_s + 20)
    assert folder.reader.batches == [["b.png"]]
    assert {row["source"] for row in folder.rows("pages.jsonl")} == {"a.png", "b.png"}


# Once


def test_once_reads_what_is_there_and_ends(folder: FakeFolder) -> None:
    for number in range(250):
        folder.put(f"{number:03}.png", whole(str(number)))
    watch = folder.run(once=True)
    assert (watch.totals.read, watch.totals.failed) == (250, 0)
    assert [len(batch) for batch in folder.reader.batches] == [50] * 5
    assert folder.passed_s < 15


def test_once_gives_a_damaged_file_its_grace(folder: FakeFolder) -> None:
    folder.put("bad.png", whole("damaged"))
    watch = folder.run(once=True)
    assert (watch.totals.read, watch.totals.failed) == (0, 1)
    assert 60 <= folder.passed_s <= 66
    assert folder.run(once=True).totals.failed == 0


def test_once_leaves_what_is_being_written_to_the_next_run(folder: FakeFolder) -> None:
    for passed_s in range(200):
        folder.at(passed_s, lambda size=passed_s: folder.put("growing.png", b"x" * size))
    folder.put("a.png", whole("a"))
    watch = folder.run(once=True)
    assert watch.totals.read == 1
    assert folder.passed_s < 15


def test_once_raises_what_it_cannot_wait_for(folder: FakeFolder) -> None:
    folder.put("a.png", whole("a"))
    folder.reader.troubles = [StoreUnreachable("db: away")]
    with pytest.raises(StoreUnreachable):
        folder.run(once=True)
    folder.path.rename(folder.root / "away")
    with pytest.raises(FolderAway):
        folder.run(once=True)


def test_once_moves_what_it_read(tmp_path: Path) -> None:
    folder = FakeFolder(tmp_path, done_dir=tmp_path / "done", once=True)
    folder.put("a.png", whole("a"))
    folder.passed_s = 100
    folder.run()
    assert (tmp_path / "done" / "a.png").exists()
    assert folder.passed_s < 110


def test_an_empty_folder_ends_at_once(folder: FakeFolder) -> None:
    assert folder.run(once=True).totals.read == 0
    assert folder.passed_s == 0.0
    assert folder.rows("pages.jsonl") == []
