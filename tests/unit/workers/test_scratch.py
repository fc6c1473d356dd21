"""Temporary files lie under the state folder, and go with the process that made them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from workers.owner import current_owner
from workers.scratch import FOLDER, remove_abandoned_scratch

LEAVE_A_FILE = """
import os, sys, tempfile
from pathlib import Path
from workers.owner import current_owner
from workers.scratch import use_scratch
use_scratch(Path(sys.argv[1]), current_owner())
Path(tempfile.mkdtemp(), "page.pgm").write_bytes(b"a page")
os.kill(os.getpid(), 9)
"""


def test_a_killed_workers_page_images_are_removed_and_a_living_ones_stay(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", LEAVE_A_FILE, tmp_path], check=False, env={**os.environ, "TMPDIR": "/nowhere"}
    )
    assert [path.name for path in tmp_path.rglob("*.pgm")] == ["page.pgm"]
    mine = tmp_path / FOLDER / current_owner().replace("/", "+")
    mine.mkdir()
    remove_abandoned_scratch(tmp_path)
    assert list((tmp_path / FOLDER).iterdir()) == [mine]


def test_a_state_folder_without_scratch_is_fine(tmp_path: Path) -> None:
    remove_abandoned_scratch(tmp_path)
    assert list(tmp_path.iterdir()) == []
