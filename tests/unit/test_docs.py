"""The documentation names every setting and option that there is, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from pipeline.settings import TriageThresholds, setting_variables
from workers.cli import app

ROOT = Path(__file__).parent.parent.parent


def test_the_triage_page_lists_every_threshold_with_its_value() -> None:
    page = (ROOT / "docs" / "triage.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+_(?:least|below))` \| ([\d.]+) \|", page, re.MULTILINE))
    thresholds = TriageThresholds().model_dump(exclude={"policy_version"})
    assert {name: float(value) for name, value in listed.items()} == thresholds


def test_the_readme_lists_every_setting() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = ("DOCTRIAGE_TRIAGE__",)
    missing = [name for name in setting_variables() if name not in readme and not name.startswith(sections)]
    assert missing == []


def test_the_readme_lists_every_option_of_ingest() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = typer.main.get_command(app).commands["ingest"]  # type: ignore[attr-defined]
    options = [name for option in command.params for name in option.opts if name.startswith("--")]
    assert len(options) >= 10
    assert [name for name in options if f"`{name}" not in readme] == []
