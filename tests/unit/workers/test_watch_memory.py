"""What was read is remembered by the database, for each folder of results on its own; one watch writes into it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from pydantic import SecretStr

from models.errors import SettingsError, StoreUnreachable
from workers.watch_files import FileVersion, Outcome, RememberedFile
from workers.watch_lock import only_watch
from workers.watch_memory import StoreMemory

READ = RememberedFile(version=FileVersion(byte_count=5_000_000_000, mtime_ns=2**62), outcome=Outcome.READ)


def memory(root: Path, out: str = "out", database_url: SecretStr | None = None) -> StoreMemory:
    return StoreMemory(root / "home", database_url, folder=root / "in", out_dir=root / out)


def test_what_was_noted_is_there_after_a_restart(tmp_path: Path) -> None:
    with contextlib.closing(memory(tmp_path)) as first:
        first.note("a/ü.pdf", READ, submission_id=None)
        first.note("b.pdf", READ, submission_id=None)
        first.forget("b.pdf")
    with contextlib.closing(memory(tmp_path)) as second:
        assert second.load() == {"a/ü.pdf": READ}


def test_another_folder_for_results_has_had_nothing_yet(tmp_path: Path) -> None:
    with contextlib.closing(memory(tmp_path)) as one, contextlib.closing(memory(tmp_path, "new")) as other:
        one.note("a.pdf", READ, submission_id=None)
        assert other.load() == {}


def test_postgresql_remembers_likewise(tmp_path: Path, postgres_url: SecretStr) -> None:
    with contextlib.closing(memory(tmp_path, database_url=postgres_url)) as kept:
        kept.note("a.pdf", READ, submission_id=None)
        moved = RememberedFile(version=READ.version, outcome=Outcome.MOVED)
        kept.note("a.pdf", moved, submission_id=None)
        assert kept.load() == {"a.pdf": moved}


def test_a_database_that_is_away_can_be_asked_again(tmp_path: Path) -> None:
    away = SecretStr("postgresql://nobody@127.0.0.1:9/none")
    with contextlib.closing(memory(tmp_path, database_url=away)) as kept:
        for _ in range(2):
            with pytest.raises(StoreUnreachable):
                kept.load()


def test_one_watch_at_a_time_writes_into_a_folder(tmp_path: Path) -> None:
    with (
        only_watch(tmp_path),
        pytest.raises(SettingsError, match="another `doctriage watch` writes there"),
        only_watch(tmp_path),
    ):
        pass
    with only_watch(tmp_path):
        pass
