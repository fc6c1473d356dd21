"""The documents in samples/: where they come from, and what doctriage makes of them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "samples"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "docs" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
]

REDISTRIBUTABLE = {
    "Apache-2.0",
    "CC-BY-4.0",
    "CC-BY-SA-2.5",
    "CC-BY-SA-3.0",
    "CC-BY-SA-4.0",
    "public-domain",
}

KINDS = {
    "blank_page",
    "borderless_table",
    "born_digital",
    "handwriting",
    "mixed",
    "multi_page_tiff",
    "non_latin",
    "receipt_photo",
    "rotated",
    "ruled_table",
    "scanned_multi_page",
    "skewed",
    "stamp",
}


def page_count(path: Path) -> int:
    if path.suffix == ".pdf":
        with pypdfium2.PdfDocument(path) as document:
            return len(document)
    with Image.open(path) as image:
        return int(getattr(image, "n_frames", 1))


def test_every_sample_has_a_row_and_every_row_a_sample() -> None:
    assert sorted(row["file"] for row in ROWS) == sorted(path.name for path in SAMPLES.iterdir())
    assert len(ROWS) >= 12


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_sample_is_listed_with_a_licence_a_source_and_its_own_bytes(row: dict[str, Any]) -> None:
    path = SAMPLES / row["file"]
    assert row["licence"] in REDISTRIBUTABLE
    assert row["attribution"]
    assert row["origins"] or "typeset for this project" in row["changes"]
    assert all({"repository", "path", "commit"} <= origin.keys() for origin in row["origins"])
    assert row["page_count"] == page_count(path)
    assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_table_people_read_agrees_with_the_rows() -> None:
    page = (ROOT / "docs" / "samples.md").read_text(encoding="utf-8")
    for row in ROWS:
        assert f"| `{row['file']}` | {row['page_count']} |" in page
        assert f"| {row['licence']} | {row['attribution']} |" in page


def test_samples_are_small_and_show_every_kind() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) <= 8 * 2**20
    assert {kind for row in ROWS for kind in row["shows"]} >= KINDS


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of one run over all samples with the embedded default."""
    folder = tmp_path_factory.mktemp("samples")
    command = Path(sys.executable).with_name("doctriage")
    done = subprocess.run(
        [command, "ingest", SAMPLES, "--out", folder / "out"],
        env={"PATH": "/usr/bin:/bin", "DOCTRIAGE_HOME": str(folder / "home"), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


def pages(out_dir: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out_dir / f"{name}.json").read_text(encoding="utf-8"))["pages"]
    return found


def reasons(page: dict[str, Any]) -> set[str]:
    return {reason["signal"] for reason in page["triage"]["reasons"]}


def test_every_page_of_every_sample_is_written(out_dir: Path) -> None:
    rows = [json.loads(line) for line in (out_dir / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == sum(row["page_count"] for row in ROWS)
    assert (out_dir / "failures.jsonl").read_text(encoding="utf-8") == ""
    for row in ROWS:
        assert (out_dir / f"{row['file']}.md").is_file()
        assert len(pages(out_dir, row["file"])) == row["page_count"]


def test_born_digital_pages_keep_their_own_text(out_dir: Path) -> None:
    (columns,) = pages(out_dir, "two_columns.pdf")
    (novel,) = pages(out_dir, "russian_novel.pdf")
    assert (columns["route"], novel["route"]) == ("text_layer", "text_layer")
    assert "Все смешалось в доме Облонских" in " ".join(novel["text"].split())
    first, second = (
        columns["text"].find("Lorem ipsum dolor"),
        columns["text"].find("Quisque ullamcorper placerat"),
    )
    assert 0 <= first < second


def test_a_mixed_document_is_read_page_by_page(out_dir: Path) -> None:
    born_digital, scanned, _ = pages(out_dir, "mixed.pdf")
    assert any(word["confidence"] is None for line in born_digital["lines"] for word in line["words"])
    assert scanned["route"] == "ocr"
    assert "fuel consumption of an aggressive driver" in " ".join(scanned["text"].split())


def test_a_blank_page_is_not_read(out_dir: Path) -> None:
    (blank,) = pages(out_dir, "blank_page.pdf")
    assert (blank["route"], blank["text"]) == ("blank", "")


def test_turned_and_skewed_pages_are_read_upright(out_dir: Path) -> None:
    (turned,) = pages(out_dir, "rotated_brochure.jpg")
    (skewed,) = pages(out_dir, "skewed_brochure.jpg")
    assert turned["rotation_deg"] == 270
    for page in (turned, skewed):
        assert "32 Track MIDI Sequence Recorder" in " ".join(page["text"].split())


def test_pages_that_need_seeing_say_why(out_dir: Path) -> None:
    for name in ("handwritten_letter.jpg", "stamped_will.jpg", "ruled_table.pdf", "borderless_table.jpg"):
        (page,) = pages(out_dir, name)
        assert page["triage"]["escalate"], name
        assert reasons(page), name


def test_plain_print_is_accepted(out_dir: Path) -> None:
    prose = pages(out_dir, "scanned_report.pdf")[2]
    assert (prose["route"], prose["triage"]["escalate"]) == ("ocr", False)


def test_every_frame_of_a_tiff_is_a_page(out_dir: Path) -> None:
    frames = pages(out_dir, "fax.tif")
    assert [frame["page_number"] for frame in frames] == [1, 2, 3]
    assert "Table 2.3: Population totals" in " ".join(frames[1]["text"].split())
