"""Which files a run reads, and what each is called in the outputs.

A file that is named is taken as it is. A folder is walked recursively in the order of names: hidden files
and folders (a leading dot) are left out, links to files are followed, links to folders are not. The output
folder and the state folder below a walked folder are left out, and so are the ``.json``, ``.jsonl`` and
``.md`` files of any folder that an earlier run wrote into (known by its ``pages.jsonl`` and
``failures.jsonl``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

RUN_FILES = ("pages.jsonl", "failures.jsonl")
OUTPUT_SUFFIXES = (".json", ".jsonl", ".md")
MAX_NAME_BYTES = 255
LONGEST_OUTPUT_SUFFIX_BYTES = 5


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


def find_sources(paths: Iterable[Path], *, left_out: Iterable[Path]) -> Iterator[Source]:
    """Every source once, in a fixed order, each under a name of its own."""
    naming = _Naming()
    folders = frozenset(folder.resolve() for folder in left_out)
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


def _found_under(root: Path, left_out: frozenset[Path]) -> Iterator[_Found]:
    if _is_folder(root):
        yield from _walk(root, root, left_out, in_results=_is_within_results(root.resolve()))
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


def _walk(folder: Path, root: Path, left_out: frozenset[Path], *, in_results: bool) -> Iterator[_Found]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        name = str(folder.relative_to(root)) if folder != root else folder.name
        yield _Found(folder, name, f"the folder cannot be read ({error.strerror}); check its permissions")
        return
    in_results = in_results or _has_run_files({entry.name for entry in entries})
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith(".") or (entry.is_symlink() and _is_folder(path)):
            continue
        if entry.is_dir(follow_symlinks=False):
            if path.resolve() not in left_out:
                yield from _walk(path, root, left_out, in_results=in_results)
        elif not (in_results and path.suffix in OUTPUT_SUFFIXES):
            yield _Found(path, str(path.relative_to(root)))


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
        name = self._free_name(wanted)
        stem = _stem(name)
        self.names.add(name)
        self.files.update(_output_names(stem))
        self.folders.update(_folders_of(stem))
        return Source(path=found.path, name=name, wanted=wanted, output_stem=stem, problem=found.problem)

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
    return (f"{stem}.md", f"{stem}.json")


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
