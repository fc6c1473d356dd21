from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.errors import SettingsError
from workers.labelled import read_corpora, source_groups


def row(number: int, **changes: object) -> dict[str, object]:
    return {"id": f"p{number}", "path": f"set/pages/p{number}.png", "needs_vlm": False} | changes


def write_corpus(folder: Path, *rows: dict[str, object] | str) -> Path:
    """``folder/set`` with a manifest, its paths relative to ``folder``."""
    pages = folder / "set" / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
    (folder / "set" / "MANIFEST.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for number in range(9):
        (pages / f"p{number}.png").write_bytes(b"")
    return folder / "set"


def test_paths_are_found_from_the_manifest_s_folder_or_one_above_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, row(1), "", row(2, path="pages/p2.png", needs_vlm_strength="borderline"))
    first, second = read_corpora([corpus])

    assert first.path == corpus / "pages" / "p1.png"
    assert second.path == corpus / "pages" / "p2.png"
    assert (first.is_clear, second.is_clear) == (True, False)
    assert first.class_name == "page"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "has no rows"),
        (("{",), "line 1"),
        (({"id": "a", "path": "x"},), "needs_vlm"),
        ((row(1), row(1)), "p1: two rows"),
        ((row(77),), "p77.png: no such file"),
        ((row(1, truth_text="set/truth.txt"),), "truth.txt: no such file"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(
    tmp_path: Path, rows: tuple[dict[str, object] | str, ...], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        read_corpora([write_corpus(tmp_path, *rows)])


def test_a_folder_without_a_manifest_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a corpus is a folder with this file"):
        read_corpora([tmp_path])


def test_pages_of_one_source_or_series_or_made_from_another_are_one_group(tmp_path: Path) -> None:
    pages = read_corpora(
        [
            write_corpus(
                tmp_path,
                row(1, source_repo="a/b", source_path="x.pdf"),
                row(2, source_repo="a/b", source_path="y.pdf"),
                row(3, source_path="scan-001.png"),
                row(4, source_path="scan-017.png"),
                row(5, source_path="letter.png"),
                row(6, base_id="p1", source_path="drawn.png"),
            )
        ]
    )
    groups = source_groups(pages)

    assert groups[0] == groups[1] == groups[5]
    assert groups[2] == groups[3]
    assert len(set(groups)) == 3
