"""What the files below deploy/ say, read as Compose, systemd and an operator read them."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parent.parent
DEPLOY: Final = ROOT / "deploy"
UNITS: Final = DEPLOY / "systemd"
COMPOSE: Final = DEPLOY / "compose.yaml"

ASSIGNMENT: Final = re.compile(r"^#?([A-Z][A-Z0-9_]*)=(.*)$")
"""Also of a line that an operator may uncomment."""

SECRET: Final = re.compile(r"PASSWORD|SECRET|_KEY\b|TOKEN|AUTH|DATABASE_URL|BROKER_URL")


def assignments(text: str, *, commented: bool = True) -> dict[str, str]:
    """The variables of an env file; with ``commented`` those that are only shown as well."""
    lines = (line for line in text.splitlines() if commented or not line.startswith("#"))
    return {match[1]: match[2] for line in lines if (match := ASSIGNMENT.match(line))}


def new_env(*arguments: str) -> str:
    """What the operator's .env is."""
    command = [DEPLOY / "new_env.sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def compose(folder: Path, *arguments: str, env: str) -> subprocess.CompletedProcess[str]:
    """docker-compose on the real file, in a copy of its folder that has ``env`` as its .env."""
    copy = folder / "deploy"
    if not copy.exists():
        shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns(".env"))
    (copy / ".env").write_text(env, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    command = ["docker-compose", "-f", copy / "compose.yaml", *arguments]
    return subprocess.run(command, env=clean, capture_output=True, text=True, timeout=120, check=False)


def services(folder: Path, env: str) -> Mapping[str, Mapping[str, Any]]:
    """Every service, of all profiles, with the variables put in."""
    answer = compose(folder, "config", env=env)
    assert answer.returncode == 0, answer.stderr
    named: Mapping[str, Mapping[str, Any]] = yaml.safe_load(answer.stdout)["services"]
    return named


def unit(path: Path) -> configparser.ConfigParser:
    """A unit's sections; of a key that is given twice the last."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path, encoding="utf-8")
    return parser
