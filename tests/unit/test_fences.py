"""The import fences in pyproject.toml: each one breaks when somebody climbs over it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

CLIMBERS = {
    "models/page.py": "import numpy, pipeline.ports, sqlalchemy",
    "pipeline/ports.py": "import celery, pipeline.engines, pytesseract, sqlalchemy, workers.events",
    "workers/cli/__init__.py": "def _late():\n    import pipeline.engines",
}
"""Imports that the house forbids, by the file they are written into."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """KEPT or BROKEN by contract name, for a copy of the packages with the climbers in it."""
    copy = tmp_path_factory.mktemp("house")
    for package in ("models", "pipeline", "workers"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name, imports in CLIMBERS.items():
        with (copy / name).open("a", encoding="utf-8") as module:
            module.write(f"\n\n{imports}\n")
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"],
        cwd=copy,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(copy)},
    )
    found: list[tuple[str, str]] = re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE)
    return dict(found)


def test_every_fence_breaks_when_climbed(verdicts: dict[str, str]) -> None:
    assert len(verdicts) >= 7
    assert [name for name, verdict in verdicts.items() if verdict != "BROKEN"] == []
