"""``doctriage plan`` as a user starts it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from pipeline.planning.model_profiles import profile_names
from pipeline.planning.serving_plan import read_plan
from tests.acceptance.test_command_line import run_doctriage

SCRIPT = Path(__file__).parent.parent.parent / "deploy" / "vllm" / "serve.sh"


@pytest.mark.parametrize("profile", profile_names())
def test_one_h100_has_a_plan_for_every_profile(profile: str, tmp_path: Path) -> None:
    answer = run_doctriage("plan", "--profile", profile, "--json", home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    plan = json.loads(answer.stdout)
    assert (plan["profile"], plan["gpu"]) == (profile, "h100-80gb")
    assert plan["serve_command"][:2] == ["vllm", "serve"]


def test_table_command_file_and_server_say_the_same(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    wishes = ("--pages-per-prompt", "3", "--concurrency", "40", "--kv-dtype", "fp8", "--gpus", "2")
    timed = ("--ttft-s", "0.5", "--prefill-tokens-per-s", "12000", "--max-output-tokens", "3000")
    answer = run_doctriage("plan", *wishes, *timed, "--out", out, home=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    plan = read_plan(out)
    for line in plan.lines:
        assert line.how in answer.stdout
        assert line.value in answer.stdout
    command = answer.stdout[answer.stdout.index("vllm serve") : answer.stdout.index("plan written to")]
    assert tuple(shlex.split(command.replace("\\\n", " "))) == plan.serve_command()
    started = subprocess.run([SCRIPT, "--print", out], capture_output=True, text=True, check=True)
    assert tuple(shlex.split(started.stdout)) == plan.serve_command()
    printed = run_doctriage("plan", *wishes, *timed, "--json", home=tmp_path)
    assert printed.stdout == out.read_text(encoding="utf-8")


def test_a_folder_of_one_s_own_is_loaded_and_checked(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128}
    vision = {"vision_config": {"patch_size": 14, "spatial_merge_size": 2}}
    processor = {"patch_size": 14, "merge_size": 2, "min_pixels": 147_384, "max_pixels": 2_822_400}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    (tmp_path / "config.json").write_text(json.dumps(config | vision | {"max_position_embeddings": 131_072}))
    arguments = ("plan", "--profile", "paddleocr-vl", "--check-model", tmp_path, "--checkpoint", tmp_path)
    fitting = run_doctriage(*arguments, home=tmp_path)
    assert fitting.returncode == 0
    assert f"{tmp_path} is the model of profile paddleocr-vl" in fitting.stdout
    assert f"vllm serve {tmp_path} " in fitting.stdout
    (tmp_path / "config.json").write_text(json.dumps(config | vision | {"max_position_embeddings": 4_096}))
    differing = run_doctriage(*arguments, home=tmp_path)
    assert (differing.returncode, differing.stdout) == (1, "")
    assert len(differing.stderr.splitlines()) == 1
    assert "context_tokens is 131072 in the profile and 4096 in the folder" in differing.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--pages-per-prompt", "8", "--max-output-tokens", "8192", "--context-tokens", "16384"],
            "8 × 2,240 + 547 of text + 8,192 of output = 26,659 tokens, in a context of 16,384",
        ),
        (["--profile", "qwen2.5-vl-32b-fp8", "--gpu", "rtx-4090-24gb"], "do not fit rtx-4090-24gb"),
        (["--profile", "qwen2.5-vl-32b-fp8", "--gpu", "l40s-48gb"], "less than one request"),
        (["--profile", "qwen2.5-vl-7b-fp9"], "did you mean qwen2.5-vl-7b-fp8?"),
        (["--profile", "gone.toml"], "gone.toml: No such file or directory"),
        (["--check-model", "gone"], "gone/config.json: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_one_clear_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    answer = run_doctriage("plan", *arguments, "--out", tmp_path / "plan.json", home=tmp_path)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert len(answer.stderr.splitlines()) == 1
    assert told in answer.stderr
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpu", "h100"],
        ["--gpus", "0"],
        ["--kv-dtype", "int8"],
        ["--ttft-s", "1"],
        ["--ttft-s", "nan", "--prefill-tokens-per-s", "1"],
        ["--prefill-tokens-per-s", "0"],
        ["--checkpoint", ""],
        [b"--checkpoint", b"\xff"],
        ["--out", ""],
        ["--out", "/no such folder/plan.json"],
        ["--check-model", ""],
        ["extra"],
    ],
    ids=str,
)
def test_a_wrong_command_line_is_usage(arguments: list[str | bytes], tmp_path: Path) -> None:
    answer = run_doctriage("plan", *arguments, home=tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_unknown_setting_stops_it_too(tmp_path: Path) -> None:
    answer = run_doctriage("plan", home=tmp_path, DOCTRIAGE_JOBS="2")
    assert answer.returncode == 2
    assert answer.stderr.startswith("doctriage: DOCTRIAGE_JOBS is no setting")
