"""Same bytes under several names, and output folders that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kinds.conftest import ingest
from tests.kinds.judging import read_output, read_rows
from tests.kinds.paper import drawn_pdf, printed, written_image

NOTE = ("Note for the night porter", "The side door sticks when it rains; lift it a little.")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("suffix", [".tif", ".pdf"])
def test_equal_bytes_are_read_once_and_written_under_every_name(suffix: str, tmp_path: Path) -> None:
    names = [
        f"a/note{suffix}",
        f"b/note{suffix}",
        f"copy of note{suffix}",
        f"b/c/über{suffix}",
        "renamed.dat",
    ]
    original = tmp_path / f"original{suffix}"
    if suffix == ".pdf":
        drawn_pdf(original, lambda canvas: printed(canvas, NOTE))
    else:
        written_image(NOTE).save(original)
    for name in names:
        copy = tmp_path / "in" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(original.read_bytes())

    run = ingest(tmp_path / "in", out=tmp_path / "out", home=tmp_path / "home")

    assert run.exit_code == 0
    outputs = [read_output(tmp_path / "out" / f"{name}.json") for name in names]
    assert {output["source"] for output in outputs} == set(names)
    assert len({output["document_id"] for output in outputs}) == 1
    assert all("The side door sticks" in output["pages"][0]["text"] for output in outputs)
    assert len({output["pages"][0]["elapsed_s"] for output in outputs}) == 1, "read more than once"
    assert all((tmp_path / "out" / f"{name}.md").exists() for name in names)
    assert read_rows(tmp_path / "out" / "failures.jsonl") == []


def refused(out: Path, tmp_path: Path) -> None:
    """An ingest that is to be refused. Root may write anywhere, so it gives up that right first."""
    source = tmp_path / "note.pdf"
    drawn_pdf(source, lambda canvas: printed(canvas, NOTE))
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    run = ingest(source, out=out, home=tmp_path / "home", before=before)
    assert run.exit_code not in (0, -6, -9, -11)
    assert str(out) in run.stderr
    assert "Traceback" not in run.stderr + run.stdout
    assert run.stdout == ""
    assert not (tmp_path / "home").exists(), "read before the refusal"


def test_a_folder_that_cannot_be_written_is_refused_before_reading(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o555)
    refused(out, tmp_path)
    assert list(out.iterdir()) == []


def test_a_folder_inside_one_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    refused(tmp_path / "locked" / "deep" / "out", tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    refused(out, tmp_path)
    assert out.read_text() == "mine"


def test_a_link_to_itself_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "out")
    refused(out, tmp_path)
