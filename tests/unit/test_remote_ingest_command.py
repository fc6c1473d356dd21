"""``doctriage ingest --server``: what it refuses before it asks anybody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.errors import SettingsError
from pipeline.settings import load_settings
from workers.cli import app
from workers.cli.remote_ingest import api_key

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("DOCTRIAGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DOCTRIAGE_HOME", str(tmp_path / "home"))


def ingest(folder: Path, *options: str) -> Result:
    (folder / "a.pdf").write_bytes(b"%PDF")
    return CliRunner().invoke(app, ["ingest", str(folder / "a.pdf"), "--out", str(folder / "out"), *options])


@pytest.mark.parametrize(
    "options",
    [
        ("--executor", "local"),
        ("--jobs", "2"),
        ("--engine", "tesseract"),
        ("--vlm-url", "http://vlm/v1"),
        ("--vlm-model", "m"),
        ("--vlm-profile", "p"),
        ("--plan", "plan.json"),
        ("--vlm-wait", "3"),
        ("--force",),
        ("--detach",),
        ("--quote", "quote.json"),
    ],
)
def test_what_the_server_decides_is_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    result = ingest(tmp_path, "--server", NOWHERE, *options)
    assert result.exit_code == 2
    assert options[0] in result.output
    assert "not with --server" in result.output
    assert not (tmp_path / "out").exists()


def test_a_key_is_a_setting_or_all_that_is_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\ufeff dt_a_b \n", encoding="utf-8")
    assert api_key(load_settings().server) is None
    assert api_key(load_settings({"server": {"key_file": tmp_path / "key"}}).server) == "dt_a_b"
    assert api_key(load_settings({"server": {"key": "k", "key_file": tmp_path / "key"}}).server) == "k"
    with pytest.raises(SettingsError, match=r"gone: cannot be read"):
        api_key(load_settings({"server": {"key_file": tmp_path / "gone"}}).server)
