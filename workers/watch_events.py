"""What a watch tells while it works. Importing this module is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A file that is to be read once it is settled. ``is_changed``: it was read before."""

    name: str
    byte_count: int
    is_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUnfinished:
    """A file has not changed for a while, but lacks its end; it is read after ``grace_s`` without change."""

    name: str
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted:
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """Its outputs are written."""

    name: str
    page_count: int
    failed_pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailedForNow:
    """It may still be being written: it is read again when it changes, or after ``grace_s`` without change."""

    name: str
    message: str
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailed:
    """The row is in ``failures.jsonl``; the file is read again when it changes."""

    name: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMoved:
    name: str
    target: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotMoved:
    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Nothing is read until what the message names is there again."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WentOn:
    """After ``Waiting``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """After each look: how many files wait to be settled, and how many of them lack their end or have failed once."""

    settling: int
    unfinished: int


WatchEvent = (
    FileSeen
    | FileUnfinished
    | BatchStarted
    | FileRead
    | FileFailedForNow
    | FileFailed
    | FileMoved
    | FileNotMoved
    | Waiting
    | WentOn
    | Looked
)
