"""The command line as a user starts it: in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

DOCTRIAGE = Path(sys.executable).with_name("doctriage")


def run_doctriage(
    *arguments: str | bytes | Path, home: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCTRIAGE_")}
    clean |= {"DOCTRIAGE_HOME": str(home), "DOCTRIAGE_EXECUTOR__JOBS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [DOCTRIAGE, *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=120,
        check=False,
    )


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_help_comes_at_once(tmp_path: Path) -> None:
    """Measured in CPU time, so that a busy machine does not count; alone the two are the same."""
    run_doctriage("--help", home=tmp_path)
    costs_s = []
    for _ in range(5):
        before_s = children_cpu_s()
        answer = run_doctriage("--help", home=tmp_path)
        costs_s.append(children_cpu_s() - before_s)
    assert answer.returncode == 0
    assert all(command in answer.stdout for command in ("ingest", "explain", "tokens", "doctor"))
    assert min(costs_s) < 0.5


def test_the_command_line_loads_no_engine_and_no_database_at_start() -> None:
    heavy = (
        "paddle",
        "paddleocr",
        "paddlex",
        "onnxruntime",
        "cv2",
        "numpy",
        "PIL",
        "sqlalchemy",
        "scipy",
        "rich",
    )
    code = f"import sys, workers.cli; print(*(name for name in {heavy!r} if name in sys.modules))"
    probe = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert probe.stdout.split() == []


def test_version(tmp_path: Path) -> None:
    answer = run_doctriage("--version", home=tmp_path)
    assert answer.returncode == 0
    assert answer.stdout.startswith("doctriage 0.")


@pytest.mark.parametrize("command", [["ingest"], ["explain"], ["tokens"], ["doctor"]])
def test_every_command_has_help(command: list[str], tmp_path: Path) -> None:
    answer = run_doctriage(*command, "--help", home=tmp_path)
    assert answer.returncode == 0
    assert f"doctriage {command[0]}" in answer.stdout


def test_tokens_in_words(tmp_path: Path) -> None:
    answer = run_doctriage("tokens", "896x896", "--model-family", "qwen2.5-vl", home=tmp_path)
    assert answer.returncode == 0
    assert "896x896: 1024 visual tokens" in answer.stdout


@pytest.mark.parametrize(
    ("family", "bounds", "expected"),
    [
        ("qwen2.5-vl", ("200704", "1003520"), (840, 1176, 1260)),
        ("qwen3-vl", ("262144", "1310720"), (960, 1344, 1260)),
        ("qwen2-vl", ("3136", "100352"), (252, 364, 117)),
    ],
)
def test_tokens_as_json(
    family: str, bounds: tuple[str, str], expected: tuple[int, int, int], tmp_path: Path
) -> None:
    arguments = ("--model-family", family, "--min-pixels", bounds[0], "--max-pixels", bounds[1], "--json")
    answer = json.loads(run_doctriage("tokens", "1240x1754", *arguments, home=tmp_path).stdout)
    assert (answer["resized_width_px"], answer["resized_height_px"], answer["tokens"]) == expected
    assert (answer["model_family"], answer["min_pixels"], answer["max_pixels"]) == (
        family,
        int(bounds[0]),
        int(bounds[1]),
    )


def test_tokens_by_default_are_what_the_plan_would_spend(tmp_path: Path) -> None:
    answer = run_doctriage(
        "tokens",
        "1654x2339",
        "--json",
        home=tmp_path,
        DOCTRIAGE_VLM__PROFILE="qwen3-vl-8b-fp8",
    )
    assert json.loads(answer.stdout)["tokens"] == 2184
    assert json.loads(answer.stdout)["model_family"] == "qwen3-vl"


@pytest.mark.parametrize(
    ("given", "answered"), [(("--max-pixels", "12544"), 16), (("--min-pixels", "2007040"), 2601)]
)
def test_one_bound_that_contradicts_the_settings_takes_the_model_s_other_bound(
    given: tuple[str, str], answered: int, tmp_path: Path
) -> None:
    answer = run_doctriage("tokens", "900x900", *given, "--json", home=tmp_path)
    assert json.loads(answer.stdout)["tokens"] == answered


def test_a_ratio_over_200_is_one_clear_line(tmp_path: Path) -> None:
    answer = run_doctriage("tokens", "20x4001", home=tmp_path)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert len(answer.stderr.splitlines()) == 1
    assert "20x4001" in answer.stderr
    assert "200" in answer.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["tokens", "1240"],
        ["tokens", "1240x"],
        ["tokens", "0x100"],
        ["tokens", "12.5x100"],
        ["tokens", "1e3x1e3"],
        ["tokens", "9999999999x1"],
        ["tokens", "[red]x[/red]"],
        ["tokens", "10x10", "--model-family", "qwen9"],
        ["tokens", "10x10", "--min-pixels", "10", "--max-pixels", "9"],
        ["tokens", "10x10", "--min-pixels", "0"],
        ["nonsense"],
        ["ingest"],
        ["ingest", "no such file.pdf", "--out", "out"],
        ["ingest", "nothing/*.pdf", "--out", "out"],
        ["ingest", ".", "--out", "out", "--format", "docx"],
        ["ingest", ".", "--out", "out", "--format", ","],
        ["ingest", ".", "--out", "out", "--jobs", "0"],
        ["ingest", ".", "--out", "out", "--engine", "abbyy"],
        ["ingest", ".", "--out", "out", "--route", "sometimes"],
        ["ingest", ".", "--out", "out", "--lang", "--help me"],
        ["ingest", ".", "--out", "out", "--cost-centre", "a\nb"],
        ["ingest", ".", "--out", "out", "--cost-centre", " "],
        ["ingest", ".", "--out", "out", "--cost-centre", "a/b/c"],
        ["ingest", "."],
        ["ingest", "", "--out", "out"],
        ["ingest", ".", "--out", ""],
        ["ingest", ".", "--out", "out", "--password-file", ""],
        ["explain", "x.pdf", "1", "--overlay", ""],
        ["explain", "x.pdf", "1", "--overlay", "x.jpg"],
        ["explain", "x.pdf", "0"],
        ["explain", "x.pdf", "one"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_usage(arguments: list[str], tmp_path: Path) -> None:
    answer = run_doctriage(*arguments, home=tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_missing_path_is_named_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "there.png").write_bytes(b"")
    answer = run_doctriage(
        "ingest", tmp_path / "there.png", tmp_path / "gone.pdf", "--out", tmp_path / "o", home=tmp_path
    )
    assert answer.returncode == 2
    assert "gone.pdf: no such file or folder" in answer.stderr
    assert not (tmp_path / "o").exists()


def test_a_name_that_is_not_utf_8_is_named_all_the_same(tmp_path: Path) -> None:
    answer = run_doctriage("ingest", b"na\xefve\x1b[31m.pdf", "--out", tmp_path / "o", home=tmp_path)
    assert answer.returncode == 2
    assert "na\\xefve\\x1b[31m.pdf" in answer.stderr
    assert "\x1b" not in answer.stderr


def test_a_password_that_is_not_utf_8_is_refused_and_not_shown(tmp_path: Path) -> None:
    for arguments in (["ingest", ".", "--out", "out"], ["explain", "x.pdf", "1"]):
        answer = run_doctriage(*arguments, "--password", b"hush\xff", home=tmp_path)
        assert answer.returncode == 2
        assert "UTF-8" in answer.stderr
        assert "hush" not in answer.stderr
        assert "Traceback" not in answer.stderr


def test_the_state_folder_is_not_read_for_documents(tmp_path: Path) -> None:
    answer = run_doctriage("ingest", tmp_path, "--out", tmp_path / "out", home=tmp_path)
    assert answer.returncode == 2
    assert "DOCTRIAGE_HOME" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def started_in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line, DOCTRIAGE],
        cwd=folder,
        env=os.environ | {"DOCTRIAGE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('mkdir gone && cd gone && rmdir ../gone && "$0" tokens 10x10', "the current folder is gone"),
        ('"$0" tokens 10x10 > /dev/full', "the disk is full"),
        ('"$0" --help > /dev/full', "the disk is full"),
        ('"$0" doctor > /dev/full', "the disk is full"),
        ('"$0" ingest . --out out --password-file - <&-', "standard input is closed"),
        ('DOCTRIAGE_HOME= "$0" tokens 10x10', "DOCTRIAGE_HOME"),
    ],
)
def test_what_is_wrong_around_the_program_is_one_clear_line(line: str, message: str, tmp_path: Path) -> None:
    answer = started_in_shell(line, tmp_path)
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1
    assert message in answer.stderr


@pytest.mark.parametrize("line", ['"$0" tokens 10x10 >&-', '"$0" doctor >&- 2>&-'])
def test_streams_that_are_closed_stop_nothing(line: str, tmp_path: Path) -> None:
    answer = started_in_shell(line, tmp_path)
    assert answer.returncode == 0
    assert answer.stderr == ""


@pytest.mark.parametrize("command", [["tokens", "10x10"], ["doctor"], ["explain", "x", "1"]])
def test_an_unknown_setting_stops_every_command(command: list[str], tmp_path: Path) -> None:
    answer = run_doctriage(*command, home=tmp_path, DOCTRIAGE_JOBS="2")
    assert answer.returncode == 2
    assert answer.stderr.startswith("doctriage: DOCTRIAGE_JOBS is no setting")
    assert "DOCTRIAGE_EXECUTOR__JOBS" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_reader_that_leaves_gives_no_traceback(tmp_path: Path) -> None:
    for arguments in (["tokens", "10x10", "--json"], ["--help"], ["doctor"]):
        shell = f"{DOCTRIAGE} {' '.join(arguments)} | true"
        answer = subprocess.run(
            ["bash", "-c", shell],
            env=os.environ | {"DOCTRIAGE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.stderr == ""


def test_doctor_finds_everything_on_a_machine_that_runs_these_tests(tmp_path: Path) -> None:
    answer = run_doctriage("doctor", "--json", home=tmp_path / "state")
    told = json.loads(answer.stdout)
    assert answer.returncode == 0, answer.stdout
    assert told["ready"] is True
    assert told["packages"] == []
    assert {check["name"] for check in told["checks"]} >= {
        "tesseract",
        "poppler",
        "libmagic",
        "disk",
        "PaddleOCR",
    }
    assert not (tmp_path / "state").exists()


def test_doctor_names_the_packages_of_what_is_missing(tmp_path: Path) -> None:
    answer = run_doctriage(
        "doctor", home=tmp_path, PATH=str(tmp_path), DOCTRIAGE_READ__LANGUAGES="eng+chi_sim"
    )
    assert answer.returncode == 1
    assert (
        "apt-get install tesseract-ocr tesseract-ocr-eng tesseract-ocr-chi-sim poppler-utils" in answer.stdout
    )
    assert answer.stdout.endswith("something required is missing\n")


def test_doctor_names_the_package_of_a_language(tmp_path: Path) -> None:
    answer = run_doctriage("doctor", "--json", home=tmp_path, DOCTRIAGE_READ__LANGUAGES="eng+xyz_old")
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["packages"] == ["tesseract-ocr-xyz-old"]


def test_a_language_in_two_letters_is_told_to_have_three(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    doctor = run_doctriage("doctor", "--json", home=tmp_path / "home", DOCTRIAGE_READ__LANGUAGES="en")
    arguments = ("ingest", tmp_path / "a.png", "--out", tmp_path / "out", "--lang", "en+de")
    ingest = run_doctriage(*arguments, home=tmp_path / "home")
    assert json.loads(doctor.stdout)["packages"] == []
    assert (doctor.returncode, ingest.returncode) == (1, 2)
    for said in (doctor.stdout, ingest.stderr):
        assert "three letters, such as eng" in said
    assert "tesseract-ocr-en" not in ingest.stderr
    assert "en, de" in ingest.stderr


def test_doctor_finds_a_state_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    answer = run_doctriage("doctor", "--json", home=tmp_path / "state" / "deeper")
    checks = {check["name"]: check for check in json.loads(answer.stdout)["checks"]}
    assert answer.returncode == 1
    assert checks["DOCTRIAGE_HOME"]["state"] == "missing"
    assert "DOCTRIAGE_HOME" in checks["DOCTRIAGE_HOME"]["advice"]
