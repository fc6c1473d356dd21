"""The systemd units: verified by systemd itself, whole, and with settings that doctriage takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.settings import load_settings, setting_variables
from tests.deploy_files import DEPLOY, ROOT, SECRET, UNITS, assignments, unit

SERVICES = sorted(UNITS.glob("*.service"))
READERS = [path for path in SERVICES if path.name != "doctriage-vllm.service"]
INSTALLED = Path("/opt/doctriage")
OF_THE_SYSTEM = ("sysinit.target", "basic.target", "shutdown.target", "network-online.target", "multi-user.target",
                 "system.slice", "-.slice", "umount.target")  # fmt: skip
EXPOSURE_LIMIT = {"doctriage-vllm.service": 45}
"""Of `systemd-analyze security`, in tenths: 100 is a service without any limit. vLLM compiles and needs devices."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def name_of(path: Path) -> str:
    return path.name


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root with the units, what they start, and as much of systemd as they name."""
    units = tmp_path / "etc" / "systemd" / "system"
    units.mkdir(parents=True)
    for path in (*SERVICES, *UNITS.glob("*.target")):
        shutil.copy(path, units)
    for name in OF_THE_SYSTEM:
        (units / name).write_text("[Unit]\nDefaultDependencies=no\n", encoding="utf-8")
    for program in ("/opt/doctriage/.venv/bin/doctriage", "/opt/doctriage/deploy/vllm/serve.sh", "/bin/sh"):
        place = tmp_path / program.removeprefix("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#!/bin/sh\n", encoding="utf-8")
        place.chmod(0o755)
    return tmp_path


def analyse(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "--no-pager", f"--root={machine}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@needs_systemd
@pytest.mark.parametrize("path", [*SERVICES, UNITS / "doctriage.target"], ids=name_of)
def test_systemd_takes_the_unit(path: Path, machine: Path) -> None:
    answer = analyse(machine, "verify", "--man=no", path.name)
    assert (answer.returncode, answer.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize(
    ("drop_in", "service"),
    [
        ("ocr-h100-node.conf", "doctriage-ocr.service"),
        ("shared-blobs.conf", "doctriage-intake.service"),
        ("vllm-h100-node.conf", "doctriage-vllm.service"),
    ],
)
def test_systemd_takes_the_drop_in(drop_in: str, service: str, machine: Path) -> None:
    folder = machine / "etc" / "systemd" / "system" / f"{service}.d"
    folder.mkdir()
    shutil.copy(UNITS / "drop-ins" / drop_in, folder / "node.conf")
    answer = analyse(machine, "verify", "--man=no", service)
    assert (answer.returncode, answer.stderr) == (0, "")


@needs_systemd
def test_a_unit_with_a_key_that_is_none_would_be_found(machine: Path) -> None:
    path = machine / "etc" / "systemd" / "system" / "doctriage-ocr.service"
    path.write_text(path.read_text(encoding="utf-8").replace("MemoryMax=", "MemoryMost="), encoding="utf-8")
    assert "MemoryMost" in analyse(machine, "verify", "--man=no", path.name).stderr


@needs_systemd
@pytest.mark.parametrize("path", SERVICES, ids=name_of)
def test_a_service_is_shut_in(path: Path, machine: Path) -> None:
    limit = EXPOSURE_LIMIT.get(path.name, 20)
    answer = analyse(machine, "security", "--offline=true", f"--threshold={limit}", path.name)
    assert answer.returncode == 0, answer.stdout


@needs_systemd
def test_systemd_takes_the_accounts(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    command = ["systemd-sysusers", "--dry-run", f"--root={tmp_path}", UNITS / "doctriage.sysusers.conf"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr
    accounts = set(re.findall(r"^u (\S+)", (UNITS / "doctriage.sysusers.conf").read_text("utf-8"), re.M))
    assert accounts == {unit(path)["Service"]["User"] for path in SERVICES}


@pytest.mark.parametrize("path", SERVICES, ids=name_of)
def test_a_service_comes_back_whatever_ended_it(path: Path) -> None:
    sections = unit(path)
    assert sections["Service"]["Restart"] == "always"
    assert int(sections["Service"]["RestartSec"]) >= 5
    assert sections["Unit"]["StartLimitIntervalSec"] == "0"
    assert sections["Unit"]["PartOf"] == sections["Install"]["WantedBy"] == "doctriage.target"


@pytest.mark.parametrize("path", [path for path in SERVICES if "beat" not in path.name], ids=name_of)
def test_the_main_process_alone_is_told_to_stop(path: Path) -> None:
    service = unit(path)["Service"]
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")


@pytest.mark.parametrize("path", SERVICES, ids=name_of)
def test_what_is_started_is_in_the_project(path: Path) -> None:
    program = Path(unit(path)["Service"]["ExecStart"].split()[0])
    inside = program.relative_to(INSTALLED)
    if inside.parts[0] == ".venv":
        assert inside == Path(".venv/bin/doctriage")
    else:
        assert os.access(ROOT / inside, os.X_OK)
    assert unit(path)["Unit"]["Documentation"] == f"file:{INSTALLED}/deploy/README.md"
    assert (DEPLOY / "README.md").exists()


@pytest.mark.parametrize("path", SERVICES, ids=name_of)
def test_a_variable_of_a_command_line_has_a_value_without_any_env_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    given = set(re.findall(r"(\w+)=", " ".join(re.findall(r"^Environment=(.*)$", text, re.MULTILINE))))
    used = set(re.findall(r"(?<!\$)\$\{(\w+)\}", text))
    assert used - given == set()


@pytest.mark.parametrize("name", ["example.env", "example-vlm.env"])
def test_the_example_holds_no_secret(name: str) -> None:
    values = assignments((UNITS / name).read_text(encoding="utf-8"))
    assert [key for key, value in values.items() if SECRET.search(key) and value] == []


def test_every_setting_of_the_examples_and_units_is_one_and_has_a_value_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = {}
    for name in ("example.env", "example-vlm.env"):
        shown |= assignments((UNITS / name).read_text(encoding="utf-8"))
    for path in READERS:
        shown |= dict(re.findall(r"(DOCTRIAGE_\w+)=(\S+)", path.read_text(encoding="utf-8")))
    ours = {name: value for name, value in shown.items() if name.startswith("DOCTRIAGE_")}
    assert set(ours) <= set(setting_variables())
    urls = re.findall(r"(?:postgresql|rediss|amqps)://\S+", (UNITS / "example.env").read_text("utf-8"))
    assert len(urls) == 3
    ours["DOCTRIAGE_DATABASE_URL"] = urls[0]
    ours["DOCTRIAGE_POOL__BROKER_URL"] = urls[1]
    for name, value in ours.items():
        if value:
            monkeypatch.setenv(name, value)
    assert load_settings().home == Path("/var/lib/doctriage")


def test_the_key_of_the_vlm_is_for_those_alone_who_speak_to_it() -> None:
    with_key = {
        path.name for path in SERVICES if "/etc/doctriage/vlm.env" in path.read_text(encoding="utf-8")
    }
    assert with_key == {"doctriage-vllm.service", "doctriage-vlm.service"}
