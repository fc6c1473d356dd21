"""`make bench` works: its quick form runs every part, prints the tables and writes the plot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_the_quick_form_prints_every_table_and_writes_the_plot(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for title in ("Pages a minute", "CPU seconds a page", "Memory (PSS)"):
        assert title in done.stdout
    with Image.open(tmp_path / "memory.png") as plot:
        assert plot.width > 600
