"""Temporary files of worker processes: page images for programs that read files. A worker that is killed cannot
tidy up, so each has a private folder under the state folder, and the next who comes removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from workers.owner import is_alive

FOLDER = "scratch"
SLASH = "+"
"""Stands for the slashes of an owner's name; no host name holds one."""


def use_scratch(home: Path, owner: str) -> None:
    """Let this process, and the programs it starts, keep temporary files in a folder of its own."""
    folder = home / FOLDER / owner.replace("/", SLASH)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = str(folder)


def remove_abandoned_scratch(home: Path) -> None:
    """Remove the folders of processes that have ended."""
    if not (home / FOLDER).is_dir():
        return
    for folder in (home / FOLDER).iterdir():
        if not is_alive(folder.name.replace(SLASH, "/")):
            shutil.rmtree(folder, ignore_errors=True)
