"""The container files and what they copy. No engine builds them here: their steps are held against the Makefile."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from tests.deploy_files import DEPLOY, ROOT

CPU = DEPLOY / "Containerfile.cpu"
VLLM = DEPLOY / "Containerfile.vllm"


def instructions(path: Path) -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    parted = [line.partition(" ") for line in lines if line]
    return [(word, rest) for word, _, rest in parted]


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def copied(path: Path) -> Iterator[tuple[str, str]]:
    """What is copied from the project, and to where."""
    for word, rest in instructions(path):
        if word == "COPY" and "--from=" not in rest:
            *sources, target = rest.split()
            yield from ((source, target) for source in sources)


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a file or folder through: the last line that fits it or a folder above it counts."""
    sent = True
    parts = Path(path).parts
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if not line.startswith("#") and any(
            fnmatch.fnmatchcase("/".join(parts[:length]), pattern) for length in range(1, len(parts) + 1)
        ):
            sent = line.startswith("!")
    return sent


@pytest.mark.parametrize("path", [CPU, VLLM], ids=lambda path: path.name)
def test_what_is_copied_is_there_and_is_sent(path: Path) -> None:
    sources = [source for source, _ in copied(path)]
    assert len(sources) >= 1
    assert [source for source in sources if not (ROOT / source).exists() or not is_sent(source)] == []


@pytest.mark.parametrize(
    "path", [".git", ".venv", "out", "tests", "deploy/.env", "docs", "requirements/dev.in"]
)
def test_nothing_private_and_nothing_large_is_sent(path: str) -> None:
    assert not is_sent(path)


@pytest.mark.parametrize("path", [CPU, VLLM], ids=lambda path: path.name)
def test_the_last_user_is_not_root_and_there_is_a_check(path: Path) -> None:
    words = instructions(path)
    assert [rest for word, rest in words if word == "USER"] in (["doctriage"], ["vllm"])
    assert [word for word, _ in words if word == "HEALTHCHECK"] == ["HEALTHCHECK"]


def test_requirements_are_installed_as_the_makefile_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = " ".join(rest for word, rest in instructions(CPU) if word == "RUN")
    for name in ("runtime", "nodeps"):
        theirs = re.search(rf"\$\(PIP_INSTALL\) (.*?-r )requirements/{name}\.txt", makefile)
        ours = re.search(rf"--no-cache-dir ([^&]*?-r )/src/requirements/{name}\.txt", steps)
        assert theirs is not None
        assert ours is not None
        assert ours[1] == theirs[1]
    assert "-r /src/requirements/runtime.txt -r /src/requirements/s3.txt" in steps
    assert "--no-deps --no-build-isolation /src" in steps
    assert "xargs -a /tmp/debian.txt apt-get install -y -qq --no-install-recommends" in steps


def test_what_s3_takes_is_pinned_as_everything_else_is() -> None:
    pinned = {name: pins(ROOT / "requirements" / f"{name}.txt") for name in ("runtime", "s3")}
    assert "s3fs" in pinned["s3"]
    shared = pinned["s3"].keys() & pinned["runtime"].keys()
    assert {name: pinned["s3"][name] for name in shared} == {name: pinned["runtime"][name] for name in shared}


def test_the_image_of_the_workers_has_no_gpu_library() -> None:
    pinned = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(?:nvidia|torch|vllm|triton|onnxruntime-gpu)\S*", pinned, re.MULTILINE) == []
    assert all("nvidia" not in rest for word, rest in instructions(CPU))


def test_the_package_that_is_installed_there_is_whole(tmp_path: Path) -> None:
    """Built from what is copied to /src and nothing else."""
    source = tmp_path / "src"
    for name, target in copied(CPU):
        if target.startswith("/src"):
            place = source / Path(target).relative_to("/src")
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = place / Path(name).name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", tmp_path, source], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    folders = ("models", "pipeline", "workers")
    files = {path.relative_to(source).as_posix() for folder in folders
             for path in (source / folder).rglob("*") if path.is_file()}  # fmt: skip
    assert files - packed == set()


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_the_check_tells_a_service_that_answers_from_one_that_does_not(path: str) -> None:
    server, thread = start_http_server(0, addr="127.0.0.1", registry=CollectorRegistry())
    port = str(server.server_port)
    check = [DEPLOY / "healthcheck.py", port, *([] if path == "/metrics" else [path])]
    try:
        assert subprocess.run(check, timeout=60, check=False).returncode == 0
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    refused = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}{path}" in refused.stderr


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_sound_and_ready_to_run(path: Path) -> None:
    shell = path.read_text(encoding="utf-8").partition("\n")[0].rpartition("/")[2].removeprefix("env ")
    assert subprocess.run([shell, "-n", path], capture_output=True, check=False).stderr == b""
    assert os.access(path, os.X_OK)
