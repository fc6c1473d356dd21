"""When a file of a watched folder is read, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workers.watch_files import (
    Action,
    Ending,
    FileHistory,
    FileVersion,
    Outcome,
    Patience,
    RememberedFile,
    decide,
    observed,
)

V1 = FileVersion(byte_count=100, mtime_ns=1)
V2 = FileVersion(byte_count=200, mtime_ns=1)
PATIENCE = Patience(settle_s=5, grace_s=60)
MOVING = replace(PATIENCE, moves=frozenset({Outcome.READ}))
EVER = 1e6


def history(
    ending: Ending = Ending.WHOLE,
    *,
    read: tuple[FileVersion, Outcome] | None = None,
    failed: FileVersion | None = None,
) -> FileHistory:
    remembered = None if read is None else RememberedFile(version=read[0], outcome=read[1])
    return FileHistory(version=V1, ending=ending, unchanged_since_s=0.0, remembered=remembered, failed=failed)


UNSURE, UNREADABLE = history(Ending.UNSURE), history(Ending.UNREADABLE)
FAILED_ONCE = history(failed=V1)
FAILED_BEFORE_IT_CHANGED = history(failed=V2)
READ, READ_BEFORE = history(read=(V1, Outcome.READ)), history(read=(V2, Outcome.READ))
FAILED, FAILED_BEFORE = history(read=(V1, Outcome.FAILED)), history(read=(V2, Outcome.FAILED))
STILL_LOCKED = history(Ending.UNREADABLE, read=(V1, Outcome.UNREADABLE))
UNLOCKED = history(Ending.WHOLE, read=(V1, Outcome.UNREADABLE))


@pytest.mark.parametrize(
    ("file", "unchanged_s", "patience", "action"),
    [
        (history(), 0, PATIENCE, Action.WAIT),
        (history(), 4.9, PATIENCE, Action.WAIT),
        (history(), 5, PATIENCE, Action.READ),
        (history(), 59.9, PATIENCE, Action.READ),
        (history(), 60, PATIENCE, Action.READ_LAST),
        (UNSURE, 5, PATIENCE, Action.WAIT),
        (UNSURE, 12, PATIENCE, Action.WAIT),
        (UNSURE, 59.9, PATIENCE, Action.WAIT),
        (UNSURE, 60, PATIENCE, Action.READ_LAST),
        (UNREADABLE, 59.9, PATIENCE, Action.WAIT),
        (UNREADABLE, 60, PATIENCE, Action.READ_LAST),
        (FAILED_ONCE, 30, PATIENCE, Action.WAIT),
        (FAILED_ONCE, 60, PATIENCE, Action.READ_LAST),
        (FAILED_BEFORE_IT_CHANGED, 5, PATIENCE, Action.READ),
        (READ, EVER, PATIENCE, Action.LEAVE),
        (READ_BEFORE, 4.9, PATIENCE, Action.WAIT),
        (READ_BEFORE, 5, PATIENCE, Action.READ),
        (FAILED, EVER, PATIENCE, Action.LEAVE),
        (FAILED_BEFORE, 5, PATIENCE, Action.READ),
        (STILL_LOCKED, EVER, PATIENCE, Action.LEAVE),
        (UNLOCKED, 5, PATIENCE, Action.READ),
        (READ, 59.9, MOVING, Action.LEAVE),
        (READ, 60, MOVING, Action.MOVE),
        (READ_BEFORE, 5, MOVING, Action.READ),
        (FAILED, EVER, MOVING, Action.LEAVE),
        (history(), 10, Patience(settle_s=20, grace_s=0), Action.WAIT),
        (history(), 0, Patience(settle_s=0, grace_s=0), Action.READ_LAST),
    ],
)
def test_what_is_done_with_a_file(
    file: FileHistory, unchanged_s: float, patience: Patience, action: Action
) -> None:
    assert decide(file, unchanged_s, patience) is action


def test_the_time_without_change_starts_anew_with_each_version_and_each_new_ending() -> None:
    first = observed(None, V1, Ending.UNSURE, 10.0)
    same = observed(first, V1, Ending.UNSURE, 20.0)
    assert (same.unchanged_since_s, same.changed_here) == (10.0, False)
    grown = observed(same, V2, Ending.UNSURE, 30.0)
    assert (grown.unchanged_since_s, grown.changed_here) == (30.0, True)
    whole = observed(grown, V2, Ending.WHOLE, 40.0)
    assert whole.unchanged_since_s == 40.0


def test_a_file_that_lay_there_before_has_its_age() -> None:
    assert observed(None, V1, Ending.WHOLE, 10.0, age_s=3600.0).unchanged_since_s == -3590.0


def test_what_is_known_of_a_file_stays_with_it() -> None:
    known = replace(history(read=(V1, Outcome.FAILED)), failed=V1)
    later = observed(known, V2, Ending.UNSURE, 5.0, age_s=3600.0)
    assert (later.remembered, later.failed) == (known.remembered, V1)
    assert later.unchanged_since_s == 5.0
