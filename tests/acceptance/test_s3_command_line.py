"""Runs whose documents are kept in an S3-compatible store."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.acceptance.test_command_line import run_doctriage
from tests.integration.blob_places import SECRET, S3Place

BLANK = Path(__file__).parent.parent.parent / "samples" / "blank_page.pdf"


def variables(place: S3Place) -> dict[str, str]:
    settings = place.settings
    return {
        "DOCTRIAGE_BLOBS__URL": settings.url or "",
        "DOCTRIAGE_BLOBS__ENDPOINT_URL": settings.endpoint_url or "",
        "DOCTRIAGE_BLOBS__KEY": settings.key or "",
        "DOCTRIAGE_BLOBS__SECRET": SECRET,
    }


def test_a_run_keeps_its_documents_there_and_fetches_what_this_machine_has_not(
    s3_place: S3Place, tmp_path: Path
) -> None:
    home, environment = tmp_path / "home", variables(s3_place)
    arguments = ("ingest", BLANK, "--out", tmp_path / "out")
    first = run_doctriage(*arguments, home=home, **environment)
    assert first.returncode == 0, first.stderr
    assert {name.split("/")[0] for name in s3_place.names()} == {"blobs"}
    assert not (home / "blobs").exists()
    shutil.rmtree(home / "cache")
    drawn = run_doctriage("explain", BLANK, "1", "--overlay", tmp_path / "p.png", home=home, **environment)
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert len(list((home / "cache" / "blobs").glob("??/*"))) == 1


def test_a_run_whose_store_is_away_ends_with_what_to_check_and_no_secret(tmp_path: Path) -> None:
    answer = run_doctriage(
        *("ingest", BLANK, "--out", tmp_path / "out"),
        home=tmp_path / "home",
        DOCTRIAGE_BLOBS__URL="s3://bucket/prefix",
        DOCTRIAGE_BLOBS__ENDPOINT_URL="http://127.0.0.1:9",
        DOCTRIAGE_BLOBS__KEY="key",
        DOCTRIAGE_BLOBS__SECRET=SECRET,
    )
    assert answer.returncode == 1
    assert "DOCTRIAGE_BLOBS__ENDPOINT_URL" in answer.stderr
    assert SECRET not in answer.stdout + answer.stderr
