"""The files of a watched folder as this watch knows them, from one look to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from workers.sources import Source
from workers.watch_endings import ending_of
from workers.watch_events import FileSeen, FileUnfinished, Looked, WatchEvent
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
from workers.watch_look import Sighting, WatchedFolder

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyFile:
    """A file that is to be read now. ``is_last``: should that fail, it has failed."""

    source: Source
    version: FileVersion
    ending: Ending
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MovableFile:
    source: Source
    version: FileVersion
    outcome: Outcome


@dataclass(slots=True, kw_only=True)
class FolderState:
    """``remembered`` are the files that were read before, those that are gone too. A file that is not there any more
    is only forgotten by the histories: a share that comes back brings nothing new."""

    folder: WatchedFolder
    patience: Patience
    on_event: Callable[[WatchEvent], None]
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    remembered: dict[str, RememberedFile] = field(default_factory=dict)
    histories: dict[str, FileHistory] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    """Files of which it was said that they lack their end."""

    _has_looked: bool = False

    def load(self, remembered: Mapping[str, RememberedFile]) -> None:
        self.remembered = dict(remembered)

    def look(self) -> tuple[str, ...]:
        """Bring the histories up to date with the folder. The names that could not be opened and are gone: a folder
        that can be walked now is no file any more. Raises ``FolderAway``."""
        taken = [name for name, file in self.remembered.items() if file.outcome is Outcome.MOVED]
        sightings = {sighting.source.name: sighting for sighting in self.folder.look(taken)}
        for name in self.histories.keys() - sightings.keys():
            self._drop(name)
        for name, sighting in sightings.items():
            self.sources[name] = sighting.source
            self._observe(name, sighting)
        self._has_looked = True
        self.on_event(self._looked())
        return tuple(
            name
            for name, file in self.remembered.items()
            if file.outcome is Outcome.UNREADABLE and name not in sightings
        )

    def ready(self) -> Iterator[ReadyFile]:
        for name, history in self.histories.items():
            action = decide(history, self.clock(), self.patience)
            if action in (Action.READ, Action.READ_LAST):
                yield ReadyFile(
                    source=self.sources[name],
                    version=history.version,
                    ending=history.ending,
                    is_last=action is Action.READ_LAST,
                )

    def movable(self) -> Iterator[MovableFile]:
        """A folder that could not be walked is no file to be moved."""
        for name, history in self.histories.items():
            is_file = self.sources[name].problem is None
            if is_file and decide(history, self.clock(), self.patience) is Action.MOVE:
                assert history.remembered is not None
                outcome = history.remembered.outcome
                yield MovableFile(source=self.sources[name], version=history.version, outcome=outcome)

    def waits(self, passed_over: frozenset[str]) -> bool:
        """Whether a file that is not still being written is yet to be read or moved. Those in ``passed_over`` are not
        waited for."""
        return any(self._is_awaited(name) for name in self.histories.keys() - passed_over)

    def note(self, name: str, file: RememberedFile) -> None:
        self.remembered[name] = file
        self._told.discard(name)
        if name in self.histories:
            self.histories[name] = replace(self.histories[name], remembered=file)

    def note_failed_for_now(self, name: str, version: FileVersion) -> None:
        self.histories[name] = replace(self.histories[name], failed=version)

    def note_moved(self, name: str, file: RememberedFile) -> None:
        self._drop(name)
        self.remembered[name] = file

    def forget(self, name: str) -> None:
        """The name is free again."""
        self._drop(name)
        self.remembered.pop(name, None)

    def _drop(self, name: str) -> None:
        self.histories.pop(name, None)
        self.sources.pop(name, None)
        self._told.discard(name)

    def _observe(self, name: str, sighting: Sighting) -> None:
        before = self.histories.get(name)
        now_s = self.clock()
        ending = self._ending(name, sighting, before)
        history = observed(before, sighting.version, ending, now_s, age_s=self._age_s(sighting.changed_ns))
        if before is None:
            history = replace(history, remembered=self.remembered.get(name))
        self.histories[name] = history
        if not history.is_settled:
            self._tell(name, before, history, now_s)

    def _ending(self, name: str, sighting: Sighting, before: FileHistory | None) -> Ending:
        """Looked up where it can change a decision, so that a folder of files that were read costs no opening."""
        if sighting.source.problem is not None:
            return Ending.UNREADABLE
        if before is None:
            file = self.remembered.get(name)
            if (
                file is not None
                and file.version == sighting.version
                and file.outcome is not Outcome.UNREADABLE
            ):
                return Ending.UNSURE
        elif before.version == sighting.version and _is_known(before):
            return before.ending
        return ending_of(sighting.source.path)

    def _age_s(self, changed_ns: int) -> float:
        """Of a file that was there before the watch. Later ones are timed by our own clock alone: that of a share may
        be minutes away."""
        if self._has_looked or changed_ns <= 0:
            return 0.0
        return max(0.0, self.wall_clock() - changed_ns / NANOSECONDS)

    def _tell(self, name: str, before: FileHistory | None, history: FileHistory, now_s: float) -> None:
        byte_count = max(0, history.version.byte_count)
        if before is None or (before.is_settled and before.version != history.version):
            self.on_event(
                FileSeen(name=name, byte_count=byte_count, is_changed=history.remembered is not None)
            )
        is_still = now_s - history.unchanged_since_s >= self.patience.settle_s
        is_waiting = decide(history, now_s, self.patience) is Action.WAIT
        if is_still and is_waiting and history.ending is not Ending.WHOLE and name not in self._told:
            self._told.add(name)
            self.on_event(FileUnfinished(name=name, grace_s=self.patience.grace_s))

    def _is_awaited(self, name: str) -> bool:
        history = self.histories[name]
        if history.is_settled:
            assert history.remembered is not None
            return history.remembered.outcome in self.patience.moves and self.sources[name].problem is None
        return not (history.changed_here and decide(history, self.clock(), self.patience) is Action.WAIT)

    def _looked(self) -> Looked:
        open_files = [history for history in self.histories.values() if not history.is_settled]
        unfinished = sum(
            history.ending is not Ending.WHOLE or history.failed == history.version for history in open_files
        )
        return Looked(settling=len(open_files), unfinished=unfinished)


def _is_known(history: FileHistory) -> bool:
    """Whether looking at the ending of the same version again can change nothing."""
    if history.ending is Ending.UNREADABLE:
        return False
    return history.is_settled or history.ending is Ending.WHOLE
