"""``pages.jsonl`` and ``failures.jsonl`` of a watch: the rows of all files that it has read so far.

A batch's rows are added at the end of the file. Where a file was read again its earlier rows must go, and the file is
written anew, whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from pipeline.publish import not_writable, written_whole


class RowFile:
    """Rows with a ``source``, a line each. Raises ``OutputNotWritable``; what was broken off by a crash, a last line
    without its end, is dropped when the file is written next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources: set[str] | None = None

    def replace(self, sources: Collection[str], new_rows: Path) -> None:
        """Rows of these sources give way to those that ``new_rows`` has of them; all others stay."""
        wanted = frozenset(sources)
        if not wanted:
            return
        try:
            known = self._known()
            if known.isdisjoint(wanted) and self._ends_well():
                self._append(wanted, new_rows)
            else:
                self._rewrite(wanted, new_rows)
            known.difference_update(wanted)
            known.update(source for source, _ in _rows(new_rows) if source in wanted)
        except OSError as error:
            raise not_writable(self._path, error) from error

    def message_of(self, source: str) -> str | None:
        """What the newest failure row of the source says."""
        try:
            lines = [line for found, line in _rows(self._path) if found == source]
        except OSError as error:
            raise not_writable(self._path, error) from error
        message = json.loads(lines[-1]).get("message") if lines else None
        return message if isinstance(message, str) else None

    def _known(self) -> set[str]:
        if self._sources is None:
            self._sources = {source for source, _ in _rows(self._path) if source is not None}
        return self._sources

    def _append(self, wanted: Collection[str], new_rows: Path) -> None:
        with self._path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.writelines(line for source, line in _rows(new_rows) if source in wanted)

    def _rewrite(self, wanted: Collection[str], new_rows: Path) -> None:
        with written_whole(self._path) as stream:
            stream.writelines(line for source, line in _rows(self._path) if source not in wanted)
            stream.writelines(line for source, line in _rows(new_rows) if source in wanted)

    def _ends_well(self) -> bool:
        try:
            with self._path.open("rb") as stream:
                if not stream.seek(0, os.SEEK_END):
                    return True
                stream.seek(-1, os.SEEK_END)
                return stream.read(1) == b"\n"
        except FileNotFoundError:
            return True


def _rows(path: Path) -> Iterator[tuple[str | None, str]]:
    """Each whole line with its source, None where it is no row of ours."""
    try:
        stream = path.open(encoding="utf-8", errors="surrogateescape", newline="\n")
    except FileNotFoundError:
        return
    with stream:
        for line in stream:
            if line.endswith("\n"):
                yield _source_of(line), line


def _source_of(line: str) -> str | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    source = row.get("source") if isinstance(row, dict) else None
    return source if isinstance(source, str) else None
