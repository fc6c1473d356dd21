"""`make bench` works: its quick form runs every part, prints the tables and writes the plot; its help lists others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.__main__ import OTHERS, main

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


def test_help_lists_every_other_measurement_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if path.stem != "__main__" and '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert set(OTHERS) == commands
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    for name, words in OTHERS.items():
        assert f"python -m benchmarks.{name} " in printed
        assert all(word in printed for word in words)
