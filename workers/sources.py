"""Which files a run reads, and what each is called in the outputs.

A file that is named is taken as it is. A folder is walked recursively in the order of names: hidden files
and folders (a leading dot) are left out, links to files are followed, links to folders are not. The output
folder and state folders below a walked folder are left out, and so are files with the suffix of an output in any
folder that an earlier run wrote into (known by its ``pages.jsonl`` and ``failures.jsonl``), and
the pictures that ``doctriage explain`` drew.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from pipeline.exports.formats import OUTPUT_SUFFIXES
from pipeline.store.database import DATABASE_NAME

RUN_FILES = ("pages.jsonl", "failures.jsonl")
WRITTEN_SUFFIXES = (*OUTPUT_SUFFIXES, ".json", ".jsonl")
OVERLAY_SUFFIX = ".png"
OVERLAY_SOFTWARE = "doctriage explain"
OVERLAY_MARK = b"Software\0" + OVERLAY_SOFTWARE.encode()
"""As a PNG file spells that field of its text."""

OVERLAY_MARK_WITHIN_BYTES = 256
MAX_NAME_BYTES = 255
MAX_SOURCE_BYTES = 2_600
"""Longer names are cut: PostgreSQL has no room in an index for more than 2,700 bytes."""

LONGEST_OUTPUT_SUFFIX_BYTES = max(map(len, OUTPUT_SUFFIXES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """``name`` is its path relative to the folder that was named, in valid Unicode; ``wanted`` differs from
    it when another source had that name first. ``output_stem`` is ``name``, shortened where too long for the
    file system. ``problem`` says why it cannot be opened."""

    path: Path
    name: str
    wanted: str
    output_stem: str
    problem: str | None = None


def find_sources(
    paths: Iterable[Path], *, left_out: Iterable[Path], taken: Iterable[str] = ()
) -> Iterator[Source]:
    """Every source once, in a fixed order, each under a name of its own; names in ``taken`` are others' already."""
    naming = _Naming()
    for name in taken:
        naming.take(name)
    folders = frozenset(os.path.realpath(folder) for folder in left_out)
    seen: set[str] = set()
    for root in paths:
        for found in _found_under(root, folders):
            place = os.path.join(os.path.realpath(found.path.parent), found.path.name)  # noqa: PTH118
            if place in seen:
                continue
            seen.add(place)
            yield naming.source(found)


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    relative: str
    problem: str | None = None


def _found_under(root: Path, left_out: frozenset[str]) -> Iterator[_Found]:
    if _is_folder(root):
        yield from _walk(root, left_out)
    elif os.path.lexists(root):
        yield _Found(root, root.name)
    else:
        yield _Found(root, root.name, "there is no such file; check the path")


def _is_folder(path: Path) -> bool:
    """False also for a link whose target cannot be looked at, which ``is_dir`` raises for."""
    try:
        return path.is_dir()
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder on the walk: as it was reached, below the root (empty for the root), and without links."""

    path: str
    relative: str
    real: str
    in_results: bool

    def child(self, entry: os.DirEntry[str]) -> _Folder:
        relative = _joined(self.relative, entry.name)
        return _Folder(entry.path, relative, _joined(self.real.rstrip("/"), entry.name), self.in_results)


def _walk(root: Path, left_out: frozenset[str]) -> Iterator[_Found]:
    """Depth first in the order of names. The stack holds, for each folder on the way down, what is left of
    it: folders may be nested deeper than Python's functions."""
    real = root.resolve()
    start = _Folder(str(root), "", str(real), _is_within_results(real))
    stack = [_entries(start)]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif isinstance(found, _Found):
            yield found
        elif found.real not in left_out:
            stack.append(_entries(found))


def _entries(folder: _Folder) -> Iterator[_Found | _Folder]:
    """What is in a folder: files to read, and folders to walk."""
    try:
        entries = sorted(os.scandir(folder.path), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        name = folder.relative or Path(folder.path).name
        yield _Found(Path(folder.path), name, _why_not_walked(error))
        return
    names = {entry.name for entry in entries}
    if folder.relative and DATABASE_NAME in names:
        return
    folder = replace(folder, in_results=folder.in_results or _has_run_files(names))
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or (entry.is_symlink() and _is_folder(path)):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield folder.child(entry)
        elif not (folder.in_results and entry.name.endswith(WRITTEN_SUFFIXES)) and not _is_overlay(path):
            yield _Found(path, _joined(folder.relative, entry.name))


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _why_not_walked(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return "the folder is nested too deep to be opened; name it from nearer by, or move it up"
    return f"the folder cannot be read ({error.strerror}); check its permissions"


def _is_overlay(path: Path) -> bool:
    if path.suffix.lower() != OVERLAY_SUFFIX:
        return False
    try:
        if not path.is_file():  # a pipe would have us wait
            return False
        with path.open("rb") as picture:
            return OVERLAY_MARK in picture.read(OVERLAY_MARK_WITHIN_BYTES)
    except OSError:
        return False


def _is_within_results(folder: Path) -> bool:
    return any(all((place / name).is_file() for name in RUN_FILES) for place in (folder, *folder.parents))


def _has_run_files(names: set[str]) -> bool:
    return all(name in names for name in RUN_FILES)


@dataclass(slots=True)
class _Naming:
    """Hands out names so that no two outputs meet: ``a (2).pdf`` for the second ``a.pdf``."""

    files: set[str] = field(default_factory=lambda: set(RUN_FILES))
    folders: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def source(self, found: _Found) -> Source:
        wanted = os.fsencode(found.relative).decode("utf-8", "backslashreplace")
        name = self._free_name(_fitted(wanted, MAX_SOURCE_BYTES))
        stem = self.take(name)
        return Source(path=found.path, name=name, wanted=wanted, output_stem=stem, problem=found.problem)

    def take(self, name: str) -> str:
        """The stem of the outputs."""
        stem = _stem(name)
        self.names.add(name)
        self.files.update(_output_names(stem))
        self.folders.update(_folders_of(stem))
        return stem

    def _free_name(self, wanted: str) -> str:
        parts = wanted.split("/")
        for depth in range(len(parts)):
            original, number = parts[depth], 1
            while self._clashes("/".join(parts[: depth + 1]), is_last=depth == len(parts) - 1):
                number += 1
                parts[depth] = _numbered(original, number)
        return "/".join(parts)

    def _clashes(self, name: str, *, is_last: bool) -> bool:
        stem = _stem(name) if is_last else _folder_stem(name)
        if not is_last:
            return stem in self.files
        outputs = _output_names(stem)
        return name in self.names or any(output in self.files or output in self.folders for output in outputs)


def _numbered(name: str, number: int) -> str:
    path = PurePosixPath(name)
    return f"{path.stem} ({number}){path.suffix}"


def _output_names(stem: str) -> tuple[str, ...]:
    return tuple(stem + suffix for suffix in OUTPUT_SUFFIXES)


def _folders_of(stem: str) -> Iterator[str]:
    parts = stem.split("/")
    for depth in range(1, len(parts)):
        yield "/".join(parts[:depth])


def _stem(name: str) -> str:
    *folders, last = name.split("/")
    fitted = [_fitted(folder, MAX_NAME_BYTES) for folder in folders]
    return "/".join([*fitted, _fitted(last, MAX_NAME_BYTES - LONGEST_OUTPUT_SUFFIX_BYTES)])


def _folder_stem(name: str) -> str:
    return "/".join(_fitted(folder, MAX_NAME_BYTES) for folder in name.split("/"))


def _fitted(name: str, limit_bytes: int) -> str:
    """``name``, or its beginning and a digest of the whole when it has more bytes than a file name may."""
    encoded = name.encode()
    if len(encoded) <= limit_bytes:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    return encoded[: limit_bytes - len(digest) - 1].decode("utf-8", "ignore") + "~" + digest
