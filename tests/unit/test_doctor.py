"""What doctor concludes from what it finds."""

from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from workers import doctor
from workers.doctor import (
    Check,
    CheckState,
    check_disk,
    check_home,
    check_module,
    check_paddleocr,
    check_program,
    check_weights,
    is_ready,
    language_package,
    packages_to_install,
)

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("language", "package"),
    [
        ("eng", "tesseract-ocr-eng"),
        ("chi_sim", "tesseract-ocr-chi-sim"),
        ("chi_sim_vert", "tesseract-ocr-chi-sim-vert"),
        ("script/Latin", "tesseract-ocr-script-latn"),
        ("Latin", "tesseract-ocr-script-latn"),
        ("HanS_vert", "tesseract-ocr-script-hans-vert"),
    ],
)
def test_a_language_names_its_debian_package(language: str, package: str) -> None:
    assert language_package(language) == package


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = check_program("poppler", "pdftoppm", "-v", packages=("poppler-utils",))
    assert check.state is CheckState.MISSING
    assert check.packages == ("poppler-utils",)
    assert "poppler-utils" in check.advice


def test_a_program_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pdftoppm").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "pdftoppm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    check = check_program("poppler", "pdftoppm", "-v", packages=("poppler-utils",))
    assert check.state is CheckState.MISSING
    assert "does not start" in check.found


def test_a_module_whose_shared_library_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "needs_gl.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check = check_module("OpenCV", "needs_gl", packages=("libgl1",))
    assert check.state is CheckState.MISSING
    assert "libGL.so.1" in check.found
    assert check.packages == ("libgl1",)


def test_a_module_that_ends_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "aborts.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert check_module("aborts", "aborts").state is CheckState.MISSING


def test_a_python_package_that_is_not_installed_is_no_matter_for_apt() -> None:
    check = check_module("OpenCV", "no_such_module_anywhere", packages=("libgl1",))
    assert check.state is CheckState.MISSING
    assert check.packages == ()
    assert "requirements" in check.advice


def test_weights_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hollow_layout").mkdir()
    (tmp_path / "hollow_layout" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert check_weights("layout model", "hollow_layout").state is CheckState.MISSING
    (tmp_path / "hollow_layout" / "net.onnx").touch()
    assert check_weights("layout model", "hollow_layout").found == "net.onnx"


@pytest.mark.parametrize(("is_required", "state"), [(True, CheckState.MISSING), (False, CheckState.WARNING)])
def test_paddleocr_is_required_only_where_it_reads(
    is_required: bool, state: CheckState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_weights", lambda _package: ())
    check = check_paddleocr(is_required=is_required)
    assert check.state is state
    assert "--engine tesseract" in check.advice


@pytest.mark.parametrize(
    ("free_bytes", "state"),
    [(50 * 2**20, CheckState.MISSING), (2**30, CheckState.WARNING), (2**40, CheckState.OK)],
)
def test_a_disk_that_runs_full(
    free_bytes: int, state: CheckState, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(2**40, 0, free_bytes))
    assert check_disk(tmp_path / "not" / "yet" / "there").state is state


def test_a_state_folder_that_is_writable_or_can_be_made(tmp_path: Path) -> None:
    assert check_home(tmp_path).state is CheckState.OK
    assert check_home(tmp_path / "new" / "state").state is CheckState.OK
    assert list(tmp_path.iterdir()) == []


def test_a_state_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert check_home(tmp_path / "file").state is CheckState.MISSING
    assert check_home(tmp_path / "file" / "state").state is CheckState.MISSING


def test_ready_means_nothing_required_is_missing() -> None:
    ok = Check(name="a", state=CheckState.OK, found="")
    warning = Check(name="b", state=CheckState.WARNING, found="", packages=("p1",))
    missing = Check(name="c", state=CheckState.MISSING, found="", packages=("p1", "p2"))
    assert is_ready((ok, warning))
    assert not is_ready((ok, missing))
    assert packages_to_install((ok, warning, missing)) == ("p1", "p2")
