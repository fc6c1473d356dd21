"""Labelled pages: folders with a ``MANIFEST.jsonl``, a row a page, as ``docs/triage.md`` documents them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.errors import SettingsError

MANIFEST = "MANIFEST.jsonl"


class ManifestRow(BaseModel):
    """One line. Fields that are not listed here are passed over."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    path: Path
    needs_vlm: bool
    page_number: int = Field(default=1, ge=1)
    needs_vlm_strength: Literal["clear", "borderline"] = "clear"
    primary_class: str = "page"
    synthetic: bool = False
    languages: tuple[str, ...] = ()
    truth_text: Path | None = None
    truth_order: str | None = None
    truth_table: Path | None = None
    source_repo: str | None = None
    source_path: str | None = None
    base_id: str | None = None


class LabelledPage(BaseModel):
    """A row with its files found: paths are those on this machine."""

    model_config = ConfigDict(frozen=True)

    row: ManifestRow
    path: Path
    truth_text: Path | None
    truth_table: Path | None

    @property
    def is_clear(self) -> bool:
        return self.row.needs_vlm_strength == "clear"

    @property
    def class_name(self) -> str:
        return f"synthetic:{self.row.primary_class}" if self.row.synthetic else self.row.primary_class


def read_corpora(folders: Sequence[Path]) -> tuple[LabelledPage, ...]:
    """Every labelled page, in the order of the manifests. Raises SettingsError for a manifest or a file that is
    missing, a row that is none, and an id that is there twice."""
    pages = tuple(page for folder in folders for page in _read_manifest(folder))
    seen: set[str] = set()
    for page in pages:
        if page.row.id in seen:
            raise SettingsError(f"{page.row.id}: two rows have this id; give each page an id of its own")
        seen.add(page.row.id)
    if not pages:
        raise SettingsError(f"{folders[0] / MANIFEST}: has no rows; write one a page")
    return pages


def source_groups(pages: Sequence[LabelledPage]) -> list[str]:
    """For each page the group that must not be split between fitting and testing: the collection it comes from,
    or the document series (names that differ by numbers alone) where no collection is named. A page made from
    another is in that one's group."""
    groups = {page.row.id: _source(page) for page in pages}
    return [groups.get(page.row.base_id or "", groups[page.row.id]) for page in pages]


def _source(page: LabelledPage) -> str:
    if page.row.source_repo is not None:
        return page.row.source_repo
    return re.sub(r"\d+", "#", page.row.source_path or str(page.row.path))


def _read_manifest(folder: Path) -> Iterator[LabelledPage]:
    path = folder / MANIFEST
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: cannot be read ({error}); a corpus is a folder with this file"
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = ManifestRow.model_validate_json(line)
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(str(part) for part in fault["loc"])
            raise SettingsError(f"{path}, line {number}: {place}: {fault['msg']}") from error
        yield LabelledPage(
            row=row,
            path=_found(row.path, folder),
            truth_text=None if row.truth_text is None else _found(row.truth_text, folder),
            truth_table=None if row.truth_table is None else _found(row.truth_table, folder),
        )


def _found(path: Path, folder: Path) -> Path:
    """Paths are relative to the manifest's folder or to one above it."""
    start = folder.absolute()
    for base in (start, *start.parents):
        if (base / path).is_file():
            return base / path
    raise SettingsError(f"{folder / MANIFEST}: {path}: no such file under {folder} or the folders above it")
