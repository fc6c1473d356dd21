"""When a file of a watched folder is read: pure decisions from what was seen of it, and when.

A writer's pause is not its end, so two spans count, both without change: ``settle_s`` for a file that is whole by its
own end, ``grace_s`` for every other. What fails within the grace is not reported yet: it is read again at the end of
it, or once it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """``WHOLE``: the end that its format asks for is there. ``UNSURE``: it is cut, or its format does not tell."""

    WHOLE = "whole"
    UNSURE = "unsure"
    UNREADABLE = "unreadable"


class Outcome(StrEnum):
    """``UNREADABLE`` could not be opened, and is read once it can. ``MOVED`` was read and is in the folder for those
    that are done: its name stands for another document now."""

    READ = "read"
    FAILED = "failed"
    UNREADABLE = "unreadable"
    MOVED = "moved"


class Action(StrEnum):
    """``READ``: a failure counts only once the file changes no more; ``READ_LAST``: it counts."""

    WAIT = "wait"
    READ = "read"
    READ_LAST = "read_last"
    MOVE = "move"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """What tells one state of a file from another without reading it. An mtime as on network shares may be as coarse
    as two seconds."""

    byte_count: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedFile:
    """The version that was read last, and what came of it."""

    version: FileVersion
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    settle_s: float
    grace_s: float
    moves: frozenset[Outcome] = frozenset()
    """Outcomes whose files are moved away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHistory:
    """What a watch has seen of a file. Clocks are monotonic; ``unchanged_since_s`` is the last change of version or
    ending. ``failed`` is the version whose reading failed within the grace. ``changed_here``: while this watch ran."""

    version: FileVersion
    ending: Ending
    unchanged_since_s: float
    remembered: RememberedFile | None = None
    failed: FileVersion | None = None
    changed_here: bool = False

    @property
    def is_settled(self) -> bool:
        """This version has its final outcome."""
        if self.remembered is None or self.remembered.version != self.version:
            return False
        return self.remembered.outcome is not Outcome.UNREADABLE or self.ending is Ending.UNREADABLE


def decide(history: FileHistory, now_s: float, patience: Patience) -> Action:
    """What to do with the file now."""
    unchanged_s = now_s - history.unchanged_since_s
    if history.is_settled:
        assert history.remembered is not None
        may_move = history.remembered.outcome in patience.moves and unchanged_s >= patience.grace_s
        return Action.MOVE if may_move else Action.LEAVE
    if unchanged_s >= max(patience.grace_s, patience.settle_s):
        return Action.READ_LAST
    is_worth_a_try = history.ending is Ending.WHOLE and history.failed != history.version
    return Action.READ if is_worth_a_try and unchanged_s >= patience.settle_s else Action.WAIT


def observed(
    before: FileHistory | None, version: FileVersion, ending: Ending, now_s: float, *, age_s: float = 0.0
) -> FileHistory:
    """The history after another look. ``age_s`` is how long the file had been unchanged at the first look."""
    if before is None:
        return FileHistory(version=version, ending=ending, unchanged_since_s=now_s - age_s)
    is_same = before.version == version and before.ending == ending
    return FileHistory(
        version=version,
        ending=ending,
        unchanged_since_s=before.unchanged_since_s if is_same else now_s,
        remembered=before.remembered,
        failed=before.failed,
        changed_here=before.changed_here or before.version != version,
    )
