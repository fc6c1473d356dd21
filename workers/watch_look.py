"""One look at a watched folder: which files are there, and in which state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from models.errors import DoctriageError
from workers.sources import Source, find_sources
from workers.watch_files import FileVersion

REPORT_SUFFIX = ".error.txt"
"""Of the note beside a file that failed."""

IGNORED = (
    "*.tmp",
    "*.temp",
    "*.part",
    "*.partial",
    "*.filepart",
    "*.crdownload",
    "*.download",
    "*.opdownload",
    "*.swp",
    "*.lock",
    "*~",
    "~$*",
    "Thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
    "@eaDir",
    "#recycle",
    "$RECYCLE.BIN",
    "System Volume Information",
    f"*{REPORT_SUFFIX}",
)
"""Names that programs give to files that are not finished or are their own. Names with a leading dot are never read."""

GONE = FileVersion(byte_count=-1, mtime_ns=-1)
"""Of a file that could not even be asked for its size, such as a link to nowhere."""


class FolderAway(DoctriageError):
    """The watched folder is not there now."""

    code = "folder_away"
    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """``changed_ns``: when the file was last touched, by the file system's own clock too: what is copied may have the
    mtime of its original from the start."""

    source: Source
    version: FileVersion
    changed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFolder:
    """``left_out`` are folders that are never read, ``ignored`` patterns of names, in any case of letters, of files
    and of folders, relative to the watched one."""

    path: Path
    left_out: tuple[Path, ...]
    ignored: tuple[str, ...] = IGNORED

    def look(self, taken: Iterable[str]) -> Sequence[Sighting]:
        """All that is there, in a fixed order; names in ``taken`` are given to no file. Raises ``FolderAway``."""
        sources = tuple(find_sources((self.path,), left_out=self.left_out, taken=taken))
        for source in sources:
            if source.path == self.path:
                raise FolderAway(f"{self.path}: {source.problem or 'is a file, not a folder; name a folder'}")
        return tuple(self._sightings(sources))

    def _sightings(self, sources: Iterable[Source]) -> Iterator[Sighting]:
        for source in sources:
            if not is_ignored(source.wanted, self.ignored):
                yield _sighting(source)


def _sighting(source: Source) -> Sighting:
    status = _status_of(source.path)
    changed_ns = 0 if status is None else max(status.st_mtime_ns, status.st_ctime_ns)
    return Sighting(source=source, version=_version(status), changed_ns=changed_ns)


def version_of(path: Path) -> FileVersion:
    return _version(_status_of(path))


def _version(status: os.stat_result | None) -> FileVersion:
    return GONE if status is None else FileVersion(byte_count=status.st_size, mtime_ns=status.st_mtime_ns)


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 — also of a name that no text spells
    except OSError:
        return None


def is_ignored(name: str, patterns: Iterable[str]) -> bool:
    """Whether the path, or any folder or file on it, is named like one of the patterns."""
    folded = name.casefold()
    parts = (folded, *folded.split("/"))
    return any(fnmatchcase(part, pattern.casefold()) for pattern in patterns for part in parts)
