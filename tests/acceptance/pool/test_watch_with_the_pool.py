"""``doctriage watch --executor celery``: what arrives in a folder is read by the pool."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.pool.house import House, rows_of
from tests.acceptance.test_ingest_command_line import SENTENCE, write_pdf

pytestmark = pytest.mark.slow

QUICK = ("--once", "--settle", "0", "--grace", "0", "--executor", "celery")


def test_what_arrives_is_read_once_and_moved(busy_house: House, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    text = f"{SENTENCE} {busy_house.database}"
    write_pdf(folder / "post" / "first.pdf", 2, text)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    options = ("--out", out, *QUICK, "--done", tmp_path / "done", "--priority", "8", "--route", "ocr")
    watched = busy_house.doctriage("watch", folder, *options)
    assert watched.returncode == 1, watched.stdout + watched.stderr + busy_house.logs
    assert "1 file read, 1 failed" in watched.stderr
    assert text in (out / "post" / "first.pdf.md").read_text(encoding="utf-8")
    assert [row["source"] for row in rows_of(out / "failures.jsonl")] == ["broken.pdf"]
    assert (tmp_path / "done" / "post" / "first.pdf").exists()
    [(priority, wishes)] = busy_house.rows(
        "SELECT priority, wishes FROM submissions ORDER BY submission_id DESC LIMIT 1"
    )
    assert (priority, wishes["route"]) == (8, "ocr")

    again = busy_house.doctriage("watch", folder, *options)
    assert again.returncode == 0, again.stderr
    shutil.copy(tmp_path / "done" / "post" / "first.pdf", folder / "second.pdf")
    third = busy_house.doctriage("watch", folder, *options)
    assert third.returncode == 0, third.stderr
    rows = [(row["source"], row["page_number"]) for row in rows_of(out / "pages.jsonl")]
    assert sorted(rows) == [
        ("post/first.pdf", 1),
        ("post/first.pdf", 2),
        ("second.pdf", 1),
        ("second.pdf", 2),
    ]


def test_what_the_pool_needs_is_asked_for_before_anything_is_watched(
    busy_house: House, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    write_pdf(folder / "a.pdf")
    asked = ("watch", folder, "--out", tmp_path / "out", *QUICK)
    jobs = busy_house.doctriage(*asked, "--jobs", "2")
    assert (jobs.returncode, "--jobs: the pool's workers have settings" in jobs.stderr) == (2, True)
    sealed = busy_house.doctriage(*asked, "--password", "hush")
    assert (sealed.returncode, "DOCTRIAGE_POOL__SECRET_KEY" in sealed.stderr) == (2, True)
    assert "hush" not in sealed.stderr
