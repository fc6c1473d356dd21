"""deploy/vllm/serve.sh starts what the plan says, word for word."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.planning.gpus import gpu_named
from pipeline.planning.model_profiles import load_profile, profile_names
from pipeline.planning.plan_wishes import PlanWishes
from pipeline.planning.planner import make_plan
from pipeline.planning.serving_plan import KvDtype, ServingPlan, read_plan

SCRIPT = Path(__file__).parent.parent.parent / "deploy" / "vllm" / "serve.sh"
MODULE = "python3 -m vllm.entrypoints.openai.api_server"

FAKE_VLLM = """\
#!/usr/bin/env python3
import json, os, sys
names = ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_API_KEY", "VLLM", "VLLM_MODEL")
print(json.dumps({"words": sys.argv, "environment": {name: os.environ.get(name) for name in names}}))
sys.exit(7)
"""


def plan_for(profile: str = "qwen2.5-vl-7b-fp8", checkpoint: str | None = None) -> ServingPlan:
    wishes = PlanWishes(gpu=gpu_named("h100-80gb"), gpu_count=2, kv_dtype=KvDtype.FP8, checkpoint=checkpoint)
    return make_plan(load_profile(profile), wishes)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "a plan.json"
    path.write_text(plan_for().to_json(), encoding="utf-8")
    return path


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a vllm that says how it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "vllm").write_text(FAKE_VLLM, encoding="utf-8")
    (folder / "vllm").chmod(0o755)
    return folder


def serve(
    *arguments: str | Path, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM", "HF_HUB"))}
    if path is not None:
        clean["PATH"] = f"{path}:{clean['PATH']}"
    return subprocess.run(
        [SCRIPT, *arguments], env=clean | environment, capture_output=True, text=True, timeout=60, check=False
    )


def printed(*arguments: str | Path, **environment: str) -> tuple[str, ...]:
    answer = serve("--print", *arguments, **environment)
    assert (answer.returncode, answer.stderr) == (0, "")
    return tuple(shlex.split(answer.stdout))


@pytest.mark.parametrize("profile", profile_names())
def test_the_command_is_the_plan_s(profile: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(plan_for(profile).to_json(), encoding="utf-8")
    assert printed(tmp_path / "plan.json") == read_plan(tmp_path / "plan.json").serve_command()


def test_vllm_is_started_with_the_command_and_its_exit_code_is_the_script_s(
    plan_file: Path, programs: Path
) -> None:
    answer = serve(plan_file, path=programs, VLLM_API_KEY="secret")
    assert answer.returncode == 7
    started = json.loads(answer.stdout)
    assert Path(started["words"][0]) == programs / "vllm"
    assert tuple(started["words"][1:]) == read_plan(plan_file).serve_command()[1:]
    assert started["environment"] == {
        "HF_HUB_OFFLINE": None,
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_API_KEY": "secret",
        "VLLM": None,
        "VLLM_MODEL": None,
    }


@pytest.mark.parametrize("offline", ["0", "1"])
def test_whether_the_hub_is_asked_stays_the_user_s_choice(
    offline: str, plan_file: Path, programs: Path
) -> None:
    started = json.loads(serve(plan_file, path=programs, HF_HUB_OFFLINE=offline).stdout)
    assert started["environment"]["HF_HUB_OFFLINE"] == offline


def test_further_flags_come_last(plan_file: Path, programs: Path) -> None:
    further = ("--enforce-eager", "--host", "::1", "--override", '{"a b": "$HOME"}', "-h", "")
    words = json.loads(serve(plan_file, *further, path=programs).stdout)["words"]
    assert tuple(words[1:]) == read_plan(plan_file).serve_command()[1:] + further
    assert printed(plan_file, *further) == read_plan(plan_file).serve_command() + further


def test_print_may_come_after_the_plan(plan_file: Path) -> None:
    answer = serve(plan_file, "--print")
    assert tuple(shlex.split(answer.stdout)) == read_plan(plan_file).serve_command()


@pytest.mark.parametrize("name", ["/models/a folder", "--odd", "models/ünïcode"])
def test_a_folder_may_take_the_place_of_the_checkpoint(name: str, plan_file: Path, tmp_path: Path) -> None:
    command = read_plan(plan_file).serve_command()
    assert printed(plan_file, VLLM_MODEL=name) == (*command[:2], name, *command[3:])
    (tmp_path / "own.json").write_text(plan_for(checkpoint=name).to_json(), encoding="utf-8")
    assert printed(tmp_path / "own.json")[2] == name


@pytest.mark.parametrize(
    ("program", "head"),
    [
        ("vllm", ("vllm", "serve")),
        ("/opt/vllm/bin/vllm", ("/opt/vllm/bin/vllm", "serve")),
        ("./fake", ("./fake", "serve")),
        ("uv run  vllm", ("uv", "run", "vllm", "serve")),
        (MODULE, (*MODULE.split(), "--model")),
        ("env A=b " + MODULE, ("env", "A=b", *MODULE.split(), "--model")),
        ("python3 start.py", ("python3", "start.py", "--model")),
    ],
)
def test_the_program_may_be_named_in_several_words(
    program: str, head: tuple[str, ...], plan_file: Path
) -> None:
    assert printed(plan_file, VLLM=program) == (*head, *read_plan(plan_file).serve_command()[2:])


def test_the_module_is_started_with_the_model_as_a_flag(plan_file: Path, programs: Path) -> None:
    answer = serve(plan_file, VLLM=f"python3 {programs / 'vllm'}x")
    assert answer.returncode != 0
    (programs / "start.py").write_text(FAKE_VLLM, encoding="utf-8")
    answer = serve(plan_file, "--enforce-eager", VLLM=f"python3 {programs / 'start.py'}")
    words = json.loads(answer.stdout)["words"]
    assert tuple(words[1:]) == ("--model", *read_plan(plan_file).serve_command()[2:], "--enforce-eager")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"serve_command": ["rm", "-rf", "/"]}',
                                     b'{"serve_command": ["vllm", "serve"]}', b"\xff",
                                     b'{"serve_command": ["vllm", "serve", "m", 5]}'])  # fmt: skip
def test_a_file_that_is_no_plan_starts_nothing(content: bytes, tmp_path: Path, programs: Path) -> None:
    (tmp_path / "other.json").write_bytes(content)
    answer = serve(tmp_path / "other.json", path=programs)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert len(answer.stderr.splitlines()) == 1
    assert f"{tmp_path / 'other.json'}: no serving plan" in answer.stderr


def test_what_is_missing_is_one_clear_line(plan_file: Path, tmp_path: Path) -> None:
    gone = serve(tmp_path / "gone.json")
    assert gone.returncode == 2
    assert "gone.json: No such file or directory" in gone.stderr
    without_vllm = serve(plan_file, VLLM="vllm-that-is-not-there")
    assert without_vllm.returncode == 127
    assert "vllm-that-is-not-there is not on PATH; install vLLM" in without_vllm.stderr
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "bash").symlink_to(str(shutil.which("bash")))
    without_python = serve(plan_file, PATH=str(tmp_path / "few"))
    assert without_python.returncode == 127
    assert "python3 is not on PATH" in without_python.stderr
    for answer in (gone, without_vllm, without_python):
        assert (answer.stdout, len(answer.stderr.splitlines())) == ("", 1)


def test_without_a_plan_it_says_how_it_is_used() -> None:
    answer = serve()
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("usage: serve.sh")
    assert serve("--help").stdout.startswith("usage: serve.sh")
    assert serve("--help").returncode == 0


def test_the_script_is_ready_to_run_and_sound() -> None:
    assert os.access(SCRIPT, os.X_OK)
    assert subprocess.run(["bash", "-n", SCRIPT], capture_output=True, check=False).stderr == b""
